"""# autotuning: kernels are tuned inside the step

## What it does
Finds Triton or Inductor autotuning (benchmarks of kernel variants) in most recorded steps.

## Why it costs
Each tuning runs dozens of variants of a kernel and waits for each. It belongs to the first call of a shape, not to every
step.

## How the gain is computed
The tuning stretches go, with the kernels they ran.

## When it may be wrong
A step with a new shape each time has to tune each time; then tune for a few padded shapes.
"""

from __future__ import annotations

import numpy as np

from gapless.analyses.causes import Cause
from gapless.replay.whatif import cut_host
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Found, Outcome
from gapless.rules.recompilation import compile_roots

CODE = KIND = "autotuning"

FIX = """\
# Tune once, before the loop, for the shapes that will come; the result is cached on disk:
#   TORCHINDUCTOR_FX_GRAPH_CACHE=1 TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE=0 python train.py
for shape in shapes:
    model(torch.empty(shape, device="cuda"))
# for Triton kernels of your own: drop changing values from @triton.autotune(key=[...]), or pad them to powers of two
"""


def check(c: Context) -> Outcome:
    """Do most steps tune kernels?"""
    rows = compile_roots(c, Cause.AUTOTUNE)
    if rows.size == 0:
        return Clean()
    forest = c.s.links.forest
    steps = np.unique(np.searchsorted(c.s.steps.start, forest.start[rows], side="right") - 1)
    if c.step_count < 2 or steps.size * 2 <= c.step_count:
        return Clean()
    base = c.in_base(rows)
    if base.size == 0:
        return Clean()
    start, end = forest.start[base], forest.end[base]
    total = float((forest.end[rows] - forest.start[rows]).sum()) / c.step_count
    return Found(
        f"Kernels are autotuned in {steps.size} of {c.step_count} steps",
        c.sites(rows),
        lambda program: cut_host(program, start, end),
        [f"{total / 1e6:.1f} ms a step of tuning"],
        "A new shape in every step needs a new tuning; pad to a few shapes.",
        FIX,
        assumptions=["all launches inside the tuning rows are trials"],
    )
