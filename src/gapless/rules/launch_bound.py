"""# launch-bound: kernels are shorter than what it takes to launch them

## What it does
Finds steps whose host work (dispatching operators, launching) takes longer than all of the GPU's work.

## Why it costs
The GPU finishes each kernel before the next one arrives and idles in between: the step runs at the host's pace, and
faster kernels change nothing.

## How the gain is computed
Inference: every stretch of launches that a CUDA graph could hold (no wait, no allocation, no data loading, no long Python
inside) is replaced by one graph launch: 20 us on the host, 0.25 us a kernel on the GPU. Cautious: `torch.compile` without
graphs, which leaves half of the dispatch. Training: graphs of a whole step are rarely possible, so half of the dispatch
is the expectation, a quarter the cautious and a graph the hopeful one. Hopeful for inference: compiled code needs none of
the waits between the launches, so that one graph holds them all. What is bound by the GPU stays bound by it.

## When it may be wrong
Shapes that change every step, data-dependent control flow, and code that allocates outside PyTorch's pool cannot be
captured. Where the profiler inflates host time, the unprofiled step may be less launch-bound than it looks.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gapless.analyses.causes import Cause
from gapless.analyses.host import OP
from gapless.replay.engine import run
from gapless.replay.program import NONE, Program
from gapless.replay.whatif import capture
from gapless.rules._stalls import stalls
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Found, Outcome
from gapless.tables.intervals import as_ns

CODE = KIND = "launch-bound"
HOST_OVER_GPU = 1.15
"""Host work must exceed GPU work by this much: below it the verdict flips with the noise of host times."""
MIN_LAUNCHES = 3
MIN_SHARE, MIN_RUN = 0.25, 16
"""A graph is worth capturing for a quarter of the launches or for so many; waits that cut the step finer must go first."""
GRAPH_HOST_NS, GRAPH_NODE_NS = 20_000.0, 250.0

FIX = """\
# Fewer, larger launches. For a fixed shape, let a CUDA graph replay the whole step:
model = torch.compile(model, mode="reduce-overhead")

# or capture it yourself (inference):
static_x = torch.empty_like(x)
with torch.no_grad():
    for _ in range(3):
        model(static_x)                                # warm up outside the graph
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        static_y = model(static_x)
static_x.copy_(x); graph.replay()                      # one launch instead of hundreds

# or give each launch more to do: a larger batch, fused optimizers (fused=True), torch.compile without graphs
"""


def check(c: Context) -> Outcome:
    """Is the step bound by launching?"""
    program = c.program
    now = run(program, c.p.machine)
    launches = program.act_item.size
    graph_nodes = int(program.act_nodes[program.act_nodes > 1].sum())
    if launches < MIN_LAUNCHES or graph_nodes > 0.5 * int(program.act_nodes.sum()):
        return Clean()
    if now.host_ns < HOST_OVER_GPU * now.gpu_ns:
        return Clean()
    stretches = _capturable(c)
    if not stretches:
        return Clean()
    training = bool((c.s.states.cause_of_row[np.maximum(program.piece_row, 0)] == int(Cause.AUTOGRAD)).any())
    whole = _capturable(c, through_waits=True)
    held = sum(n for _, _, n in stretches)
    longest = np.sort(as_ns(np.rint(program.act_ns)))
    rows = c.outermost(np.flatnonzero((c.s.links.forest.source == OP) & c.counted_rows))
    return Found(
        f"{launches} launches a step of kernels that take {float(np.median(longest)) / 1e3:.1f} us (median): the host sets the pace",
        c.sites(rows),
        (lambda p: _dispatch_cut(c, p, 0.5)) if training else (lambda p: _captured(p, stretches)),
        [
            f"host work {now.host_ns / 1e6:.3f} ms a step without the profiler, GPU work {now.gpu_ns / 1e6:.3f} ms",
            f"a launch takes the host {now.host_ns / launches / 1e3:.1f} us on average, all dispatch included",
            f"{held} of {launches} launches lie in {len(stretches)} stretch{'es' if len(stretches) > 1 else ''} that a CUDA "
            "graph could hold",
        ],
        "Changing shapes, data-dependent branches and waits inside the step forbid a CUDA graph; then only part is won.",
        FIX,
        cautious=lambda p: _dispatch_cut(c, p, 0.25 if training else 0.5),
        hopeful=lambda p: _captured(p, stretches if training else whole),
        assumptions=["a graph launch takes 20 us of host time and 0.25 us of GPU time a kernel (H200)",
                     "compilation without graphs halves the dispatch; at best it leaves no wait between the launches"],
    )  # fmt: skip


def _capturable(c: Context, *, through_waits: bool = False) -> list[tuple[int, int, int]]:
    """Stretches (start, end, launches) between waits, allocations, loading and stalls with enough launches."""
    program = c.program
    breaks = [] if through_waits else program.item_start[program.item_wait != NONE].tolist()
    long = stalls(c, 100_000.0)
    breaks += long.start.tolist()
    cause = np.where(
        program.piece_row >= 0, c.s.states.cause_of_row[np.maximum(program.piece_row, 0)], int(Cause.PYTHON)
    )
    outside = np.isin(cause, [int(k) for k in (Cause.DATALOADER, Cause.ALLOC, Cause.FREE, Cause.PIN, Cause.COMPILE)])
    breaks += program.piece_start[outside].tolist()
    edges = np.unique(as_ns([program.base_start, *breaks, program.base_end]))
    launching = program.item_start[np.unique(program.act_item)] if program.act_item.size else as_ns([])
    durations = as_ns(c.s.raw.calls["dur_ns"].to_numpy())
    found = []
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        inside = launching[(launching > low) & (launching < high)]
        if inside.size >= max(MIN_LAUNCHES, min(MIN_SHARE * launching.size, MIN_RUN)):
            last = int(np.searchsorted(program.item_start, inside[-1]))
            stop = int(inside[-1]) + int(durations[int(program.item_call[last])])
            first = _first_op(c, low, int(inside[0]))
            found.append((first, min(stop, high), int(inside.size)))
    return found


def _first_op(c: Context, low: int, launch: int) -> int:
    """Where the op that makes the first launch of a stretch begins (not before the stretch)."""
    forest = c.s.links.forest
    spot = int(np.searchsorted(c.program.item_start, launch))
    row = int(forest.of_call[int(c.program.item_call[spot])])
    top = int(c.places.op[row])
    return max(low, int(forest.start[top]) if top >= 0 else launch)


def _captured(program: Program, stretches: list[tuple[int, int, int]]) -> Program:
    edited = program
    for start, end, _ in stretches:
        edited = capture(edited, start, end, host_ns=GRAPH_HOST_NS, node_ns=GRAPH_NODE_NS)
    return edited


def _dispatch_cut(c: Context, program: Program, share: float) -> Program:
    """The program with this share of the operators' own host time gone."""
    forest = c.s.links.forest
    is_op = (program.piece_row >= 0) & (forest.source[np.maximum(program.piece_row, 0)] == OP)
    return replace(program, piece_ns=np.where(is_op, program.piece_ns * (1 - share), program.piece_ns))
