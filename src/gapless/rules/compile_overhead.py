"""# compile-overhead: calling the compiled code costs more than it saves

## What it does
Finds steps whose compiled regions spend much of the host's time before any work is launched: guard checks
(`TorchDynamo Cache Lookup`), pre-graph bytecode and the runtime wrapper's prologue.

## Why it costs
Every call of a compiled function checks that its assumptions still hold. For small graphs, or many of them, that takes
longer than the dispatch it replaced, and the GPU idles meanwhile.

## How the gain is computed
The guard and prologue rows go, as if the regions were captured in a CUDA graph or merged. Cautious: half of them.
The recorder makes these rows look longer than they are; its cost is taken out first.

## When it may be wrong
In one recorded step of a run that just recompiled, guards are longer than usual.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gapless.analyses.causes import Cause
from gapless.analyses.host import OP
from gapless.replay.engine import run
from gapless.replay.program import Program
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Found, Outcome

CODE = KIND = "compile-overhead"
MIN_SHARE = 0.15
"""Guards below 15 % of a host-bound step are what every compiled program pays."""

FIX = """\
# One compiled call instead of many, or none of the checks:
model = torch.compile(model, mode="reduce-overhead")        # CUDA graphs: one launch a call
model = torch.compile(whole_step)                           # compile the loop body, not each small function
torch._dynamo.config.guard_nn_modules = False               # fewer guards, if parameters never change type or shape
# For a single small operator eager mode is faster: leave it uncompiled.
"""


def check(c: Context) -> Outcome:
    """Do guards take much of a host-bound step?"""
    program, forest = c.program, c.s.links.forest
    now = run(program, c.p.machine)
    rows = program.piece_row
    guard = (rows >= 0) & (c.s.states.cause_of_row[np.maximum(rows, 0)] == int(Cause.GUARD))
    spent = float(program.piece_ns[guard].sum())
    if spent < MIN_SHARE * now.period_ns or now.host_ns < 0.9 * now.period_ns:
        return Clean()
    events = np.flatnonzero((c.s.states.cause_of_row == int(Cause.GUARD)) & c.counted_rows & (forest.source == OP))
    events = c.outermost(events)

    def without(program: Program, share: float) -> Program:
        return replace(program, piece_ns=np.where(guard, program.piece_ns * share, program.piece_ns))

    return Found(
        "Guards and prologues of compiled code take much of the step",
        c.sites(events),
        lambda p: without(p, 0.0),
        [f"{spent / 1e6:.3f} ms a step without the profiler, {spent / now.period_ns:.0%} of it"],
        "The recorder inflates exactly these rows; measure the compiled function with gapless.measure before acting.",
        FIX,
        cautious=lambda p: without(p, 0.5),
        assumptions=["a CUDA graph or one larger region needs no guards per piece"],
    )
