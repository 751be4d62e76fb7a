"""`gapless bench`: targets, statements, gates and what is said when it cannot."""

from __future__ import annotations

import json
import sys

import pytest

from gapless.cli import bench
from gapless.cli.entry import main

FAST = ["--budget", "0.05", "--no-graph", "--no-kernels"]
SETUP = ["-s", "import torch; torch.set_num_threads(1); x = torch.randn(16, 16)"]


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "benchtarget.py").write_text(
        "calls = []\n"
        "def quick(): calls.append(1)\n"
        "def needs(a): return a\n"
        "def broken(): raise ValueError('mine')\n"
        "value = 3\n"
        "class Box:\n    @staticmethod\n    def inner(): return 1\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("benchtarget", None)


def test_a_function_is_timed(module, capsys):
    assert main(["bench", "benchtarget:quick", *FAST]) == 0
    assert "benchtarget:quick" in capsys.readouterr().out
    assert main(["bench", "benchtarget:Box.inner", *FAST]) == 0


def test_a_statement_returns_its_value_for_the_checks(capsys, tmp_path):
    target = tmp_path / "out.json"
    assert main(["bench", *SETUP, "y = x @ x; y + 1", *FAST, "--format", "json", "-o", str(target)]) == 0
    data = json.loads(target.read_text())
    assert data["schema"] == "gapless.measure/1"
    assert next(c for c in data["checks"] if c["id"] == "H13")["status"] == "pass"
    assert data["quantities"]["t_lat"]["samples_us"]


def test_several_are_compared(capsys):
    assert main(["bench", *SETUP, "x + 1", "x @ x @ x @ x", *FAST]) == 0
    assert "baseline" in capsys.readouterr().out


def test_gate(module, capsys):
    assert main(["bench", "benchtarget:quick", *FAST, "--max-us", "1e9"]) == 0
    assert main(["bench", "benchtarget:quick", *FAST, "--max-us", "1e-9"]) == 1
    assert "above --max-us" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["benchtarget:needs"], "without arguments"),
        (["benchtarget:nothing"], "has no 'nothing'"),
        (["benchtarget:value"], "cannot be called"),
        (["benchtarget:broken"], "raised ValueError: mine"),
        (["nomodule_here:f"], "cannot be imported"),
        (["plain"], "is not module:function"),
        (["-s", "x = ", "x"], "is not Python"),
        (["-s", "1 / 0", "x"], "raised ZeroDivisionError"),
        (["-s", "x = 1", ""], "is empty"),
        (["benchtarget:quick", "--budget", "-1"], "budget_s"),
        (["benchtarget:quick", "benchtarget:broken", "--max-us", "3"], "one target"),
    ],
)
def test_trouble_is_one_line(module, capsys, words, said):
    assert main(["bench", *words, *([] if "--budget" in words else FAST)]) == 2
    error = capsys.readouterr().err.strip()
    assert said in error and "\n" not in error


def test_statement_compiles_in_the_names_of_the_setup():
    functions = bench.statements(["a = 2"], ["a + 1", "b = a; b * 10"])
    assert [f() for f in functions.values()] == [3, 20]
