"""What a gap waited for, instant by instant: the launching thread's doing, the launch, latency, and the rest."""

from __future__ import annotations

from typing import Any

from gapless.analyses.gaps import GAP_CAUSES

from .literal import AUTOGRAD, LAUNCH, OTHER, SYNC, Row, call, frame, launched, mark, op, studied, work

WHOLE = mark(0, 10_000, "ProfilerStep#0")


def gaps(device: int = 0, **tables: Any) -> list[tuple[int, int, str]]:
    """Rows (start, end, cause) of a device's gaps that begin after its first 200 ns."""
    tables["ops"] = [WHOLE, *tables.get("ops", ())]
    account = studied(**tables).devices[device]
    rows = account.gaps.select("start_ns", "end_ns", "cause").rows()
    return [(s, e, GAP_CAUSES[c]) for s, e, c in rows if s >= 200]


def between(*doing: Row, launch: tuple[int, int] = (1000, 1100), start: int = 1100) -> list[tuple[int, int, str]]:
    """The gap from 200 to `start`, the second kernel launched by `launch`, on an otherwise empty stream."""
    calls, activities = launched((0, 100, 100, 200), (*launch, start, 10_000))
    ops = [row for row in doing if "kind" in row]
    frames = [row for row in doing if "python_id" in row]
    calls += [row for row in doing if "api" in row]
    return gaps(ops=ops, frames=frames, calls=calls, activities=activities)


def test_before_the_launch_the_gap_is_what_its_thread_did() -> None:
    assert between(
        op(300, 400, "aten::empty"),
        op(500, 1100, "aten::mul"),
        mark(420, 480, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
        call(600, 700, "cudaMalloc"),
    ) == [
        (200, 300, "python"),
        (300, 400, "dispatch"),
        (400, 420, "python"),
        (420, 480, "dataloader"),
        (480, 500, "python"),
        (500, 600, "dispatch"),
        (600, 700, "alloc"),
        (700, 1000, "dispatch"),
        (1000, 1100, "launch"),
    ]


def test_every_call_that_takes_time_has_its_cause() -> None:
    calls = (
        ("cudaFree", "free"), ("cudaHostAlloc", "pin"), ("cudaEventRecord", "event"), ("cudaStreamWaitEvent", "event"),
        ("cuModuleLoadData", "module-load"), ("cudaMemsetAsync", "launch"), ("cudaMemcpyAsync", "copy-call"),
    )  # fmt: skip
    rows = between(*(call(300 + 100 * i, 400 + 100 * i, name) for i, (name, _) in enumerate(calls)))
    assert [cause for _, _, cause in rows if cause != "python"] == [*(cause for _, cause in calls), "launch"]


def test_blocked_after_the_gpu_had_finished_is_the_return_of_the_sync() -> None:
    rows = between(call(120, 450, SYNC))
    assert rows == [(200, 450, "sync-return"), (450, 1000, "python"), (1000, 1100, "launch")]


def test_the_launch_call_itself_counts_by_its_kind() -> None:
    for name, cause in ((LAUNCH, "launch"), ("cudaGraphLaunch", "graph-launch"), ("cudaMemcpyAsync", "copy-call")):
        calls, activities = launched((0, 100, 100, 200), (300, 700, 700, 10_000), name=name)
        assert gaps(calls=calls, activities=activities) == [(200, 300, "python"), (300, 700, cause)]


def test_after_the_launch_comes_the_usual_latency_and_the_rest_is_queue() -> None:
    # Launches onto an idle stream start 50, 50 and 400 ns after their call ends: usually 50.
    calls, activities = launched((0, 100, 150, 200), (300, 400, 450, 500), (600, 700, 1100, 10_000))
    assert gaps(calls=calls, activities=activities) == [
        (200, 300, "python"),
        (300, 400, "launch"),
        (400, 450, "latency"),
        (500, 600, "python"),
        (600, 700, "launch"),
        (700, 750, "latency"),
        (750, 1100, "queue"),
    ]


def test_where_streams_wait_for_each_other_the_rest_is_dependency() -> None:
    calls, activities = launched((0, 100, 150, 200), (300, 400, 450, 500), (600, 700, 1100, 10_000))
    calls += [call(550, 560, "cudaStreamWaitEvent"), call(562, 565, correlation=50)]
    activities.append(work(160, 200, 50, stream=20))
    assert gaps(calls=calls, activities=activities)[-1] == (750, 1100, "dependency")
    # Two streams without any wait between them depend on nothing.
    assert gaps(calls=calls[:3] + calls[4:], activities=activities)[-1] == (750, 1100, "queue")


def test_inside_a_graph_the_rest_is_dependency_before_it_queue() -> None:
    # Delays of 50 and 300 ns: the usual one is 175.
    calls = [call(0, 100, "cudaGraphLaunch", 1), call(300, 400, "cudaGraphLaunch", 2)]
    nodes = [work(150, 200, 1), work(700, 800, 2), work(1000, 10_000, 2)]
    assert gaps(calls=calls, activities=nodes) == [
        (200, 300, "python"),
        (300, 400, "graph-launch"),
        (400, 575, "latency"),
        (575, 700, "queue"),
        (800, 975, "latency"),
        (975, 1000, "dependency"),
    ]


def test_a_graph_whose_first_nodes_start_together_queues_before_them() -> None:
    calls = [call(0, 100, "cudaGraphLaunch", 1), call(300, 400, "cudaGraphLaunch", 2)]
    nodes = [work(150, 200, 1), work(700, 10_000, 2), work(700, 800, 2, stream=8)]
    assert (575, 700, "queue") in gaps(calls=calls, activities=nodes)


def test_a_gap_before_work_without_a_launch_is_unrecorded_not_idle() -> None:
    calls, activities = launched((0, 100, 100, 200))
    s = studied(ops=[WHOLE], calls=calls, activities=[*activities, work(500, 10_000, 99)])
    assert s.devices[0].gaps.height == 1  # from the marker's start to the first kernel
    assert ("unrecorded", None, 300) in s.devices[0].parts.rows()


def test_a_gap_that_nothing_ends_is_what_the_main_thread_did() -> None:
    calls, activities = launched((0, 100, 100, 200))
    rows = gaps(ops=[op(400, 9000, "aten::sort")], calls=calls, activities=activities)
    assert rows[-3:] == [(200, 400, "python"), (400, 9000, "dispatch"), (9000, 10_000, "python")]


def test_while_the_main_thread_waits_for_autograd_the_gap_is_autograds_doing() -> None:
    node = op(300, 900, "autograd::engine::evaluate_function: MulBackward0", AUTOGRAD)
    rows = between(node, call(500, 600, "cudaMalloc", thread=AUTOGRAD))
    assert rows == [
        (200, 300, "python"),
        (300, 500, "autograd"),
        (500, 600, "alloc"),
        (600, 900, "autograd"),
        (900, 1000, "python"),
        (1000, 1100, "launch"),
    ]


def test_on_another_thread_silence_is_untraced() -> None:
    calls = [call(0, 100, correlation=1), call(1000, 1100, correlation=2, thread=OTHER)]
    rows = gaps(ops=[op(400, 500, thread=OTHER)], calls=calls, activities=[work(100, 200, 1), work(1100, 10_000, 2)])
    assert rows == [(200, 400, "untraced"), (400, 500, "dispatch"), (500, 1000, "untraced"), (1000, 1100, "launch")]


def test_work_queued_before_the_gap_still_takes_the_usual_latency_to_start() -> None:
    calls, activities = launched((0, 100, 150, 1000), (120, 200, 1300, 10_000))
    assert gaps(calls=calls, activities=activities) == [(1000, 1050, "latency"), (1050, 1300, "queue")]


def test_regions_of_the_optimizer_guards_and_the_collector() -> None:
    assert between(
        mark(250, 500, "Optimizer.step#Adam.step"),
        op(300, 320, "aten::add"),
        op(510, 600, "TorchDynamo Cache Lookup"),
        frame(700, 800, "Python GC"),
    ) == [
        (200, 250, "python"),
        (250, 300, "optimizer"),
        (300, 320, "optimizer"),  # what an op inside does, it does for the optimizer
        (320, 500, "optimizer"),
        (500, 510, "python"),
        (510, 600, "guard"),
        (600, 700, "python"),
        (700, 800, "gc"),
        (800, 1000, "python"),
        (1000, 1100, "launch"),
    ]
