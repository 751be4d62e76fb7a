"""# compile-overhead: calling the compiled code costs more than it saves

## What it does
Finds steps that call several compiled regions one after another, where the calls themselves (guard checks, pre-graph
bytecode, the runtime wrapper, Python in between) take much of a host-bound step; regions that launch only library
operators and no generated kernel, so that their calls buy nothing; and regions whose guard checks alone take 0.1 ms and
more.

## Why it costs
Every call of a compiled function checks that its assumptions still hold. For small graphs, or many of them, that takes
longer than the dispatch it replaced, and the GPU idles meanwhile. Nothing is fused from one region to the next.

## How the gain is computed
Regions that nothing but operators separates become one: one call's cost stays, operators that are not fused keep their
host time and their kernels, neighbours on either side of a cut become one kernel. Cautious: half of the calls' time goes,
the kernels and their launches stay. Regions that fuse nothing run uncompiled: 10 us an operator come back, cautious: half
of the calls' time. Of guards alone, half go.

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
    Call,
    Unit,
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
EAGER_NS = 10_000.0
"""Dispatch of an eager operator beyond its library call (H200 host: 64x64 product and sum, eager against compiled)."""

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
    calls = calls_of(c, c.outermost(np.flatnonzero(region_mask(c.s) & c.counted_rows)))
    if len(calls) < 2:
        return _fuses_nothing(c, calls, now)
    split, waits = apart(c), waits_between(c)
    groups = stretches(calls, lambda one, two: not split(one, two) and not waits(one, two))
    spans = [(group[0].start, group[-1].end) for group in groups]
    spent = sum(c.compiled.overhead_ns(low, high) for low, high in spans)
    if spent < MIN_SHARE * now.period_ns:
        return _fuses_nothing(c, calls, now)
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


def _fuses_nothing(c: Context, calls: list[Call], now: Run) -> Outcome:
    """Are there regions without a generated kernel, whose calls take much of the step?"""
    work = c.compiled
    idle = [call for call in calls if _only_library(c, work.inside(call.start, call.end))]
    spent = sum(work.overhead_ns(call.start, call.end) for call in idle)
    units = sum(len(work.inside(call.start, call.end)) for call in idle)
    if not idle or spent < max(MIN_SHARE * now.period_ns, 2 * EAGER_NS * units):
        return _guards(c, now)
    start, end = as_ns([call.start for call in idle]), as_ns([call.end for call in idle])
    bare = as_one_call(c, [[(call.start, call.end)] for call in idle], fuse=False, call_share=0.0)
    back = np.array([EAGER_NS * len(work.inside(call.start, call.end)) for call in idle])
    half = np.array([work.overhead_ns(call.start, call.end) / 2 for call in idle])
    return Found(
        "Compiled code that fuses nothing: calling it costs more than it saves",
        c.base_sites(as_ns([call.row for call in idle]), end - start),
        lambda p: add_host(bare(p), start, back),
        [f"{len(idle)} call{'s' if len(idle) > 1 else ''} a step launch library operators alone, no generated kernel",
         f"the calls take {spent / 1e6:.3f} ms besides, {spent / now.period_ns:.0%} of the step"],
        "One library call may stand for two operators (a product and its bias), which eager mode dispatches one by one.",
        FIX,
        cautious=lambda p: add_host(bare(p), start, np.maximum(back, half)),
        assumptions=["uncompiled, each of these operators takes 10 us more than its library call"],
    )  # fmt: skip


def _only_library(c: Context, units: list[Unit]) -> bool:
    jobs = [job for unit in units for job in unit.jobs]
    return bool(jobs) and all(job.family != "triton" and c.program.act_nodes[job.index] == 1 for job in jobs)


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
