"""What is a step: the profiler's marker, else what `--step-marker` names, else the window; and which steps are cold?"""

from __future__ import annotations

import polars as pl
import pytest

import gapless
from gapless.api import ReportOptions

from .recorded import Event, Recorded, left_out, trust

TWENTY = "article/mm4096_active20"


def unmarked(events: list[Event]) -> list[Event]:
    """As recorded without a schedule: no `ProfilerStep`, the program's own annotations stay."""
    return [e for e in events if not str(e.get("name", "")).startswith("ProfilerStep#")]


def test_without_markers_the_window_is_the_step_and_says_how_to_get_more(h200: Recorded) -> None:
    t = h200.changed(TWENTY, unmarked)
    report = gapless.report(t).to_dict()
    assert report["window"]["marker"] == "whole window"
    assert [s["used"] for s in report["window"]["steps"]] == [True]
    assert report["step"]["kernels"] == 40
    status, detail = trust(report, "cold-step")
    assert status == "unknown"
    assert "--step-marker REGEX" in detail


def test_the_programs_own_annotation_makes_the_same_steps(h200: Recorded) -> None:
    t = h200.changed(TWENTY, unmarked)
    named = gapless.report(t, options=ReportOptions(step_marker="^matmul_.dd$")).to_dict()
    usual = h200.report(TWENTY)
    assert named["window"]["marker"] == "/^matmul_.dd$/"
    assert [s["name"] for s in named["window"]["steps"]] == ["matmul_add"] * 20
    assert [s["used"] for s in named["window"]["steps"]] == [s["used"] for s in usual["window"]["steps"]]
    for key in ("gpu_busy_ms", "kernels", "launches", "syncs", "copies"):
        assert named["step"][key] == usual["step"][key], key
    assert named["accounting"][0]["wall_ns"] == usual["accounting"][0]["wall_ns"], "cut at the GPU's phase"
    assert named["step"]["wall_ms"] < usual["step"]["wall_ms"], "the annotation lies inside the profiler's marker"
    assert named["verdict"] == usual["verdict"]


def test_a_step_that_alone_compiles_is_cold(h200: Recorded) -> None:
    """The recording compiles in each step, which is the program's way; without the later compilations, only once."""
    name = "pairs/recompile.before"
    assert left_out(h200.report(name)) == {}
    second = h200.trace(name).steps.collect()["start_ns"][1] / 1e3

    def compile_once(events: list[Event]) -> list[Event]:
        begin = min(e["ts"] for e in events if str(e.get("name", "")).startswith("ProfilerStep#"))
        first = h200.trace(name).steps.collect()["start_ns"][0] / 1e3
        return [
            e
            for e in events
            if not str(e.get("name", "")).endswith("(dynamo_timed)") or e["ts"] - begin < second - first
        ]

    why = left_out(gapless.report(h200.changed(name, compile_once)).to_dict())
    assert list(why) == [h200.report(name)["window"]["steps"][0]["name"]]
    assert why.popitem()[1].startswith("compiles or autotunes for ")


@pytest.mark.parametrize(("step", "used"), [(2, "ProfilerStep#2"), (4, "ProfilerStep#4")])
def test_one_step_can_be_asked_for_even_a_cold_one(step: int, used: str, h200: Recorded) -> None:
    name = "article/mm64_cold_eager"
    report = h200.report(name, step=step)
    assert [s["name"] for s in report["window"]["steps"] if s["used"]] == [used]
    bounds = h200.trace(name).steps.filter(pl.col("name").cast(pl.String) == used).collect()
    assert report["step"]["wall_ms"] == (bounds["end_ns"][0] - bounds["start_ns"][0]) / 1e6
