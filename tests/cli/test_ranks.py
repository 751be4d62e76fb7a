"""Two ranks' recordings: a folder gives one report a rank, and one rank's file says what it can by itself."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from .harness import gapless


@pytest.fixture(scope="module")
def folder(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ranks of a run with a straggler, and what the run was, which is no trace."""
    here = tmp_path_factory.mktemp("ranks")
    for name in ("straggler.rank0.json.gz", "straggler.rank1.json.gz", "labels.json"):
        shutil.copy(shared / "h200" / "ddp" / name, here / name)
    return here


def reports(*words: str | Path) -> Any:
    shown = gapless("report", *words, "--no-cache", "--format", "json")
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout)


def found(report: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in report["findings"]]


def test_a_folder_is_one_report_a_rank_and_each_says_its_own(folder: Path) -> None:
    first, second = reports(folder)
    assert [(r["trace"]["rank"], r["trace"]["world_size"]) for r in (first, second)] == [(0, 2), (1, 2)]
    assert [r["accounting"][0]["device"] for r in (first, second)] == [0, 1]
    assert first["verdict"]["bound"] == "communication", "rank 0 waits inside the collective"
    assert "waiting for other ranks included" in first["verdict"]["sentence"]
    assert second["verdict"]["bound"] == "host", "rank 1 is late"
    stall = next(f for f in second["findings"] if f["code"] == "host-stall")
    assert 4 < stall["per_step"]["ms"] < 5, "it spins for 4 ms"
    assert "host-stall" not in found(first)


def test_one_ranks_file_alone_gives_the_same_report(folder: Path) -> None:
    both = reports(folder)
    for rank in (0, 1):
        assert reports(folder / f"straggler.rank{rank}.json.gz") == both[rank]
        assert reports(folder, "--rank", str(rank)) == both[rank]


def test_the_text_says_whose_it_is(folder: Path) -> None:
    text = gapless("report", folder, "--no-cache").stdout
    assert text.index("rank 0 of 2") < text.index("rank 1 of 2")
