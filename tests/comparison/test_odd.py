"""Traces that can be compared only in part, or not: what is said, what is withheld, what is still answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gapless
from gapless.api import DiffOptions
from gapless.model.diff import Diff

from .conftest import Compared


def test_two_recordings_of_one_program_are_the_same(compared: Compared) -> None:
    diff = compared("h200/odd/cycle1", "h200/odd/cycle2").diff
    assert (diff.speedup.verdict, diff.comparable.status, diff.changes) == ("same", "yes", [])
    assert diff.kernels.removed == diff.kernels.added == []


def test_two_ranks_of_one_program(compared: Compared) -> None:
    diff = compared("h200/ddp/plain.rank0", "h200/ddp/plain.rank1").diff
    assert (diff.speedup.verdict, diff.comparable.status) == ("same", "partly")
    assert "rank 0 before, rank 1 after" in diff.comparable.reasons[0]


def test_one_side_without_gpu_records(compared: Compared) -> None:
    diff = compared("h200/odd/cpu_activity_only", "h200/odd/cycle1").diff
    assert diff.comparable.status == "partly"
    assert "GPU work" in diff.comparable.withheld
    assert diff.speedup.verdict == "undecided"
    assert diff.kernels.added == []
    counts = {row.what: (row.before, row.after) for row in diff.counts}
    assert counts["kernels"] == (None, 33)
    assert counts["launches"][0] == counts["launches"][1], "launch calls are recorded on both sides"
    assert diff.summary.startswith("Compared only in part: the before trace holds no GPU work")


def test_launch_blocking_gives_no_verdict(compared: Compared) -> None:
    diff = compared("h200/odd/launch_blocking", "h200/odd/cycle1").diff
    assert diff.speedup.verdict == "undecided"
    assert "CUDA_LAUNCH_BLOCKING" in diff.speedup.why
    assert diff.kernels.removed == diff.kernels.added == [], "what ran is comparable all the same"


def test_a_whole_window_against_steps(compared: Compared) -> None:
    diff = compared("h200/odd/no_schedule", "h200/odd/cycle1").diff
    assert diff.speedup.verdict == "undecided"
    assert "--step-marker" in diff.comparable.reasons[0]


def test_other_inputs(compared: Compared) -> None:
    diff = compared("h200/pairs/matmul4096.before", "h200/pairs/matmul64.before").diff
    assert (diff.comparable.status, diff.speedup.verdict) == ("partly", "undecided")
    assert "other shapes" in diff.comparable.reasons[0]


def test_another_gpu(compared: Compared) -> None:
    diff = compared("h200/odd/cycle1", "public/hta/simple_add").diff
    assert diff.speedup.verdict == "undecided"
    assert any("other GPU" in reason for reason in diff.comparable.reasons)


def test_compiling_left_much_less_gpu_work_and_yet_only_eleven_percent(compared: Compared) -> None:
    before, after = (f"public/segment_anything_fast/{name}_many_syncs" for name in ("eager", "compile"))
    diff = compared(before, after).diff
    assert diff.speedup.verdict == "faster"
    assert diff.speedup.recorded == pytest.approx(1.13, abs=0.02), "11 % less time"
    assert diff.speedup.value == pytest.approx(1.13, abs=0.03)
    was, now = diff.before.step, diff.after.step
    assert was.gpu_busy_ms is not None
    assert now.gpu_busy_ms is not None
    assert now.gpu_busy_ms < 0.5 * was.gpu_busy_ms
    assert was.host_wait_ms is not None
    assert now.host_wait_ms is not None
    assert 0.35 < now.host_wait_ms / was.host_wait_ms < 0.6
    assert "the step is now compiled" in diff.summary
    assert "but the host still bounds the step" in diff.summary
    assert "the host is blocked for" in diff.summary


def test_compile_time_that_the_user_gives(compared: Compared) -> None:
    view = compared("h200/pairs/pointwise_chain.before", "h200/pairs/pointwise_chain.after")
    diff = gapless.diff(view.before.trace, view.after.trace, options=DiffOptions(compile_seconds=1.1)).diff
    assert (diff.compile.cost_ms, diff.compile.cost_source) == (1100.0, "given")
    assert diff.compile.break_even_steps == pytest.approx(1100 / (0.298 - 0.0377), rel=0.1)
    assert "pays after" in diff.summary
    assert view.diff.compile.break_even.startswith("not known")


def test_the_contract(compared: Compared) -> None:
    value = compared("h200/article/geglu_eager", "h200/article/geglu_compile").to_dict()
    assert next(iter(value.items())) == ("schema", "gapless.diff/1")
    assert {
        "before",
        "after",
        "comparable",
        "speedup",
        "counts",
        "kernels",
        "fusion",
        "compile",
        "waits",
        "predicted",
    } <= value.keys()
    assert "step" in value["before"]
    assert {"value", "recorded", "noise", "verdict"} <= value["speedup"].keys()
    assert {"same", "removed", "added", "fused"} <= value["kernels"].keys()
    assert {"name", "replaces", "bytes_saved"} <= value["kernels"]["fused"][0].keys()
    assert {
        "regions",
        "graph_breaks",
        "recompiles",
        "guard_ms",
        "host_ms_before",
        "host_ms_after",
        "cost_ms",
        "break_even_steps",
    } <= value["compile"].keys()
    assert {"cause", "before_ms", "after_ms"} <= value["waits"][0].keys()
    json.dumps(value, allow_nan=False)


def test_broken_files_are_compared_as_far_as_they_go(shared: Path) -> None:
    good = gapless.load(shared / "h200" / "odd" / "cycle1.json.gz")
    found: dict[str, Diff] = {}
    for name in ("no_gpu_records.json.gz", "lost_records_first_third.json.gz", "truncated.json"):
        found[name] = gapless.diff(gapless.load(shared / "invalid" / name), good).diff
    assert all(diff.comparable.status != "yes" for diff in found.values())
    assert all(diff.speedup.verdict == "undecided" for diff in found.values())
    assert any("cut off" in reason for reason in found["truncated.json"].comparable.reasons)


def test_a_late_rank_shows_in_the_collective(compared: Compared) -> None:
    diff = compared("h200/ddp/plain.rank0", "h200/ddp/straggler.rank0").diff
    assert (diff.speedup.verdict, diff.speedup.basis) == ("slower", "unprofiled")
    assert diff.speedup.low is not None
    assert diff.speedup.high is not None
    assert diff.speedup.low < 11.13 / 16.64 < diff.speedup.high, "what the run took without the profiler"
    assert [c.kind for c in diff.changes] == ["late-rank"]
    diff = compared("h200/ddp/plain.rank1", "h200/ddp/straggler.rank1").diff
    assert diff.speedup.verdict == "slower"
    assert diff.changes[0].kind == "host-stall"


def test_compiling_that_did_not_take_effect(compared: Compared) -> None:
    view = compared("h200/odd/cycle1", "h200/odd/cycle2")
    diff = gapless.diff(view.before.trace, view.after.trace, options=DiffOptions(compile_seconds=3)).diff
    assert "compiling did not take effect" in diff.compile.break_even
