"""# compile-overhead: calling the compiled code costs more than it saves

## What it does
Finds steps that call several compiled regions one after another, where the calls themselves (guard checks, pre-graph
bytecode, the runtime wrapper, Python in between) take much of a host-bound step; and single regions whose guard checks
alone take 0.1 ms and more.

## Why it costs
Every call of a compiled function checks that its assumptions still hold. For small graphs, or many of them, that takes
longer than the dispatch it replaced, and the GPU idles meanwhile. Nothing is fused from one region to the next.

## How the gain is computed
Regions that nothing but operators separates become one: one call's cost stays, operators that are not fused keep their
host time and their kernels, neighbours on either side of a cut become one kernel. Cautious: half of
the calls' time goes, the kernels and their launches stay. For a single region half of its guards go.

## When it may be wrong
The recorder makes these rows look longer than they are; its cost is taken out first. Regions that are called from code
that cannot be compiled stay apart. In one recorded step of a run that just recompiled, guards are longer than usual.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gapless.analyses.causes import Cause
from gapless.analyses.host import OP
from gapless.replay.engine import Run, run
from gapless.replay.program import Program
from gapless.replay.whatif import add_host
from gapless.rules._compiled import (
    QUICK_CALL,
    apart,
    as_one_call,
    calls_of,
    region_mask,
    stretches,
    waits_between,
)
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Found, Outcome
from gapless.tables.intervals import as_ns

CODE = KIND = "compile-overhead"
MIN_SHARE = 0.15
"""Calls below 15 % of a host-bound step are what every compiled program pays."""
MIN_GUARD_NS = 100_000.0
"""Guards of a single region below 0.1 ms a step cannot be merged with anything, and few programs can drop them."""

FIX = """\
# One compiled call instead of many, or none of the checks:
model = torch.compile(whole_step)                           # compile the loop body, not each small function
torch.compiler.set_stance(skip_guard_eval_unsafe=True)      # after warm-up, if inputs keep their types and shapes
# For a single small operator eager mode is faster: leave it uncompiled.
"""


def check(c: Context) -> Outcome:
    """Do calls of compiled code take much of a host-bound step?"""
    now = run(c.program, c.p.machine)
    if now.host_ns < 0.9 * now.period_ns:
        return Clean()
    calls = calls_of(c, c.outermost(np.flatnonzero(region_mask(c) & c.counted_rows)))
    if len(calls) < 2:
        return _guards(c, now)
    split, waits = apart(c), waits_between(c)
    groups = stretches(calls, lambda one, two: not split(one, two) and not waits(one, two))
    spans = [(group[0].start, group[-1].end) for group in groups]
    spent = sum(c.compiled.overhead_ns(low, high) for low, high in spans)
    if spent < MIN_SHARE * now.period_ns:
        return _guards(c, now)
    count = sum(len(group) for group in groups)
    apart_still = as_one_call(c, [[span] for span in spans], fuse=False)
    return Found(
        f"{count} calls of compiled code in a row take {spent / 1e6:.2f} ms of each step beyond their work",
        c.base_sites(as_ns([call.row for group in groups for call in group]),
                     as_ns([call.end - call.start for group in groups for call in group])),
        as_one_call(c, [[span] for span in spans], fuse=True),
        [f"{count} calls a step, {spent / count / 1e3:.0f} us each without the profiler, besides launching",
         f"{spent / now.period_ns:.0%} of the step"],
        "Code between the calls that cannot be compiled keeps them apart.",
        FIX,
        cautious=lambda p: add_host(apart_still(p), as_ns([low for low, _ in spans]), spent / 2 / len(spans)),
        hopeful=as_one_call(c, [[span] for span in spans], fuse=True, call_share=QUICK_CALL),
        assumptions=["what lies between the calls can be compiled with them"],
    )  # fmt: skip


def _guards(c: Context, now: Run) -> Outcome:
    """Are the guard checks of the regions long by themselves?"""
    program, forest = c.program, c.s.links.forest
    rows = program.piece_row
    guard = (rows >= 0) & (c.s.states.cause_of_row[np.maximum(rows, 0)] == int(Cause.GUARD))
    spent = float(program.piece_ns[guard].sum())
    if spent < max(MIN_SHARE * now.period_ns, MIN_GUARD_NS):
        return Clean()
    events = np.flatnonzero((c.s.states.cause_of_row == int(Cause.GUARD)) & c.counted_rows & (forest.source == OP))

    def without(program: Program, share: float) -> Program:
        return replace(program, piece_ns=np.where(guard, program.piece_ns * share, program.piece_ns))

    return Found(
        "Guards and prologues of compiled code take much of the step",
        c.sites(c.outermost(events)),
        lambda p: without(p, 0.5),
        [f"{spent / 1e6:.3f} ms a step without the profiler, {spent / now.period_ns:.0%} of it"],
        "The recorder inflates exactly these rows; measure the compiled function with gapless.measure before acting.",
        FIX,
        cautious=lambda p: without(p, 0.9),
        hopeful=lambda p: without(p, 0.1),
        assumptions=["half of the guards can go: fewer inputs and modules, or guards skipped after warm-up"],
    )
