"""# recompilation: torch.compile compiles again and again

## What it does
Finds compilation (`dynamo_timed` rows) in most of the recorded steps, and functions that Dynamo looked up and ran eagerly
all the same, because the recompile limit was reached. Compilation in one step of many is a cold step and is left out of
the numbers instead.

## Why it costs
Each new shape or Python value that a guard holds fixed compiles the function anew: hundreds of milliseconds, while the
GPU idles. After `recompile_limit` versions the function runs eagerly. CUDA graphs are recorded anew for each shape too.

## How the gain is computed
What the compiled function will cost is in no trace. Expected: from the guard check to the end of the compiled region
stands one call of 25 to 50 us on the host plus the operators that were really launched, 40 us at most each; kernels that
only tuning ran go; the rest of the step runs warm. Cautious: only compilation and tuning go. Where Dynamo gave up:
as for `graph-break`.

## When it may be wrong
If the shapes really never repeat and dynamic shapes are not supported for this model, bucket or pad them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gapless.analyses.causes import Cause
from gapless.analyses.host import OP
from gapless.replay.program import Program
from gapless.replay.whatif import capture, cut_host, inside_items
from gapless.rules._compiled import LOOKUP, QUICK_CALL, REGION, Span, as_one_call, next_op
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Edit, Found, Outcome
from gapless.tables.coding import matches
from gapless.tables.intervals import Int

CODE = KIND = "recompilation"
MOST = 0.5
LEAST_NS = 200_000.0
"""A call that compiles takes longer than this beyond its launches; one that only looks something up does not."""
WARM_OP_NS = 40_000.0
"""Host time of a launching op is below this once it is warm (H200 hosts: 8 to 30 us)."""
WARM_SHARE, WARMEST_SHARE = 0.6, 0.3
"""What the rest of a step costs warm, as a share of what it cost right after a compilation (H200 hosts: 0.2 to 0.7)."""
GRAPH_CALL_NS, GRAPH_NODE_NS = 70_000.0, 250.0
"""Host time of calling a compiled function that replays its CUDA graph, and GPU time each node costs more (H200)."""
NEXT_CALL_NS = 5_000_000
QUIET_NS = 40_000

FIX = """\
# See which guard fails:
#   TORCH_LOGS=recompiles python train.py

model = torch.compile(model, dynamic=True)              # one version for all sizes
torch._dynamo.mark_dynamic(x, 0)                         # or mark the dimension that changes

# pass changing Python numbers as tensors, or pad inputs to a few sizes:
x = torch.nn.functional.pad(x, (0, 0, 0, -x.shape[0] % 64))
"""


def check(c: Context) -> Outcome:
    """Do most steps compile, or did Dynamo stop compiling?"""
    forest, compiling = c.s.links.forest, compile_roots(c, Cause.COMPILE)
    rows = c.outermost(np.unique(np.concatenate([compiling, compile_roots(c, Cause.AUTOTUNE)])))
    steps = np.unique(np.searchsorted(c.s.steps.start, forest.start[compiling], side="right") - 1)
    if compiling.size == 0 or c.step_count < 2 or steps.size <= MOST * c.step_count:
        return _gave_up(c)
    base, once = c.in_base(rows), once_compiled(c, rows)
    if once is None:
        return _gave_up(c)
    start, end = forest.start[base], forest.end[base]
    total = float((forest.end[rows] - forest.start[rows]).sum()) / c.step_count
    graphs = _records_graphs(c, base)
    what = "CUDA graphs are prepared anew" if graphs else "torch.compile compiles"
    return Found(
        f"{what} in {steps.size} of {c.step_count} steps",
        c.sites(compiling),
        once,
        [f"{compiling.size / c.step_count:.1f} compilations a step, {total / 1e6:.1f} ms with their tuning"],
        "What the function costs once it is compiled is not in the trace.",
        FIX,
        cautious=lambda program: cut_host(program, start, end),
        hopeful=once_compiled(c, rows, WARMEST_SHARE),
        assumptions=[
            "the compiled function is called once, in 25 to 50 us besides its launches (70 us where it replays a graph)",
            "the rest of the step runs faster once it is warm",
        ],
    )


def once_compiled(c: Context, rows: Int, share: float = WARM_SHARE) -> Edit | None:
    """The step once nothing in it compiles or tunes any more (`rows`: those that do); None where none takes long."""
    base = c.in_base(rows)
    spans = _calls(c, base)
    if not spans:
        return None
    if _records_graphs(c, base):
        once = _as_graphs(spans)
    else:
        trials = inside_items(c.program, c.s.links.forest.start[base], c.s.links.forest.end[base])
        once = as_one_call(c, spans, fuse=False, without=trials, most_ns=WARM_OP_NS)
    return lambda program: _warm(once(program), share)


def _warm(program: Program, share: float) -> Program:
    return replace(program, piece_ns=program.piece_ns * share, item_ns=program.item_ns * share)


def _as_graphs(spans: list[Span]) -> Edit:
    def edit(program: Program) -> Program:
        for low, high in (one for span in spans for one in span):
            program = capture(program, low, high, host_ns=GRAPH_CALL_NS, node_ns=GRAPH_NODE_NS)
        return program

    return edit


def _records_graphs(c: Context, rows: Int) -> bool:
    return all("cudagraph" in c.name_of(row).lower() for row in rows.tolist())


def _calls(c: Context, rows: Int) -> list[Span]:
    """The calls of the base step that compile: from the guard check before to the end of the region that then runs."""
    forest = c.s.links.forest
    roots = c.in_base(c.root_ops)
    spans: list[tuple[int, int]] = []
    for top in sorted({c.root_of(row) for row in rows.tolist()}, key=lambda row: int(forest.start[row])):
        mine = roots[forest.thread[roots] == forest.thread[top]]
        spot = int(np.searchsorted(forest.start[mine], forest.start[top]))
        low, high = int(forest.start[top]), int(forest.end[top])
        if spot > 0 and c.name_of(int(mine[spot - 1])) == LOOKUP:
            low = int(forest.start[mine[spot - 1]])
        if spot + 1 < mine.size and _is_wrapper(c)[top]:
            after = int(mine[spot + 1])
            if c.name_of(after).startswith(REGION) and forest.start[after] < high + NEXT_CALL_NS:
                high = int(forest.end[after])
        if spans and low < spans[-1][1]:
            spans[-1] = spans[-1][0], max(spans[-1][1], high)
        else:
            spans.append((low, high))
    return [[span] for span in spans if c.compiled.overhead_ns(*span) >= LEAST_NS]


def _gave_up(c: Context) -> Outcome:
    """Does Dynamo look for compiled code, find none and compile none? So it is once the recompile limit is reached."""
    forest = c.s.links.forest
    lookups = c.op_rows(LOOKUP)
    if lookups.size == 0:
        return Clean()
    eager = np.zeros(forest.source.size, dtype=bool)
    eager[forest.of_op] = matches(c.s.raw.ops["name"], lambda n: n.startswith("aten::"))
    after = next_op(c, lookups)
    found = lookups[(after >= 0) & eager[after] & (forest.start[after] < forest.end[lookups] + QUIET_NS)]
    spans = [[_eager_after(c, eager, row)] for row in c.in_base(found).tolist()]
    steps = np.unique(np.searchsorted(c.s.steps.start, forest.start[found], side="right") - 1)
    if not spans or steps.size <= MOST * c.step_count:
        return Clean()
    return Found(
        f"torch.compile no longer compiles: {found.size / c.step_count:.0f} "
        f"call{'s' if found.size > 1.5 * c.step_count else ''} a step run eagerly",
        c.sites(found),
        as_one_call(c, spans, fuse=True),
        [f"{found.size} of {lookups.size} guard checks are followed by eager operators: no version fits, none is compiled"],
        "Where the function ends is not in the trace: operators after it may be counted.",
        FIX,
        cautious=as_one_call(c, spans, fuse=False),
        hopeful=as_one_call(c, spans, fuse=True, call_share=QUICK_CALL),
        assumptions=["the operators after the guard check belong to the function",
                     "a compiled call takes 25 us of host time besides its launches"],
    )  # fmt: skip


def _eager_after(c: Context, eager: NDArray[np.bool_], lookup: int) -> tuple[int, int]:
    """From a guard check to the end of the eager ops that follow it without a pause."""
    forest = c.s.links.forest
    reached = int(forest.end[lookup])
    level = np.flatnonzero((forest.parent == forest.parent[lookup]) & (forest.thread == forest.thread[lookup]))
    level = level[(forest.source[level] == OP) & (forest.start[level] >= reached)]
    for row in level[np.argsort(forest.start[level], kind="stable")].tolist():
        if not eager[row] or forest.start[row] > reached + QUIET_NS:
            break
        reached = int(forest.end[row])
    return int(forest.start[lookup]), reached


def compile_roots(c: Context, cause: Cause) -> Int:
    """Outermost operators of counted steps that compile (or autotune), the `dynamo` wrapper included."""
    forest = c.s.links.forest
    flag = np.zeros(forest.source.size, dtype=bool)
    suffix = "(dynamo_timed)"
    flag[forest.of_op] = matches(c.s.raw.ops["name"], lambda n: n.endswith(suffix))
    own = flag & (c.s.states.cause_of_row == int(cause)) & (forest.source == OP) & c.counted_rows
    rows = c.outermost(np.flatnonzero(own))
    # The wrapper rows round a compilation (`dynamo`, `entire_frame_compile`) are its own too.
    parent = forest.parent[rows]
    while True:
        grows = (parent >= 0) & _is_wrapper(c)[np.maximum(parent, 0)]
        if not grows.any():
            return np.unique(rows)
        rows = np.where(grows, parent, rows)
        parent = forest.parent[rows]


def _is_wrapper(c: Context) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    forest = c.s.links.forest
    flag = np.zeros(forest.source.size, dtype=bool)
    flag[forest.of_op] = matches(c.s.raw.ops["name"], lambda n: n in ("dynamo", "entire_frame_compile", "inductor"))
    return flag
