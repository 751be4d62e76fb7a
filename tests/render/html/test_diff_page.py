"""The page of a comparison: every number of the diff, both timelines, nothing from outside."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.render.factories import HOSTILE
from tests.render.html.diffs import diff, kernel
from tests.render.html.test_page import outline
from tests.render.html.timelines import small

from gapless.model.diff import Comparable, DiffSide, Speedup
from gapless.render.html.diff import render_diff_html


def test_the_page_says_what_changed_and_what_was_promised() -> None:
    page = render_diff_html(diff(), small(), small())
    parsed = outline(page)
    for text in (
        "five element-wise kernels became one",
        "2.00x to 2.30x",
        "the batch differs: 8 and 16",
        "2.0x was predicted, 2.14x came of it.",
        "triton_poi_fused_add_mul",
        "After 1000 steps the compile time is earned back.",
        "train.py:12",
        "moved to readback",
        "12.0 MB",
    ):
        assert text in page, text
    assert [a["data-timeline"] for _, a in parsed.tags if "data-timeline" in a] == ["timeline-before", "timeline-after"]
    assert [a["data-comparable"] for _, a in parsed.tags if "data-comparable" in a] == ["partly"]


def test_a_count_that_a_side_cannot_tell_is_said_not_zeroed() -> None:
    page = render_diff_html(diff())
    row = page[page.index("graph launches") :][:200]
    assert "cannot tell" in row
    assert "data-timeline=" not in page


@pytest.mark.parametrize("verdict", ["faster", "slower", "same", "undecided"])
def test_every_verdict_has_its_word(verdict: str) -> None:
    page = render_diff_html(diff(speedup=Speedup(None, None, None, verdict)))  # type: ignore[arg-type]
    words = {"faster": "Faster", "slower": "Slower", "same": "No difference", "undecided": "Cannot be decided"}
    assert f">{words[verdict]}</p>" in page


def test_names_of_either_side_stay_text() -> None:
    base = diff()
    evil = kernel(HOSTILE, 1, 0, "removed")
    bad = replace(
        base,
        summary=HOSTILE,
        before=replace(base.before, trace={"path": HOSTILE}),
        after=DiffSide({"path": HOSTILE}, base.after.step, "host", HOSTILE, 1),
        comparable=Comparable("no", [HOSTILE], [HOSTILE], [HOSTILE]),
        kernels=replace(base.kernels, removed=[evil]),
    )
    page = render_diff_html(bad, small(), small())
    scripts = [a.get("type") for tag, a in outline(page).tags if tag == "script"]
    assert scripts == ["text/plain", "text/plain", "application/json", None]
    assert len(page) < 600_000
