"""Every right form of docs/sync-guide.md runs; every wrong form that is said to raise raises just that."""

from __future__ import annotations

import builtins
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import gapless  # noqa: E402
from gapless.runtime import streams  # noqa: E402

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sync-guide.md"
FENCE = re.compile(r"^```python ?([^\n]*)\n(.*?)^```$", re.M | re.S)

BLOCKS = [
    (PAGE.read_text("utf-8")[: match.start()].count("\n") + 2, match[1].split(), match[2])
    for match in FENCE.finditer(PAGE.read_text("utf-8"))
]
SETUP = next(code for _, words, code in BLOCKS if words == ["setup"])


def params(kind):
    return [
        pytest.param(line, words, code, id=f"line{line}", marks=[pytest.mark.gpu] if "gpu" in words else [])
        for line, words, code in BLOCKS
        if words and words[0].startswith(kind)
    ]


@pytest.fixture
def namespace(monkeypatch, request):
    if request.node.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("needs a CUDA GPU")
    monkeypatch.setattr(gapless, "streams", streams, raising=False)
    names = {}
    exec(SETUP, names)
    for timer in streams.timers().values():
        timer.reset()
    return names


def compiled(line, code):
    return compile("\n" * (line - 1) + code, str(PAGE), "exec")


@pytest.mark.parametrize(("line", "words", "code"), params("right"))
def test_right_form_runs(namespace, line, words, code):
    exec(compiled(line, code), namespace)


@pytest.mark.parametrize(("line", "words", "code"), params("raises="))
def test_wrong_form_raises_what_the_page_says(namespace, line, words, code):
    with pytest.raises(getattr(builtins, words[0].removeprefix("raises="))):
        exec(compiled(line, code), namespace)


def test_every_block_says_what_it_is_and_every_section_has_a_right_form():
    for line, words, _ in BLOCKS:
        assert words, f"line {line}"
        assert words[0] in ("setup", "right", "wrong") or words[0].startswith("raises="), f"line {line}"
    sections = re.split(r"^### ", PAGE.read_text("utf-8"), flags=re.M)[1:]
    assert len(sections) == 23
    assert [section.split(".")[0] for section in sections if "```python right" not in section] == []
