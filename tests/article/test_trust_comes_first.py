"""T11: work of before the window, launches without records, no GPU lane, a kernel at time zero: said first, counted apart.

The text's three forwards show 3.7 of them in the profiler's table; so do the H200's, for the same reason.
"""

from __future__ import annotations

import polars as pl
import pytest

import gapless
from gapless.tables.intervals import as_ns, merge, total

from .recorded import Event, Recorded, left_out, parts, profilers, trust

STRAYS = {"article/attn_math": (9, 20), "article/attn_naive": (2, 7), "article/attn_inplace": (2, 6)}
"""Activities left over from before the window, and activities a step."""


@pytest.mark.parametrize("name", STRAYS)
def test_work_of_before_the_window_belongs_to_no_step(name: str, h200: Recorded) -> None:
    t, report = h200.trace(name), h200.report(name)
    strays, a_step = STRAYS[name]
    work = t.activities.collect()
    unlinked = work.filter(pl.col("call").is_null())
    assert unlinked.height == strays
    assert unlinked["step"].null_count() == strays
    assert unlinked["start_ns"].max() < work.filter(pl.col("call").is_not_null())["start_ns"].min()
    by_step = work.drop_nulls("step").group_by("step").len().sort("step")
    assert by_step.rows() == [(0, a_step), (1, a_step), (2, a_step)]
    assert report["step"]["launches"] == a_step
    status, detail = trust(report, "unlinked-work")
    assert status == "note"
    assert detail.startswith(
        f"{strays} of {3 * a_step + strays} activities have no launch in the file ({strays} of them"
    )


def test_three_forwards_look_like_more_in_the_profilers_table(h200: Recorded) -> None:
    work = h200.trace("article/attn_math").activities.collect()
    one = work.filter(pl.col("step") == 1)["dur_ns"].sum()
    assert 3.2 < work["dur_ns"].sum() / one < 4
    assert work.drop_nulls("step")["dur_ns"].sum() / one == pytest.approx(3, rel=0.01)
    assert h200.report("article/attn_math")["step"]["gpu_busy_ms"] == pytest.approx(one / 1e6, rel=0.01)


def test_without_a_gpu_lane_nothing_of_the_gpu_is_zero(h200: Recorded) -> None:
    t, report = h200.trace("odd/cpu_activity_only"), h200.report("odd/cpu_activity_only")
    step = report["step"]
    for key in ("gpu_busy_ms", "kernels", "copies", "copy_bytes", "steady_ms", "unprofiled_ms"):
        assert step[key] is None, key
    launches = t.calls.filter(pl.col("call_class").cast(pl.String).is_in(["launch", "copy", "memset"])).collect()
    assert launches.height == 70, "35 a step, as its twin with GPU records has"
    assert step["launches"] == 35 == h200.report("odd/cycle1")["step"]["launches"]
    assert report["accounting"] == []
    assert (report["verdict"]["bound"], report["findings"]) == ("unknown", [])
    status, detail = trust(report, "lost-records")
    assert status == "fail"
    assert detail.startswith("66 launches but no GPU record at all")
    assert sum(p["ns"] for p in report["host"][0]["parts"]) == report["host"][0]["wall_ns"], "the host is still told"


def test_a_step_that_lost_its_records_is_left_out(h200: Recorded) -> None:
    t = gapless.load(h200.root.parent / "invalid" / "lost_records_first_third.json.gz")
    whole = h200.trace("pairs/item_sync.before")
    report = gapless.report(t).to_dict()
    gone = whole.activities.collect().height - t.activities.collect().height
    assert gone == 48
    launch = pl.col("call_class").cast(pl.String) == "launch"
    kernels = t.calls.filter(launch, pl.col("activities") == 0).collect()
    assert set(kernels["step"]) == {0}
    assert left_out(report) == {"ProfilerStep#3": f"{kernels.height} of its launches have no GPU record"}
    assert report["step"]["launches"] == h200.report("pairs/item_sync.before")["step"]["launches"]
    assert report["step"]["kernels"] == h200.report("pairs/item_sync.before")["step"]["kernels"]
    assert trust(report, "lost-records")[0] == "fail"
    alone = gapless.report(t, options=gapless.api.ReportOptions(step=3)).to_dict()
    assert [s["name"] for s in alone["window"]["steps"] if s["used"]] == ["ProfilerStep#3"]


def test_a_kernel_at_time_zero_is_set_aside_and_shown(h200: Recorded) -> None:
    """Of the closing step: what the GPU did in the steps that count stays. (How much of its idleness was a launch on its
    way is measured on all launches, so that may move between two causes.)"""
    name = "article/mm64_warm_eager"

    def zero(events: list[Event]) -> list[Event]:
        kernels = sorted((e for e in events if e.get("cat") == "kernel"), key=lambda e: e["ts"])
        kernels[-1]["ts"] = 0
        return events

    t, before = h200.changed(name, zero), h200.report(name)
    after = gapless.report(t).to_dict()
    aside = t.raw_tables()["set_aside"].with_columns(pl.col("reason").cast(pl.String))
    assert aside.select("start_text", "reason").rows() == [("0", "bad-time")]
    assert t.kernels.collect().height == h200.trace(name).kernels.collect().height - 1
    assert after["accounting"][0]["wall_ns"] == before["accounting"][0]["wall_ns"]
    assert parts(after)["compute", None] == parts(before)["compute", None]
    assert parts(after)["idle", "python"] == parts(before)["idle", "python"]
    assert after["step"]["gpu_busy_ms"] == before["step"]["gpu_busy_ms"]
    assert any(issue["count"] == 1 for issue in after["issues"])


@pytest.mark.parametrize("name", ["article/mm64_noskip_eager", "article/copies", "article/mm4096_shapes_mem_sync"])
def test_neither_overhead_rows_nor_waits_make_the_gpu_busy(name: str, h200: Recorded) -> None:
    """Files with overhead rows or `cuda_sync` records, which some tools count as GPU work."""
    t, report = h200.trace(name), h200.report(name)
    raw = t.raw_tables()
    assert raw["overheads"].height + raw["gpu_syncs"].height > 0
    used = t.steps.filter("used").collect()["step"].to_list()
    work = t.activities.filter(pl.col("step").is_in(used)).collect()
    start, dur = as_ns(work["start_ns"].to_numpy()), as_ns(work["dur_ns"].to_numpy())
    busy = sum(ns for (state, _), ns in parts(report).items() if state != "idle")
    assert busy == total(merge(start, start + dur))
    assert profilers(t).height == 1
