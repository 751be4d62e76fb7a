"""T4: the device synchronisation that ends a recording is the profiler's own; the program's, right before it, is not.

The text's lasts 1.78 ms for 26 us of GPU work. The H200's 64 x 64 run has no work left by then: the whole call is its
own overhead; at 4096 it does wait, for kernels that the steps launched. The file wins.
"""

from __future__ import annotations

import polars as pl
import pytest

from .recorded import Recorded, profilers, trust

SYNC_RULES = {"explicit-sync", "hidden-sync"}


def article_names(h200: Recorded) -> list[str]:
    return [f"article/{name}" for name in h200.tables()]


def test_every_recording_ends_in_one_and_it_is_nobodys_fault(h200: Recorded) -> None:
    names = article_names(h200)
    assert len(names) == 26
    for name in names:
        t, report = h200.trace(name), h200.report(name)
        own = profilers(t)
        assert own.height == 1, name
        (wait,) = own.to_dicts()
        assert wait["name"] == "cudaDeviceSynchronize"
        assert (wait["step"], wait["top_op_name"]) == (None, None)
        assert wait["start_ns"] == t.calls.collect()["start_ns"].max(), "the last call of all"
        assert wait["start_ns"] > t.steps.collect()["end_ns"].max()
        (row,) = [s for s in report["syncs"] if s["origin"] == "profiler"]
        assert (row["name"], row["count"], row["gain"]) == ("cudaDeviceSynchronize", 1, None)
        assert trust(report, "profiler-artifact")[1].startswith("1 device synchronisation of the recorder itself"), name
        others = t.syncs.collect().height - 1
        assert bool(report["step"]["syncs"]) == bool(others), "it is not among the step's waits"
        if not others:
            assert not SYNC_RULES & {f["code"] for f in report["findings"]}, name
            assert not any(part["state"] == "wait" for host in report["host"] for part in host["parts"]), name


def test_at_64_it_waited_for_nothing(h200: Recorded) -> None:
    (wait,) = profilers(h200.trace("article/mm64_cold_eager")).to_dicts()
    assert (wait["gpu_work_ns"], wait["copy_ns"], wait["untraced_ns"]) == (0, 0, 0)
    assert wait["overhead_ns"] == wait["dur_ns"]
    assert wait["waited_activity"] is None


def test_at_4096_it_waited_for_what_the_steps_had_launched(h200: Recorded) -> None:
    t = h200.trace("article/mm4096_active20")
    (wait,) = profilers(t).to_dicts()
    assert wait["gpu_work_ns"] > 0.95 * wait["dur_ns"]
    work = t.activities.with_columns(end_ns=pl.col("start_ns") + pl.col("dur_ns")).collect()
    last = work.row(wait["waited_activity"], named=True)
    assert last["end_ns"] == work["end_ns"].max()
    assert last["step"] == 19
    busy = work.select(
        (pl.col("end_ns") - pl.max_horizontal("start_ns", pl.lit(wait["start_ns"]))).clip(lower_bound=0)
    ).sum()
    assert busy.item() == wait["gpu_work_ns"], "one stream: kernels do not overlap"
    (row,) = h200.report("article/mm4096_active20")["syncs"]
    assert row["waited_for"][0].startswith("13 x gemm bf16"), "13 of 20 products were still to come"


@pytest.mark.parametrize(("name", "a_step"), [("pairs/layer_sync.before.stack", 24), ("pairs/matmul64.before", 1)])
def test_the_programs_own_stay_its_own(name: str, a_step: int, h200: Recorded) -> None:
    """Even that of the last step, which is the same call outside any operator, just before the profiler's."""
    t, report = h200.trace(name), h200.report(name)
    waits = t.syncs.with_columns(pl.col("origin", "name").cast(pl.String)).sort("start_ns").collect()
    assert set(waits["name"]) == {"cudaDeviceSynchronize"}
    assert waits["origin"].to_list() == ["explicit"] * (3 * a_step) + ["profiler"]
    assert report["step"]["syncs"] == a_step
    if "stack" in name:
        where = {row["origin"]: (row["file"], row["line"]) for row in report["syncs"]}
        assert where["explicit"] == ("record.py", 92)
