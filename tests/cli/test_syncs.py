"""`gapless syncs`: the script's own process passes through, the report goes beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .harness import gapless, one_line

pytest.importorskip("torch")

SCRIPT = """
import sys, torch
print("hello", *sys.argv[1:], __name__)
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def test_output_and_report_are_apart(script: Path, tmp_path: Path) -> None:
    shown = gapless("syncs", "-o", tmp_path / "r.json", script, "--lr", "3")
    assert shown.returncode == 0
    assert shown.stdout == "hello --lr 3 __main__\n"
    assert "no hidden wait in 2 steps" in shown.stderr
    report = json.loads((tmp_path / "r.json").read_text())
    assert (report["schema"], report["steps"]) == ("gapless.syncs/1", 2)


def test_the_switch_for_watches_in_the_script_does_not_turn_the_verb_off(script: Path, tmp_path: Path) -> None:
    gapless("syncs", "-o", tmp_path / "r.json", script, GAPLESS_SYNCS="off")
    report = json.loads((tmp_path / "r.json").read_text())
    assert "B" in report["layers"] and report["steps"] == 2


def test_second_run_under_the_profiler(script: Path, tmp_path: Path) -> None:
    shown = gapless("syncs", "--trace", "--trace-steps", "1", "-o", tmp_path / "r.json", script)
    assert "profiler, second run (1 steps)" in shown.stderr
    assert json.loads((tmp_path / "r.json").read_text())["trace"] == []


def test_exit_code_and_exception_are_the_scripts(script: Path) -> None:
    script.write_text(SCRIPT + "sys.exit(7)\n")
    assert gapless("syncs", script).returncode == 7
    script.write_text(SCRIPT + "raise KeyError('mine')\n")
    shown = gapless("syncs", script)
    assert shown.returncode == 1
    assert "KeyError: 'mine'" in shown.stderr
    assert "no hidden wait" in shown.stderr


def test_modules_run_too(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(script.parent)
    shown = gapless("syncs", "-m", "train", "x")
    assert shown.stdout == "hello x __main__\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["syncs"], "nothing to run"),
        (["syncs", "no/such.py"], "no/such.py: no such file"),
        (["syncs", "--steps"], "'--steps' is not an option of `gapless syncs`"),
    ],
)
def test_what_cannot_run_is_said_in_one_line(words: list[str], says: str) -> None:
    shown = gapless(*words)
    assert shown.returncode == 2
    assert says in one_line(shown)
