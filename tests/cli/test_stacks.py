"""`--stacks FILE` names the window with stacks of the same program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .harness import BEFORE, SAMPLES, gapless, one_line

TIMING = SAMPLES / "layer_sync.before.json.gz"
BREAKS = Path(__file__).resolve().parents[1] / "data" / "pairs" / "stacks" / "explicit_breaks.before.json.gz"


def where(*words: str | Path) -> tuple[str | None, int | None]:
    shown = gapless("report", *words, "--no-cache", "--format", "json")
    assert shown.returncode == 0, shown.stderr
    first = json.loads(shown.stdout)["findings"][0]["where"]
    return first["file"], first["line"]


def test_a_named_window_gives_file_and_line(tmp_path: Path) -> None:
    alone = tmp_path / "x.json.gz"
    alone.write_bytes(TIMING.read_bytes())
    assert where(alone) == (None, None)
    assert where(alone, "--stacks", BEFORE) == ("record.py", 92)
    assert where(TIMING) == ("record.py", 92)
    assert where(TIMING, "--stacks", "none") == (None, None)


@pytest.mark.parametrize(
    ("trace", "stacks", "said"),
    [
        (TIMING, "gone.json", "no such file"),
        (TIMING, TIMING, "recorded without stacks"),
        (BEFORE, BEFORE, "stacks of its own"),
        (TIMING, Path(__file__), "it looks like plain text"),
    ],
)
def test_a_name_that_cannot_be_it_is_one_line(trace: Path, stacks: str | Path, said: str) -> None:
    shown = gapless("report", trace, "--no-cache", "--stacks", stacks)
    assert shown.returncode == 2
    assert said in one_line(shown)
