"""What a blocking call waited for, and what was left of its time; who asked for it."""

from __future__ import annotations

from typing import Any

import pytest

from gapless.analyses.blocking import STAGED_AT_ONCE_BYTES, Origin, blocking_calls
from gapless.analyses.links import link
from gapless.analyses.study import Study
from gapless.analyses.syncs import RETURN_TOLERANCE_NS, UNTRACED_NS

from .literal import OTHER, SYNC, Row, call, frame, launched, mark, op, raw, steps, studied, work

STREAM, EVENT = "cudaStreamSynchronize", "cudaEventSynchronize"
TO_PAGEABLE = {"kind": "memcpy", "name": "Memcpy DtoH (Device -> Pageable)"}


def explained(s: Study, index: int = 0) -> dict[str, Any]:
    """One blocking call's numbers; the parts are checked to sum to its duration."""
    y = s.syncs
    found = {
        "waited": int(y.waited_activity[index]), "device": int(y.device[index]), "end": int(y.work_end[index]),
        "gpu": int(y.gpu_work[index]), "copy": int(y.copy[index]), "untraced": int(y.untraced[index]),
        "overhead": int(y.overhead[index]), "idle": int(y.idle_after[index]),
    }  # fmt: skip
    assert (
        sum(found[part] for part in ("gpu", "copy", "untraced", "overhead"))
        == s.raw.calls["dur_ns"][int(y.call[index])]
    )
    return found


def test_a_call_waits_for_the_work_launched_before_it_and_returns_a_little_later() -> None:
    calls, activities = launched((0, 10, 50, 300), (600, 610, 700, 800))
    s = studied(calls=[*calls, call(100, 340, SYNC)], activities=activities)
    assert explained(s) == {
        "waited": 0, "device": 0, "end": 300, "gpu": 200, "copy": 0, "untraced": 0, "overhead": 40, "idle": 400,
    }  # fmt: skip


def test_work_launched_after_the_call_began_is_not_what_it_waited_for() -> None:
    # Another thread launches while this one is blocked.
    calls = [call(0, 10, correlation=1), call(100, 340, SYNC), call(150, 160, correlation=2, thread=OTHER)]
    s = studied(calls=calls, activities=[work(50, 200, 1), work(200, 330, 2, stream=8)])
    assert (explained(s)["waited"], explained(s)["end"]) == (0, 200)
    assert (explained(s)["gpu"], explained(s)["overhead"]) == (100, 140)


def test_a_launch_at_the_very_start_of_the_call_was_not_before_it() -> None:
    for launch, waited in ((99, 0), (100, -1)):
        calls = [call(launch, launch + 5, correlation=1, thread=OTHER), call(100, 340, SYNC)]
        assert explained(studied(calls=calls, activities=[work(110, 300, 1)]))["waited"] == waited


def test_an_idle_gpu_leaves_overhead_alone_and_the_idle_time_from_the_calls_start() -> None:
    calls, activities = launched((0, 10, 50, 90), (600, 610, 700, 800))
    s = studied(calls=[*calls, call(100, 140, SYNC)], activities=activities)
    found = explained(s)
    assert (found["waited"], found["end"], found["gpu"], found["overhead"]) == (-1, 100, 0, 40)
    assert found["idle"] == 600


def test_a_copy_counts_where_no_kernel_runs_beside_it() -> None:
    calls, activities = launched((0, 10, 100, 200), (20, 30, 150, 300))
    activities[1] |= {"kind": "memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "stream": 8}
    found = explained(studied(calls=[*calls, call(50, 320, SYNC)], activities=activities))
    assert (found["gpu"], found["copy"], found["overhead"]) == (100, 100, 70)


def test_a_stream_sync_waits_for_the_stream_its_thread_launched_on_last() -> None:
    calls = [call(0, 10, correlation=1), call(20, 30, correlation=2), call(50, 420, STREAM)]
    found = explained(studied(calls=calls, activities=[work(60, 500, 1, stream=8), work(60, 400, 2)]))
    assert (found["waited"], found["end"]) == (1, 400)


def test_a_sync_record_names_the_stream_better_than_the_last_launch_does() -> None:
    calls = [call(0, 10, correlation=1), call(20, 30, correlation=2), call(50, 420, STREAM, 3)]
    activities = [work(60, 390, 1, stream=8), work(60, 400, 2)]
    record = {"start_ns": 50, "dur_ns": 370, "device": 0, "stream": 8, "name": "Stream Sync", "correlation": 3}
    s = studied(calls=calls, activities=activities, gpu_syncs=[record])
    assert s.raw.activities["stream"].to_list() == [7, 8]
    assert (explained(s)["waited"], explained(s)["end"]) == (1, 390)


def test_a_device_sync_waits_for_every_stream() -> None:
    calls = [call(0, 10, correlation=1), call(20, 30, correlation=2), call(50, 420, SYNC)]
    found = explained(studied(calls=calls, activities=[work(60, 415, 1, stream=8), work(60, 400, 2)]))
    assert (found["waited"], found["end"]) == (0, 415)


def test_where_its_own_stream_cannot_be_meant_the_one_that_ends_last_within_the_call_is() -> None:
    # The stream launched on last is busy long after the call returns, so the call waited for another.
    late = 500 + RETURN_TOLERANCE_NS
    calls = [call(0, 10, correlation=1), call(20, 30, correlation=2), call(50, 420, EVENT)]
    activities = [work(60, 300, 1, stream=8), work(60, late, 2)]
    assert explained(studied(calls=calls, activities=activities))["end"] == 300


def test_work_may_end_a_little_after_the_call_but_its_time_is_cut_there() -> None:
    for end, waited in ((420 + RETURN_TOLERANCE_NS, 0), (421 + RETURN_TOLERANCE_NS, -1)):
        calls, activities = launched((0, 10, 60, end))
        found = explained(studied(calls=[*calls, call(50, 420, SYNC)], activities=activities))
        assert found["waited"] == waited
    assert (found["gpu"], found["end"]) == (0, 50)


def test_backlog_without_a_launch_precedes_every_call() -> None:
    found = explained(studied(calls=[call(50, 420, SYNC)], activities=[work(60, 400, 99)]))
    assert (found["waited"], found["gpu"], found["overhead"]) == (0, 340, 30)


def test_later_work_without_a_launch_follows_what_its_stream_ran_before_and_hides_no_earlier_wait() -> None:
    calls, activities = launched((0, 10, 50, 300), (600, 610, 700, 800))
    syncs = [call(100, 340, SYNC), call(650, 1040, SYNC)]
    s = studied(calls=[*calls, *syncs], activities=[*activities, work(800, 1000, 99)])
    assert [explained(s, i)["end"] for i in (0, 1)] == [300, 1000]


def test_the_latest_end_counts_not_the_latest_launch() -> None:
    calls = [call(0, 10, correlation=1), call(20, 30, correlation=2), call(50, 420, STREAM)]
    found = explained(studied(calls=calls, activities=[work(60, 400, 1), work(61, 100, 2)]))
    assert (found["waited"], found["end"]) == (0, 400)


def test_blocking_long_without_any_work_is_untraced_and_unrecorded() -> None:
    calls, activities = launched((0, 10, 50, 100), (900_000, 900_010, 900_020, 900_100))
    s = studied(ops=steps(0, 1_000_000), calls=[*calls, call(60, 500_000, SYNC)], activities=activities)
    found = explained(s)
    assert (found["gpu"], found["untraced"], found["overhead"]) == (40, 499_900, 0)
    assert ("unrecorded", None, 499_900) in s.devices[0].parts.rows()


def test_up_to_the_limit_blocking_without_work_is_the_calls_own() -> None:
    for more, untraced in ((0, 0), (1, UNTRACED_NS + 1)):
        calls, activities = launched((0, 10, 50, 100))
        found = explained(studied(calls=[*calls, call(60, 100 + UNTRACED_NS + more, SYNC)], activities=activities))
        assert found["untraced"] == untraced


def test_a_blocking_copy_waits_for_itself() -> None:
    calls = [call(0, 10, correlation=1), call(20, 430, "cudaMemcpyAsync", 2), call(700, 710, correlation=3)]
    activities = [work(50, 300, 1), work(310, 400, 2, **TO_PAGEABLE), work(720, 730, 3)]
    assert explained(studied(calls=calls, activities=activities)) == {
        "waited": 1, "device": 0, "end": 400, "gpu": 250, "copy": 90, "untraced": 0, "overhead": 70, "idle": 320,
    }  # fmt: skip


def test_two_waits_in_one_idle_stretch_count_it_once() -> None:
    # As reads do it: a blocking copy, then a wait for its stream that finds nothing to wait for; and one more wait.
    calls = [
        call(20, 430, "cudaMemcpyAsync", 2),
        call(440, 450, STREAM),
        call(500, 520, SYNC),
        call(700, 710, correlation=3),
    ]
    s = studied(calls=calls, activities=[work(310, 400, 2, **TO_PAGEABLE), work(720, 730, 3)])
    assert [explained(s, i)["idle"] for i in range(3)] == [320, 0, 0]


def test_a_busy_or_finished_device_is_not_idle_after_the_work() -> None:
    calls = [call(0, 10, correlation=1), call(20, 30, correlation=2), call(50, 310, STREAM, 3)]
    # The stream waited for is done at 300, another one works on: nobody idles.
    record = {"start_ns": 50, "dur_ns": 260, "device": 0, "stream": 7, "name": "Stream Sync", "correlation": 3}
    s = studied(calls=calls, activities=[work(60, 300, 1), work(60, 900, 2, stream=8)], gpu_syncs=[record])
    assert explained(s)["idle"] == 0
    calls, activities = launched((0, 10, 50, 300))
    assert explained(studied(calls=[*calls, call(100, 340, SYNC)], activities=activities))["idle"] == 0


def test_work_of_no_duration_alone_keeps_nobody_busy() -> None:
    found = explained(studied(calls=[call(0, 10, correlation=1), call(20, 50, SYNC)], activities=[work(30, 30, 1)]))
    assert (found["gpu"], found["overhead"], found["idle"]) == (0, 30, 0)


def test_each_device_is_waited_for_apart() -> None:
    calls = [
        call(0, 10, correlation=1), call(20, 30, correlation=2, thread=OTHER),
        call(50, 320, SYNC), call(50, 420, SYNC, thread=OTHER),
    ]  # fmt: skip
    s = studied(calls=calls, activities=[work(60, 300, 1), work(60, 400, 2, device=1)])
    assert [(explained(s, i)["device"], explained(s, i)["end"]) for i in (0, 1)] == [(0, 300), (1, 400)]


def test_a_file_without_gpu_work_explains_nothing_but_stays_exact() -> None:
    found = explained(studied(calls=[call(0, 900_000, SYNC)]))
    assert (found["device"], found["waited"], found["overhead"]) == (-1, -1, 900_000)


def copies(*pairs: tuple[str, int]) -> list[bool]:
    """Which of these asynchronous copies (name, bytes) block?"""
    calls: list[Row] = [call(10 * i, 10 * i + 5, "cudaMemcpyAsync", i + 1) for i in range(len(pairs))]
    activities = [work(1000 + i, 1001 + i, i + 1, kind="memcpy", name=name, size_bytes=size)
                  for i, (name, size) in enumerate(pairs)]  # fmt: skip
    trace = raw(calls=calls, activities=activities)
    return blocking_calls(trace, link(trace)).tolist()


def test_copies_to_pageable_memory_block_and_from_it_above_the_staged_size() -> None:
    up, down = "Memcpy HtoD (Pageable -> Device)", "Memcpy DtoH (Device -> Pageable)"
    assert copies(
        (down, 0), (up, STAGED_AT_ONCE_BYTES), (up, STAGED_AT_ONCE_BYTES + 1), ("Memcpy HtoD (Pinned -> Device)", 1 << 30),
        ("Memcpy DtoH (Device -> Pinned)", 1 << 30), ("Memcpy DtoD (Device -> Device)", 1 << 30),
    ) == [True, False, True, False, False, False]  # fmt: skip


@pytest.mark.parametrize(
    "name", [SYNC, STREAM, EVENT, "hipMemcpyWithStream", "cudaMemcpy", "cudaStreamSynchronize_v2_ptsz"]
)
def test_these_calls_always_block(name: str) -> None:
    assert studied(calls=[call(0, 5, name)]).blocking.tolist() == [True]


@pytest.mark.parametrize(
    "name", ["cudaEventRecord", "cudaStreamWaitEvent", "cudaEventQuery", "cudaMalloc", "cudaLaunchKernel"]
)
def test_these_calls_never_do(name: str) -> None:
    assert studied(calls=[call(0, 5, name)]).blocking.tolist() == [False]


def origin(index: int, **tables: Any) -> Origin:
    s = studied(**tables)
    return Origin(int(s.origin[index]))


def test_a_sync_outside_any_op_is_explicit_inside_one_hidden_and_a_copy_always_hidden() -> None:
    ops = [*steps(0, 1000), op(100, 200, "aten::item")]
    calls = [call(10, 20, SYNC), call(110, 120, STREAM), call(300, 310, "cudaMemcpy"), call(400, 410, STREAM)]
    expected = [Origin.EXPLICIT, Origin.HIDDEN, Origin.HIDDEN, Origin.EXPLICIT]
    assert [origin(i, ops=ops, calls=calls) for i in range(4)] == expected


def test_the_recorders_own_sync_is_after_the_last_step_or_the_last_of_a_file_without_steps() -> None:
    calls, activities = launched((10, 20, 50, 60))
    calls += [call(70, 80, SYNC), call(100, 110, SYNC), call(120, 130, SYNC)]
    tables: dict[str, Any] = {"calls": calls, "activities": activities}
    by_steps = [origin(i, ops=steps(0, 100), **tables) for i in (1, 2, 3)]
    assert by_steps == [Origin.EXPLICIT, Origin.PROFILER, Origin.PROFILER]
    assert [origin(i, **tables) for i in (1, 2, 3)] == [Origin.EXPLICIT, Origin.EXPLICIT, Origin.PROFILER]


def test_a_last_stream_sync_is_never_the_recorders() -> None:
    assert origin(0, ops=steps(0, 100), calls=[call(110, 120, STREAM)]) == Origin.EXPLICIT


def test_a_sync_inside_the_profilers_frames_is_the_recorders() -> None:
    frames = [frame(20, 60, "torch/profiler/profiler.py(900): step"), frame(70, 90, "train.py(1): f")]
    calls = [call(30, 40, SYNC), call(75, 80, SYNC)]
    ops = [mark(0, 100, "ProfilerStep#0")]
    assert [origin(i, ops=ops, frames=frames, calls=calls) for i in (0, 1)] == [Origin.PROFILER, Origin.EXPLICIT]
