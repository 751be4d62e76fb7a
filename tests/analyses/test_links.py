"""Who launched what, inside what: by correlation and by nesting, never by anything else."""

from __future__ import annotations

import numpy as np

from gapless.analyses.links import Links, launcher_names, link
from gapless.ingest.raw import RawTrace

from .literal import AUTOGRAD, call, frame, mark, op, raw, work


def names(trace: RawTrace, rows: np.ndarray, table: str = "ops") -> list[str | None]:
    """Names of these rows of a table, None for -1."""
    column = getattr(trace, table)["name"]
    return [None if row < 0 else str(column[row]) for row in rows.tolist()]


def linked(**tables: object) -> tuple[RawTrace, Links]:
    trace = raw(**tables)  # type: ignore[arg-type]
    return trace, link(trace)


def test_work_belongs_to_the_call_with_its_correlation_whatever_the_order_of_time() -> None:
    _, links = linked(
        calls=[call(0, 5, correlation=9), call(10, 15, correlation=4), call(20, 25, correlation=6)],
        activities=[work(8, 30, 4), work(40, 50, 9), work(60, 70, 5)],
    )
    assert links.launch_of.tolist() == [1, 0, -1]
    assert links.first_activity.tolist() == [1, 0, -1]
    assert links.activity_count.tolist() == [1, 1, 0]


def test_zero_and_negative_correlations_never_link() -> None:
    _, links = linked(
        calls=[call(0, 5, correlation=0), call(10, 15, correlation=-1), call(20, 25, correlation=-7)],
        activities=[work(30, 40, 0), work(50, 60, -1), work(70, 80, -7)],
    )
    assert links.launch_of.tolist() == [-1, -1, -1]
    assert links.activity_count.tolist() == [0, 0, 0]


def test_a_graph_launch_owns_all_its_nodes_and_the_first_to_start_is_its_first() -> None:
    _, links = linked(
        calls=[call(0, 5, "cudaGraphLaunch", 3), call(10, 15, correlation=4)],
        activities=[
            work(40, 50, 3, stream=7),
            work(20, 90, 3, stream=13),
            work(20, 30, 3, stream=7),
            work(95, 99, 4),
        ],
    )
    # The table's order is (start, longest first): the two that start at 20 tie, the longer one is the first row.
    assert links.launch_of.tolist() == [0, 0, 0, 1]
    assert links.first_activity.tolist() == [0, 3]
    assert links.activity_count.tolist() == [3, 1]


def test_of_two_calls_with_one_correlation_the_runtime_call_is_the_launch() -> None:
    _, links = linked(
        calls=[call(0, 9, "zeCommandListAppendLaunchKernel", 5, api="driver"), call(1, 8, "urEnqueueKernelLaunch", 5)],
        activities=[work(20, 30, 5)],
    )
    assert links.launch_of.tolist() == [1]
    assert links.activity_count.tolist() == [0, 1]


def test_a_call_lies_in_the_innermost_op_and_the_user_wrote_the_outermost() -> None:
    trace, links = linked(
        ops=[op(0, 100, "aten::linear"), op(10, 90, "aten::addmm"), op(110, 120, "aten::relu")],
        calls=[call(20, 30), call(95, 99), call(105, 109), call(112, 113)],
    )
    assert names(trace, links.op_of_call) == ["aten::addmm", "aten::linear", None, "aten::relu"]
    assert names(trace, links.top_op_of_call) == ["aten::linear", "aten::linear", None, "aten::relu"]


def test_wrappers_of_engine_and_compiler_are_not_what_the_user_wrote() -> None:
    trace, links = linked(
        ops=[
            op(0, 100, "autograd::engine::evaluate_function: MmBackward0"),
            op(5, 95, "MmBackward0"),
            op(10, 90, "aten::mm"),
            op(200, 300, "Torch-Compiled Region: 0/0"),
            op(210, 290, "CompiledFunction"),
        ],
        calls=[call(20, 30), call(220, 230)],
    )
    assert names(trace, links.top_op_of_call) == ["MmBackward0", "CompiledFunction"]
    assert names(trace, links.op_of_call) == ["aten::mm", "CompiledFunction"]


def test_nesting_is_by_thread() -> None:
    trace, links = linked(
        ops=[op(0, 100, "aten::mm"), op(0, 100, "MulBackward0", AUTOGRAD)],
        calls=[call(20, 30), call(20, 30, thread=AUTOGRAD)],
    )
    assert names(trace, links.op_of_call) == ["aten::mm", "MulBackward0"]


def test_annotation_frame_and_module_are_the_innermost_of_their_kind() -> None:
    trace, links = linked(
        ops=[mark(0, 100, "ProfilerStep#0"), mark(10, 60, "forward"), op(30, 50, "aten::mm")],
        frames=[
            frame(1, 99, "train.py(1): step"),
            frame(11, 59, "nn.Module: Net_0"),
            frame(20, 55, "nn.Module: Linear_0"),
            frame(25, 52, "torch/nn/functional.py(9): linear"),
        ],
        calls=[call(35, 40), call(70, 80), call(120, 130)],
    )
    assert names(trace, links.annotation_of_call) == ["forward", "ProfilerStep#0", None]
    assert names(trace, links.frame_of_call, "frames") == [
        "torch/nn/functional.py(9): linear",
        "train.py(1): step",
        None,
    ]
    assert names(trace, links.module_of_call, "frames") == ["nn.Module: Linear_0", None, None]


def test_a_call_that_outlasts_its_op_by_a_microsecond_still_lies_in_it_and_by_more_does_not() -> None:
    trace, links = linked(
        ops=[op(0, 10_000, "aten::a"), op(20_000, 30_000, "aten::b")], calls=[call(5000, 11_000), call(25_000, 31_001)]
    )
    assert names(trace, links.op_of_call) == ["aten::a", None]


def test_backward_ops_find_the_last_forward_op_of_their_number_that_began_before_them() -> None:
    trace = raw(
        ops=[
            op(0, 5, "first", seq=4, fwd_thread=0),
            op(10, 15, "second", seq=4, fwd_thread=0),
            op(20, 25, "other", seq=5, fwd_thread=0),
            op(100, 105, "late", seq=4, fwd_thread=0),
            op(50, 55, "MulBackward0", AUTOGRAD, seq=4, fwd_thread=1),
            op(60, 65, "NoneBackward0", AUTOGRAD, seq=9, fwd_thread=1),
            op(70, 75, "EarlyBackward0", AUTOGRAD, seq=5, fwd_thread=1),
            op(80, 85, "aten::mul", AUTOGRAD),
        ]
    )
    found = dict(zip(trace.ops["name"].to_list(), names(trace, link(trace).forward_op), strict=True))
    assert {name: forward for name, forward in found.items() if forward} == {
        "MulBackward0": "second",
        "EarlyBackward0": "other",
    }


def test_the_launcher_of_work_is_named_and_unlinked_work_has_none() -> None:
    trace, links = linked(
        ops=[op(0, 100, "aten::linear", input_dims="[[2, 2]]"), op(10, 90, "aten::addmm", input_dims="[[3, 3]]")],
        calls=[call(20, 30, correlation=1), call(110, 120, correlation=2)],
        activities=[work(40, 50, 1), work(130, 140, 2), work(150, 160, 8)],
    )
    columns = ("call", "op_name", "top_op_name", "input_dims")
    assert launcher_names(trace, links).select(columns).rows() == [
        (0, "aten::addmm", "aten::linear", "[[3, 3]]"),
        (1, None, None, None),
        (-1, None, None, None),
    ]


def test_gpu_work_alone_has_no_launcher() -> None:
    trace, links = linked(activities=[work(0, 10, 1)], threads=0)
    assert links.launch_of.tolist() == [-1]
    assert launcher_names(trace, links).select("call", "op", "op_name").rows() == [(-1, -1, None)]
