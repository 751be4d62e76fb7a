"""T3: recording from the first step on, the GPU starts 2 ms late because the profiler asks for its own buffer.

The text has a second request in the middle of 20 steps; on the H200 one is enough for them (`no_schedule` has two, one a
thread), so the lone gap in mid-run is not to be seen there.
"""

from __future__ import annotations

import polars as pl
import pytest

from .recorded import Recorded, host_work, parts, trust

FILES = {"article/mm64_noskip_eager": 3, "article/mm64_active20": 20}


@pytest.mark.parametrize("name", FILES)
def test_one_request_in_the_first_step_before_its_first_launch(name: str, h200: Recorded) -> None:
    t = h200.trace(name)
    overheads = t.raw_tables()["overheads"].with_columns(pl.col("name").cast(pl.String))
    assert overheads["name"].to_list() == ["Activity Buffer Request"]
    steps = t.steps.collect()
    assert steps.height == FILES[name]
    start, dur = overheads.row(0)[:2]
    launches = t.launches.collect()["start_ns"]
    assert steps["start_ns"][0] < start < start + dur <= launches[0], "one thread: launches come in order"
    assert dur > 0.7 * (launches[0] - steps["start_ns"][0]), "most of the lane's offset"


@pytest.mark.parametrize("name", FILES)
def test_it_is_said_and_counts_neither_as_host_work_nor_as_gpu_work(name: str, h200: Recorded) -> None:
    t, report = h200.trace(name), h200.report(name)
    dur = int(t.raw_tables()["overheads"]["dur_ns"].sum())
    status, detail = trust(report, "profiler-artifact")
    assert status == "note"
    assert f"{dur / 1e6:.2f} ms of the recorder's own overhead rows: never blamed on the program" in detail
    steps = t.steps.collect()
    assert host_work(t)[0] == steps["end_ns"][0] - steps["start_ns"][0] - dur
    assert report["step"]["gpu_busy_ms"] < 0.01


@pytest.mark.parametrize("name", FILES)
def test_the_lanes_offset_is_named_after_it(name: str, h200: Recorded) -> None:
    """The first step alone, from its marker on: what the GPU waited for until its first kernel."""
    t = h200.trace(name)
    spent = parts(h200.report(name, step_marker="ProfilerStep#0$"))
    assert spent["idle", "profiler"] == t.raw_tables()["overheads"]["dur_ns"].sum()
    assert spent["idle", "profiler"] > 0.7 * sum(spent.values())


def test_it_does_not_come_back_in_twenty_steps(h200: Recorded) -> None:
    spent = parts(h200.report("article/mm64_active20"))
    assert ("idle", "profiler") not in spent
    assert {"python", "dispatch", "launch"} < {cause for state, cause in spent if state == "idle"}


def test_without_a_schedule_each_launching_thread_asks_and_the_verdict_says_so(h200: Recorded) -> None:
    t = h200.trace("odd/no_schedule")
    overheads = t.raw_tables()["overheads"]
    report = h200.report("odd/no_schedule")
    assert overheads.height == t.launches.collect()["thread"].n_unique() == 2
    assert parts(report)["idle", "profiler"] == overheads["dur_ns"].sum()
    assert "because of the profiler itself" in report["verdict"]["sentence"]


def test_the_step_without_the_profiler_has_none_of_it(h200: Recorded) -> None:
    step = h200.report("odd/no_schedule")["step"]
    own = int(h200.trace("odd/no_schedule").raw_tables()["overheads"]["dur_ns"].sum()) / 1e6
    assert own > 0.3 * step["wall_ms"]
    assert step["steady_ms"] == step["wall_ms"], "as recorded, it is there"
    assert 0.8 * (step["wall_ms"] - own) < step["unprofiled_ms"] < step["wall_ms"] - own
