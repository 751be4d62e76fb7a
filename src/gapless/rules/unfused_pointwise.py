"""# unfused-pointwise: one kernel for each element-wise op

## What it does
Finds runs of element-wise kernels, casts, reductions and norms that follow one another without a product, a
convolution or a wait between them, on the main thread and in the backward pass. Attention written out and optimizers
have rules of their own.

## Why it costs
Each kernel reads its input from memory and writes its result back, though the next one needs nothing else; and each is
a launch. `torch.compile` makes one kernel of such a run: intermediate values never leave the chip.

## How the gain is computed
The ops of a run go, with the Python between them. In their place: one compiled call (40 us on the host; in training 100
us, because autograd is involved) and kernels that read the first input, one further input where the shapes allow it,
and write the last result, once for each reduction in the run, at the best bandwidth; plus the arithmetic of slow
functions (tanh, exp), which overlaps by 40 %. Cautious: every further input is read, the kernels take 1.25 times as
long and a call twice; hopeful: no further input, 0.85 times, and a call of 25 us. Runs that would gain nothing are left
alone.

## When it may be wrong
A compiled function is compiled again for new shapes (mark them dynamic), and results differ in the last bits. What
other code reads in between must still be written. Data-dependent Python inside breaks the function in two.
"""

from __future__ import annotations

import numpy as np

from gapless.analyses.host_states import MAIN
from gapless.replay.whatif import host_ns
from gapless.rules._runs import Run, fused_ns, runs
from gapless.rules._swap import Swap, swapped
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Edit, Found, Outcome

CODE = KIND = "unfused-pointwise"

LEAST_KERNELS, LEAST_ARITHMETIC = 3, 3
"""Shorter runs (a residual sum and a norm) gain little, and every eager program has them."""
CALL_NS, TRAINING_CALL_NS, HOPEFUL_CALL_NS = 40_000.0, 100_000.0, 25_000.0
"""Host time of one call of a compiled function (H200 hosts: 37 to 58 us in inference; forward and backward of one
function in training 200 us together)."""

FIX = """\
import torch

# Put the element-wise code into a function and compile it: one kernel instead of {count}.
@torch.compile                 # dynamic=True if shapes change
def fused(x):
    return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x * x * x)))   # your {count} ops

y = fused(x)

# or the whole module, which also fuses across layers:
model = torch.compile(model)
# Many of these have a library form already: F.gelu(x, approximate="tanh"), F.silu, F.rms_norm, F.layer_norm, x.addcmul.
"""


def check(c: Context) -> Outcome:
    """Do element-wise kernels follow one another?"""
    found = [run for run in runs(c, LEAST_KERNELS) if _gains(c, run)]
    if not found:
        return Clean()
    jobs = [job for run in found for job in run.jobs]
    longest = max(found, key=lambda run: len(run.jobs))
    after = sum(fused_ns(c, run, 1.0) for run in found)
    evidence = [
        f"{len(jobs)} kernels a step in {len(found)} run{'s' if len(found) > 1 else ''} (the longest of "
        f"{len(longest.jobs)}), {sum(job.ns for job in jobs) / 1e6:.3f} ms on the GPU; fused about "
        f"{after / 1e6:.3f} ms",
        f"their ops take {sum(_host(c, run) for run in found) / 1e6:.3f} ms of host time a step without the profiler",
    ]
    if not c.has_shapes:
        evidence.append("shapes were not recorded, so the fused time is a guess from the slowest kernel of each run")
    return Found(
        f"{len(jobs)} element-wise kernels a step could be {len(found)}",
        c.job_sites(jobs),
        _edit(c, found, 1.0, 1.0, 1.0),
        evidence,
        "New shapes compile anew, and what other code reads in between must still be written.",
        FIX.replace("{count}", str(len(longest.jobs))),
        cautious=_edit(c, found, np.inf, 2.0, 1.25),
        hopeful=_edit(c, found, 0.0, HOPEFUL_CALL_NS / CALL_NS, 0.85),
        assumptions=[
            f"a compiled call costs the host {CALL_NS / 1e3:.0f} us, {TRAINING_CALL_NS / 1e3:.0f} us in training",
            f"the fused kernel moves {c.best_bandwidth:.0f} GB/s and reads one further input where shapes allow it",
        ],
    )


def _host(c: Context, run: Run) -> float:
    return host_ns(c.program, run.start, run.end)


def _call_ns(c: Context, run: Run) -> float:
    """Host time of the compiled call that replaces a run."""
    ops = {job.op for job in run.jobs}
    trains = c.s.states.roles[run.thread] != MAIN or bool(np.isin(c.s.links.forward_op, list(ops)).any())
    return TRAINING_CALL_NS if trains else CALL_NS


def _gains(c: Context, run: Run) -> bool:
    """Is the run better fused, on the side that sets the pace?"""
    if run.arithmetic < LEAST_ARITHMETIC:
        return False
    if fused_ns(c, run, 1.0) >= run.gpu_ns:
        return False
    return c.gpu_bound or _host(c, run) > _call_ns(c, run)


def _edit(c: Context, found: list[Run], extra: float, call: float, longer: float) -> Edit:
    return swapped(
        Swap(
            run.start, run.end, int(run.start[0]), call * _call_ns(c, run),
            min(longer * fused_ns(c, run, extra), run.gpu_ns), run.jobs[0].stream,
        )
        for run in found
    )  # fmt: skip
