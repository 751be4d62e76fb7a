"""One owner an instant: windows cut at the same phase, states by priority, and a host thread's parts."""

from __future__ import annotations

from typing import Any

import pytest

from gapless.analyses.accounting import HOST_STATES, account_host, device_pieces
from gapless.analyses.study import Study, StudyOptions
from gapless.tables.intervals import as_ns
from gapless.tables.segments import empty_line

from .literal import AUTOGRAD, OTHER, SYNC, call, frame, launched, mark, op, overhead, pieces, raw, steps, studied, work


def parts(s: Study, device: int = 0) -> dict[tuple[str, str | None], int]:
    """Nanoseconds by (state, cause); the sum is checked."""
    account = s.devices[device]
    found = {(state, cause): ns for state, cause, ns in account.parts.rows()}
    assert sum(found.values()) == account.wall_ns
    return found


def host(s: Study, thread: int) -> dict[tuple[str, str], int]:
    rows = [row for row in s.syncs.call.tolist() if s.raw.calls["thread"][row] == thread]
    start = as_ns(s.raw.calls["start_ns"].to_numpy())[rows]
    line = (start, start + as_ns(s.raw.calls["dur_ns"].to_numpy())[rows],
            as_ns(s.raw.calls["name"].to_physical().to_numpy())[rows]) if rows else empty_line()  # fmt: skip
    return {(state, detail): ns for state, detail, ns in account_host(s.raw, s.states, s.steps, thread, line).rows()}


def test_each_used_step_owns_the_time_from_its_first_work_to_that_of_the_next() -> None:
    calls, activities = launched((10, 20, 150, 160), (50, 60, 170, 200), (110, 120, 210, 300), (220, 230, 330, 340))
    s = studied(ops=steps(0, 100, 200, 300), calls=calls, activities=activities)
    assert pieces(device_pieces(s.raw, s.steps, 0)) == [(150, 210, 0), (210, 330, 1)]
    assert s.devices[0].wall_ns == 180


def test_a_step_without_work_on_the_device_begins_at_its_marker() -> None:
    calls, activities = launched((10, 20, 50, 60), (210, 220, 250, 260))
    s = studied(ops=steps(0, 100, 200, 300), calls=calls, activities=activities)
    assert pieces(device_pieces(s.raw, s.steps, 0)) == [(50, 100, 0), (100, 250, 1)]


def test_one_step_lasts_from_its_marker_to_the_later_of_its_end_and_its_last_work() -> None:
    calls, activities = launched((10, 20, 50, 400))
    assert pieces(studied(ops=steps(0, 100), calls=calls, activities=activities).devices[0].pieces) == [(0, 400, 0)]
    calls, activities = launched((10, 20, 50, 60))
    assert pieces(studied(ops=steps(0, 100), calls=calls, activities=activities).devices[0].pieces) == [(0, 100, 0)]


def test_without_markers_the_window_holds_all_work() -> None:
    s = studied(ops=[op(50, 80)], activities=[work(20, 30), work(75, 200)])
    assert pieces(s.devices[0].pieces) == [(20, 200, 0)]


def test_a_step_asked_for_is_the_window_alone() -> None:
    calls, activities = launched((10, 20, 50, 60), (110, 120, 150, 160), (210, 220, 250, 290))
    tables: dict[str, Any] = {"ops": steps(0, 100, 200, 300), "calls": calls, "activities": activities}
    assert pieces(studied(StudyOptions(step=1), **tables).devices[0].pieces) == [(150, 250, 1)]
    assert pieces(studied(StudyOptions(step=2), **tables).devices[0].pieces) == [(250, 300, 2)]


def test_compute_wins_over_communication_over_copies_over_idleness() -> None:
    nccl = {"name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "stream": 8}
    copy = {"kind": "memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "stream": 9}
    calls = [call(0, 0, correlation=i) for i in (1, 2, 3, 4)]
    s = studied(
        ops=steps(0, 1000),
        calls=calls,
        activities=[work(0, 300, 1), work(200, 500, 2, **nccl), work(400, 700, 3, **copy),
                    work(800, 1000, 4, kind="memset", name="Memset (Device)")],
    )  # fmt: skip
    found = parts(s)
    assert found["compute", None] == 500  # a memset computes
    assert found["communication", None] == 200
    assert found["copy", None] == 200
    assert sum(ns for (state, _), ns in found.items() if state == "idle") == 100


def test_time_of_lost_records_is_unrecorded_but_work_that_was_recorded_wins() -> None:
    calls, activities = launched((0, 10, 20, 100), (900, 910, 920, 1000))
    calls += [call(at, at + 5, correlation=90 + at) for at in (50, 200, 300)]
    assert parts(studied(ops=steps(0, 1000), calls=calls, activities=activities)) == {
        ("compute", None): 160,
        ("unrecorded", None): 800,  # from the end of the first kernel to the launch that was recorded
        ("idle", "latency"): 20,
        ("idle", "launch"): 20,
    }


def test_two_launches_without_records_are_scattered_and_change_nothing() -> None:
    calls, activities = launched((0, 10, 20, 100), (900, 910, 920, 1000))
    calls += [call(at, at + 5, correlation=90 + at) for at in (200, 300)]
    assert ("unrecorded", None) not in parts(studied(ops=steps(0, 1000), calls=calls, activities=activities))


def test_devices_are_accounted_apart() -> None:
    calls = [call(0, 10, correlation=1), call(10, 20, correlation=2)]
    s = studied(ops=steps(0, 1000), calls=calls, activities=[work(20, 520, 1), work(30, 1000, 2, device=1)])
    assert (parts(s)["compute", None], parts(s, 1)["compute", None]) == (500, 970)
    assert s.busiest == 1
    assert list(
        studied(StudyOptions(device=0), ops=steps(0, 9), activities=[work(0, 5), work(0, 9, device=1)]).devices
    ) == [0]


def test_a_main_thread_works_waits_and_launches() -> None:
    s = studied(
        ops=[*steps(0, 1000, 1001), op(100, 400, "aten::mul"), op(600, 700, "aten::item")],
        calls=[call(200, 300, correlation=1), call(610, 690, SYNC), call(800, 900, "cudaGraphLaunch", 2),
               call(920, 930, "cudaMalloc")],
        activities=[work(310, 650, 1), work(900, 950, 2)],
    )  # fmt: skip
    assert host(s, 0) == {
        ("work", "python"): 490,
        ("work", "dispatch"): 220,
        ("work", "alloc"): 10,
        ("launch", "launch"): 100,
        ("launch", "graph-launch"): 100,
        ("wait", SYNC): 80,
    }
    assert {state for state, _ in host(s, 0)} <= set(HOST_STATES)


def test_silence_of_other_threads_is_outside_and_main_waits_for_autograd() -> None:
    node = op(100, 600, "autograd::engine::evaluate_function: MulBackward0", AUTOGRAD)
    s = studied(ops=[*steps(0, 1000, 1001), node, op(300, 350, "aten::add"), op(50, 60, thread=OTHER)])
    assert host(s, 0) == {("wait", "autograd thread"): 450, ("work", "python"): 500, ("work", "dispatch"): 50}
    assert host(s, AUTOGRAD) == {("outside", ""): 500, ("work", "autograd"): 500}
    assert host(s, OTHER) == {("outside", ""): 990, ("work", "dispatch"): 10}


def test_the_recorders_overhead_and_full_queues_are_states_of_their_own() -> None:
    s = studied(
        ops=[*steps(0, 1000, 1001), op(100, 900)],
        overheads=[overhead(200, 300, "Activity Buffer Request"), overhead(400, 700, "Command Buffer Full")],
    )
    assert host(s, 0) == {
        ("profiler", "recorder"): 100,
        ("queue-full", "launch queue"): 300,
        ("work", "dispatch"): 400,
        ("work", "python"): 200,
    }


def test_a_host_windows_runs_from_marker_to_marker_and_leaves_the_closing_step_out() -> None:
    ops = [mark(0, 90, "ProfilerStep#0"), mark(100, 190, "ProfilerStep#1"), mark(200, 290, "ProfilerStep#2")]
    s = studied(ops=ops, frames=[frame(95, 150, "torch/optim/sgd.py(1): step")])
    assert host(s, 0) == {("work", "python"): 145, ("work", "optimizer"): 55}


@pytest.mark.parametrize("thread", [0, AUTOGRAD, OTHER])
def test_calls_that_cross_ops_and_last_no_time_still_add_up(thread: int) -> None:
    ops = [*steps(0, 1000, 1001), op(100, 400, thread=thread), op(300, 600, thread=thread), op(500, 500, thread=thread)]
    calls = [call(350, 450, thread=thread), call(440, 5000, SYNC, thread=thread)]
    assert sum(host(studied(ops=ops, calls=calls), thread).values()) == 1000


def test_a_file_without_work_has_no_device() -> None:
    assert studied(ops=steps(0, 100)).devices == {}
    assert raw(ops=steps(0, 100)).activities.height == 0
