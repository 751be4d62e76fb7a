"""# autotuning: kernels are tuned inside the step

## What it does
Finds trials of kernels in most recorded steps: Triton's or Inductor's autotuning (rows that name it, or launches timed one
by one with a cleared cache in between), and cuDNN's search for the fastest convolution (several event waits inside one
convolution, `cudnn.benchmark`).

## Why it costs
Each tuning runs dozens of variants of a kernel and waits for each. It belongs to the first call of a shape, not to every
step.

## How the gain is computed
The tuning stretches go, with the kernels they ran. A convolution of a new shape keeps 1 ms for choosing without trials;
cautious: 2 ms, hopeful: none. Hopeful where functions are compiled beside it: shapes
are padded, so that nothing is compiled any more either.

## When it may be wrong
A step with a new shape each time has to tune each time; then tune for a few padded shapes.
"""

from __future__ import annotations

import numpy as np

from gapless.analyses.causes import Cause
from gapless.replay.whatif import add_host, cut_host
from gapless.rules._trials import Search, searches
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Found, Outcome
from gapless.rules.recompilation import compile_roots, once_compiled
from gapless.tables.intervals import as_ns, contains, merge

CODE = KIND = "autotuning"

FIX = """\
# Tune once, before the loop, for the shapes that will come; the result is cached on disk:
#   TORCHINDUCTOR_FX_GRAPH_CACHE=1 TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE=0 python train.py
for shape in shapes:
    model(torch.empty(shape, device="cuda"))
torch.backends.cudnn.benchmark = False                  # convolutions whose shapes keep changing
# for Triton kernels of your own: drop changing values from @triton.autotune(key=[...]), or pad them to powers of two
"""


def check(c: Context) -> Outcome:
    """Do most steps tune kernels?"""
    rows = compile_roots(c, Cause.AUTOTUNE)
    forest = c.s.links.forest
    named = [Search(int(forest.start[r]), int(forest.end[r]), r, 0.0) for r in rows.tolist()]
    # Trials inside rows that name them, or inside a compilation, are counted there.
    told = c.outermost(np.unique(np.concatenate([rows, compile_roots(c, Cause.COMPILE)])))
    told_at = merge(forest.start[told], forest.end[told])
    tried = [one for one in searches(c) if not contains(told_at, as_ns([one.start]))[0]]
    found = named + tried
    steps = {int(np.searchsorted(c.s.steps.start, one.start, side="right")) for one in found}
    if c.step_count < 2 or len(steps) * 2 <= c.step_count:
        return Clean()
    base = [one for one in found if c.program.base_start <= one.start < c.program.base_end]
    if not base:
        return Clean()
    start, end = as_ns([one.start for one in base]), as_ns([one.end for one in base])
    kept = np.array([one.kept_ns for one in base])
    total = float(sum(one.end - one.start for one in found)) / c.step_count
    return Found(
        f"Kernels are autotuned in {len(steps)} of {c.step_count} steps",
        c.sites(as_ns([one.row for one in found]), as_ns([one.end - one.start for one in found])),
        lambda program: add_host(cut_host(program, start, end), start, kept),
        [f"{total / 1e6:.1f} ms a step of tuning, {len(found) / c.step_count:.0f} searches"],
        "A new shape in every step needs a new tuning; pad to a few shapes.",
        FIX,
        cautious=lambda program: add_host(cut_host(program, start, end), start, 2 * kept),
        hopeful=once_compiled(c, told) or (lambda program: cut_host(program, start, end)),
        assumptions=["all launches inside the tuning stretches are trials"]
        + (["choosing a convolution's algorithm for a new shape without trials takes 1 ms"] if kept.any() else []),
    )
