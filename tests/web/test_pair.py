"""The page of a comparison in a browser: both timelines move together and mark what only they have."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.render.html.diffs import diff
from tests.web.browser import play, require

from gapless import api
from gapless.analyses.timeline import timeline
from gapless.model.timeline import Timeline
from gapless.render.html.diff import render_diff_html

pytestmark = pytest.mark.browser
PAIR = Path(__file__).resolve().parents[1] / "data" / "pairs" / "gpu_work"


def work_names(t: Timeline) -> set[str]:
    return {t.strings[n] for n, lane in zip(t.boxes.name, t.boxes.lane, strict=True) if t.lanes[lane].kind == "stream"}


def test_both_timelines_share_one_scale_and_mark_the_difference(tmp_path: Path) -> None:
    require()
    before, after = (timeline(api.load(PAIR / f"gelu_by_hand.{side}.json.gz").study()) for side in ("before", "after"))
    page = tmp_path / "diff.html"
    page.write_text(render_diff_html(diff(), before, after), "utf-8")
    seen = play("pair", page)
    assert seen["complaints"] == []
    assert seen["requests"] == []
    left, right = seen["first"]
    assert left == pytest.approx(right)
    assert left[0] < 0
    assert left[1] > max(seen["steps"])
    assert seen["moved"][0] == pytest.approx(seen["moved"][1])
    assert seen["moved"][1] == pytest.approx([0, 50_000])
    assert set(seen["marked"][0]) == work_names(before) - work_names(after)
    assert set(seen["marked"][1]) == work_names(after) - work_names(before)
    assert seen["marked"][0]
    assert seen["hash"] == ""
