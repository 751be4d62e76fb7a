"""What would the step take without the profiler? The recorder's own host time, estimated per event and taken out.

An op's recorded duration excludes the recorder's callbacks: the gap before its start holds the cost of entering (with
one part per tensor argument where shapes are recorded), the gap after its end the cost of leaving. A call's record is
written partly inside the call and partly after it. Frames cost on both sides. Costs come from calibration (see
`model.calibration`), scaled by how fast this host entered ops in this very trace: `host_scale`.
No piece loses more than `1 - FLOOR` of its length. The recorder's own rows (a request for a buffer takes 2 ms) go first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gapless.analyses.call_names import CallClass
from gapless.analyses.causes import PROFILER_OVERHEADS
from gapless.analyses.host import CALL, FRAME, OP
from gapless.analyses.study import Study
from gapless.model.calibration import Calibration
from gapless.replay.engine import Machine
from gapless.replay.program import Program
from gapless.tables.coding import categories, codes, matches, per_category
from gapless.tables.intervals import Int, as_ns, covered, merge

Float = NDArray[np.float64]
FLOOR = 0.15


@dataclass(frozen=True, slots=True)
class Costs:
    """Host nanoseconds that recording adds to one event of each sort, net of the noise that taking the least of several
    steps removes already (see `program`): fitted to 48 H200 traces with measured step times, errors cross-validated by
    case in docs/method.md. A loop of nothing but ops costs more per op (see `model.calibration`): there the least of
    each piece hides nothing.

    `enter`, `leave`: an operator. `row_enter`, `row_leave`: a row that Python code opens (annotations, compiled-region
    rows, Triton launches). `shapes` per operator and `tensor` per tensor argument where shapes are recorded. `call_*`:
    a runtime call. `head`, `tail`: once a step. `graph_node`: host time per node of a replayed graph; `graph_gap`: GPU
    time per node, because the recorder spaces the nodes out.
    """

    enter: float = 200.0
    leave: float = 200.0
    row_enter: float = 20_000.0
    row_leave: float = 12_000.0
    shapes: float = 200.0
    tensor: float = 65.0
    call_inside: float = 325.0
    call_after: float = 3_800.0
    frame: float = 330.0
    head: float = 12_000.0
    tail: float = 2_500.0
    graph_node: float = 760.0
    graph_gap: float = 95.0


@dataclass(frozen=True, slots=True)
class Counts:
    """Recorded events per piece and per item: operators and Python-made rows entered and left, tensors described,
    calls, frames, graph nodes; `own_piece`, `own_item`: nanoseconds of the recorder's own rows inside."""

    entered: Int
    left: Int
    row_entered: Int
    row_left: Int
    tensors: Int
    calls_after: Int
    frames: Int
    inside_call: Int
    item_nodes: Int
    own_piece: Int
    own_item: Int


PYTHON_ROWS = (
    "TorchDynamo Cache Lookup", "Torch-Compiled Region", "Pregraph bytecode", "AOTDispatcher Runtime Wrapper Prologue",
    "## Call CompiledFxGraph", "CompiledFunction", "triton_",
)  # fmt: skip
"""Rows that Python code opens only while a profiler runs; each costs more than an operator's callback."""


def count_events(s: Study, program: Program) -> Counts:
    """How many recorded events does each piece of the program hold?"""
    forest = s.links.forest
    low, high = program.base_start, program.base_end
    inside = (forest.start >= low) & (forest.start < high)
    ops = np.flatnonzero(inside & (forest.source <= OP) & (forest.source != FRAME))
    frames = np.flatnonzero(inside & (forest.source == FRAME))
    calls = np.flatnonzero(inside & (forest.source == CALL))
    before, after = _ending_at(program), _starting_at(program)
    tensors = _tensor_counts(s)
    row = forest.row[ops]
    by_python = matches(s.raw.ops["name"], lambda name: name.startswith(PYTHON_ROWS))[row] | (forest.source[ops] != OP)
    by_python &= forest.start[ops] > low
    operators, rows = ops[~by_python], ops[by_python]
    framed = _bin(program, before(forest.start[frames])) + _bin(program, after(forest.end[frames]))
    is_call = (program.piece_row >= 0) & (forest.source[np.maximum(program.piece_row, 0)] == CALL)
    nodes = np.zeros(program.item_ns.size, dtype=np.int64)
    graph = s.links.call_class[program.item_call] == int(CallClass.GRAPH_LAUNCH)
    nodes[graph] = s.links.activity_count[program.item_call[graph]]
    return Counts(
        _bin(program, before(forest.start[operators])), _bin(program, after(forest.end[operators])),
        _bin(program, before(forest.start[rows])), _bin(program, after(forest.end[rows])),
        _bin(program, before(forest.start[ops]), tensors[row]),
        _bin(program, after(forest.end[calls])), framed, is_call.astype(np.int64), nodes,
        *_recorders_own(s, program),
    )  # fmt: skip


def _recorders_own(s: Study, program: Program) -> tuple[Int, Int]:
    """How much of each piece and of each item's call is covered by rows of the recorder's own overhead?"""
    rows = s.raw.overheads.filter(s.raw.overheads["name"].cast(pl.String).is_in(PROFILER_OVERHEADS))
    start = as_ns(rows["start_ns"].to_numpy())
    own = merge(start, start + as_ns(rows["dur_ns"].to_numpy()))
    call_ns = as_ns(s.raw.calls["dur_ns"].to_numpy())[program.item_call]
    return (
        covered(own, program.piece_start, program.piece_end),
        covered(own, program.item_start, program.item_start + call_ns),
    )


def _ending_at(program: Program) -> Callable[[Int], Int]:
    return lambda times: np.searchsorted(program.piece_end, times, side="left")


def _starting_at(program: Program) -> Callable[[Int], Int]:
    return lambda times: np.searchsorted(program.piece_start, times, side="left")


def _bin(program: Program, piece: Int, weight: Int | None = None) -> Int:
    ok = piece < program.piece_ns.size
    return np.bincount(
        piece[ok], weights=None if weight is None else weight[ok], minlength=program.piece_ns.size
    ).astype(np.int64)


def _tensor_counts(s: Study) -> Int:
    """Tensors in each op's arguments (elements of lists included), by its recorded input dimensions."""
    column = s.raw.ops["input_dims"]
    return per_category(column, lambda text: text.count("[") - 1, null=0).clip(min=0)


REFERENCE_GAPS_NS: dict[tuple[str, str], float] = {
    ("aten::t", "aten::transpose"): 803.0,
    ("aten::transpose", "aten::as_strided"): 1_243.0,
    ("aten::reshape", "aten::view"): 971.0,
    ("aten::linear", "aten::t"): 1_204.0,
    ("aten::matmul", "aten::mm"): 900.0,
    ("aten::empty_like", "aten::empty_strided"): 2_690.0,
    ("aten::select", "aten::as_strided"): 1_807.0,
    ("aten::conv2d", "aten::convolution"): 2_204.0,
}
"""Median time from an op's start to its first child's on an H200 host (torch 2.11, shapes on, no stacks)."""


def host_scale(s: Study, program: Program) -> float:
    """How slow is this host at recording, against the calibration's: median ratio of entering gaps; 1 if unknown.

    Files in whole microseconds cannot tell: such gaps are about one unit of theirs.
    """
    if s.raw.meta.integer_us:
        return 1.0
    forest = s.links.forest
    inside = np.flatnonzero(
        (forest.source == OP) & (forest.start >= program.base_start) & (forest.start < program.base_end)
    )
    parent = forest.parent[inside]
    ok = (parent >= 0) & (forest.source[np.maximum(parent, 0)] == OP)
    child, parent = inside[ok], parent[ok]
    first = np.zeros(child.size, dtype=bool)
    first[np.unique(parent, return_index=True)[1]] = True
    child, parent = child[first], parent[first]
    names, code = categories(s.raw.ops["name"]), codes(s.raw.ops["name"])
    gap = forest.start[child] - forest.start[parent]
    pairs = zip(code[forest.row[parent]].tolist(), code[forest.row[child]].tolist(), gap.tolist(), strict=True)
    found: dict[tuple[str, str], list[float]] = {}
    for outer, inner, ns in pairs:
        key = names[outer], names[inner]
        if key in REFERENCE_GAPS_NS and ns > 0:
            found.setdefault(key, []).append(ns)
    if not found:
        return 1.0
    ratios = [float(np.median(values)) / REFERENCE_GAPS_NS[key] for key, values in found.items()]
    weights = [min(len(values), 20) for values in found.values()]
    return float(np.exp(np.average(np.log(ratios), weights=weights)))


SCALE_POWER, SCALE_LOW, SCALE_HIGH = 3.0, 0.75, 1.5


def recording_scale(scale: float) -> float:
    """By how much the recorder's costs exceed the usual, given `host_scale`.

    A host that enters ops 1.4 times slower than usual has been seen to spend 2.5 times as much on recording: the
    callbacks allocate and touch cold memory, ordinary dispatch does so less. Fitted, flat between powers 3 and 3.5.
    """
    return float(min(max(scale, SCALE_LOW), SCALE_HIGH) ** SCALE_POWER)


def without_profiler(program: Program, counts: Counts, costs: Costs, scale: float) -> Program:
    """The program with the recorder's host time taken out."""
    cost = scale * (
        costs.enter * counts.entered
        + costs.leave * counts.left
        + costs.row_enter * counts.row_entered
        + costs.row_leave * counts.row_left
        + costs.tensor * counts.tensors
        + costs.shapes * np.where(counts.tensors > 0, counts.entered, 0)
        + costs.call_after * counts.calls_after
        + costs.call_inside * counts.inside_call
        + costs.frame / 2 * counts.frames
    )
    if cost.size:
        cost[0] += costs.head
        cost[-1] += costs.tail
    # Of aligned steps the least may be one without such a row: it is taken out of the length in the base step.
    rest = (program.piece_end - program.piece_start - counts.own_piece).astype(np.float64)
    pieces = np.where(counts.own_piece > 0, np.minimum(program.piece_ns, rest), program.piece_ns)
    pieces = np.maximum(pieces - cost, FLOOR * pieces)
    inside = scale * costs.call_inside + costs.graph_node * counts.item_nodes
    items = np.maximum(program.item_ns - counts.own_item, 0.0)
    items = np.maximum(items - inside, FLOOR * items)
    nodes = np.where(program.act_nodes > 1, program.act_nodes, 0)
    activities = np.maximum(program.act_ns - costs.graph_gap * nodes, 0.5 * program.act_ns)
    return replace(program, piece_ns=pieces, item_ns=items, act_ns=activities)


def machine_of(s: Study) -> Machine:
    """The machine's constants as this trace shows them, with the H200's where it does not."""
    start = as_ns(s.raw.activities["start_ns"].to_numpy())
    end = start + as_ns(s.raw.activities["dur_ns"].to_numpy())
    stream, device = as_ns(s.raw.activities["stream"].to_numpy()), as_ns(s.raw.activities["device"].to_numpy())
    order = np.lexsort((start, stream, device))
    here, before = order[1:], order[:-1]
    call = s.links.launch_of[here]
    call_end = as_ns((s.raw.calls["start_ns"] + s.raw.calls["dur_ns"]).to_numpy())
    queued = (stream[here] == stream[before]) & (device[here] == device[before]) & (call >= 0)
    queued &= call != s.links.launch_of[before]
    queued[queued] &= call_end[call[queued]] + QUEUED_AHEAD_NS < end[before][queued]
    spacing = float(np.median(np.maximum(start[here] - end[before], 0)[queued])) if queued.sum() >= 5 else SPACING_NS
    pending = s.syncs.waited_activity >= 0
    c1 = as_ns((s.raw.calls["start_ns"] + s.raw.calls["dur_ns"]).to_numpy())[s.syncs.call]
    returns = (c1 - s.syncs.work_end)[pending]
    back = float(np.median(np.clip(returns, 0, 50_000))) if returns.size >= 3 else RETURN_NS
    delay = float(s.launches.usual_delay_ns) or DELAY_NS
    return Machine(min(delay, 20_000.0), spacing, back)


SPACING_NS, RETURN_NS, DELAY_NS, QUEUED_AHEAD_NS = 1_200.0, 3_100.0, 2_200.0, 5_000
"""H200, CUDA 13: back-to-back kernels, return of a sync, launch end to kernel start; a launch that ended this long
before the previous kernel did was queued for certain."""


def costs_for(s: Study, stored: Calibration | None = None) -> Costs:
    """The recorder's costs for a trace: those its own metadata measured where present, else `stored` (a measurement of
    the machine it comes from), else the H200's.

    A calibration measures operators, frames and graph nodes directly; they scale the fitted costs by the ratio to the
    default machine's.
    """
    base, there = Costs(), Calibration()
    here = own_calibration(s) or stored
    if here is None or not here.measured:
        return base
    op, call = _ratio(here.op_ns, there.op_ns), _ratio(here.call_ns, there.call_ns)
    return replace(
        base,
        enter=base.enter * op,
        leave=base.leave * op,
        row_enter=base.row_enter * op,
        row_leave=base.row_leave * op,
        shapes=base.shapes * _ratio(here.op_shapes_ns, there.op_shapes_ns),
        tensor=base.tensor * _ratio(here.tensor_shape_ns, there.tensor_shape_ns),
        call_inside=base.call_inside * call,
        call_after=base.call_after * call,
        frame=max(here.frame_ns, 0.0),
        graph_node=max(here.graph_node_ns, 0.0),
    )


def own_calibration(s: Study) -> Calibration | None:
    """What the trace's own metadata measured of the recorder's costs."""
    data = (s.raw.meta.recorder or {}).get("calibration")
    found = Calibration.from_json(data) if isinstance(data, dict) else None
    return found if found is not None and found.measured else None


def _ratio(measured: float, default: float) -> float:
    return min(max(measured / default, 0.3), 3.0) if default > 0 else 1.0
