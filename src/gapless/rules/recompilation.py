"""# recompilation: torch.compile compiles again and again

## What it does
Finds compilation (`dynamo_timed` rows) in most of the recorded steps. Compilation in one step of many is a cold step and
is left out of the numbers instead.

## Why it costs
Each new shape or Python value that a guard holds fixed compiles the function anew: hundreds of milliseconds, while the
GPU idles. After `recompile_limit` versions the function runs eagerly.

## How the gain is computed
What the compiled function will cost is in no trace. Expected: the stretch from the guard check to the last launch
becomes one compiled call of 70 us, and the rest of the step runs warm. Cautious: only the compilations go.

## When it may be wrong
If the shapes really never repeat and dynamic shapes are not supported for this model, bucket or pad them.
"""

from __future__ import annotations

import numpy as np

from gapless.analyses.causes import Cause
from gapless.analyses.host import OP
from gapless.replay.program import Program
from gapless.replay.whatif import capture, cut_host
from gapless.rules._compiled import CALL_NS as COMPILED_CALL_NS
from gapless.rules._stalls import WARM_SHARE, WARMEST_SHARE, warmed
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Found, Outcome
from gapless.tables.coding import matches
from gapless.tables.intervals import Int

CODE = KIND = "recompilation"
MOST = 0.5

FIX = """\
# See which guard fails:
#   TORCH_LOGS=recompiles python train.py

model = torch.compile(model, dynamic=True)              # one version for all sizes
torch._dynamo.mark_dynamic(x, 0)                         # or mark the dimension that changes

# pass changing Python numbers as tensors, or pad inputs to a few sizes:
x = torch.nn.functional.pad(x, (0, 0, 0, -x.shape[0] % 64))
"""


def check(c: Context) -> Outcome:
    """Do most steps compile?"""
    rows = compile_roots(c, Cause.COMPILE)
    if rows.size == 0:
        return Clean()
    forest = c.s.links.forest
    steps = np.unique(np.searchsorted(c.s.steps.start, forest.start[rows], side="right") - 1)
    if c.step_count < 2 or steps.size <= MOST * c.step_count:
        return Clean()
    base = c.in_base(rows)
    if base.size == 0:
        return Clean()
    start, end = forest.start[base], forest.end[base]
    total = float((forest.end[rows] - forest.start[rows]).sum()) / c.step_count
    low, high = _stretch(c, start, end)

    def whole(program: Program, share: float) -> Program:
        # What was launched inside stays, as one compiled call.
        called = capture(program, low, high, host_ns=2 * COMPILED_CALL_NS, node_ns=0.0)
        return warmed(c, called, total, share)

    return Found(
        f"torch.compile compiles in {steps.size} of {c.step_count} steps",
        c.sites(rows),
        lambda program: whole(program, WARM_SHARE),
        [f"{rows.size / c.step_count:.1f} compilations a step, {total / 1e6:.1f} ms"],
        "What the function costs once it is compiled is not in the trace.",
        FIX,
        cautious=lambda program: cut_host(program, start, end, keep_work=True),
        hopeful=lambda program: whole(program, WARMEST_SHARE),
        assumptions=[
            "the compiled function is called once, in 70 us",
            "the rest of the step runs faster once it is warm",
        ],
    )


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


def _stretch(c: Context, start: Int, end: Int) -> tuple[int, int]:
    """From the guard check before the first compilation to the end of the last launch after it in the step."""
    forest = c.s.links.forest
    guards = c.op_rows("TorchDynamo Cache Lookup")
    before = guards[(forest.start[guards] < start.min()) & (forest.start[guards] >= c.program.base_start)]
    first = int(forest.start[before].max()) if before.size else int(start.min())
    after = c.program.item_start[c.program.item_start >= int(end.max())]
    return first, int(after.max()) + 10_000 if after.size else int(end.max())
