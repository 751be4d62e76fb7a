"""# serial-streams: small kernels run one after another though the GPU has room for two

## What it does
Looks for steps that the GPU sets the pace of, whose kernels all run on one stream and mostly fill less than half of
what the GPU can hold at a time.

## Why it costs
Kernels of one stream never overlap. If parts of the step do not depend on each other (two towers, several experts,
separate losses), a second stream lets one kernel use what the other leaves free.

## How the gain is computed
A trace does not say which op needs which result, so independence cannot be proven: the low end is always no gain. The
high end halves each small kernel, but no further than its arithmetic at 0.76 of the peak or its bytes allow. What is
expected is half of that gain, and never promised as more than 10 %.

## When it may be wrong
If every op needs the one before it, a second stream brings nothing. Two streams need events between them and twice the
live memory, and kernels that share caches slow each other down. Larger batches often bring more.
"""

from __future__ import annotations

import numpy as np

from gapless.analyses.occupancy import limits_of, occupancy
from gapless.replay.program import Program
from gapless.replay.whatif import set_activity_ns
from gapless.rules._jobs import Job
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Edit, Found, Outcome, Unknown

CODE = KIND = "serial-streams"

FILL_BELOW = 0.5
"""A kernel below half of the GPU leaves room for another like it."""
LEAST_SHARE = 0.5
"""Of the GPU time, in such kernels; and with fewer kernels than this there is nothing to overlap."""
LEAST_KERNELS = 6
REACHED = 0.76
"""Share of the peak that the best plain fp32 products reach (H200, 4096 cubed)."""
MOST_PROMISED = 1.10

FIX = """\
# Only if the two parts do not need each other's results:
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())      # side must see what was computed so far
with torch.cuda.stream(side):
    b = tower_b(x)
a = tower_a(x)                                     # runs beside it
torch.cuda.current_stream().wait_stream(side)      # join before b is used
b.record_stream(torch.cuda.current_stream())
loss = head(a, b)

# Often better: give the kernels more work (a larger batch, torch.bmm or torch.func.vmap over both towers).
"""


def check(c: Context) -> Outcome:
    """Is there room beside the kernels of a single stream?"""
    kernels = [job for job in c.jobs if job.family not in ("memcpy", "memset")]
    if len(kernels) < LEAST_KERNELS or len({job.stream for job in kernels}) != 1 or not c.gpu_bound:
        return Clean()
    if any(job.family == "collective" for job in kernels):
        return Clean()
    if not any(job.blocks for job in kernels):
        return Unknown(
            "grid sizes are not recorded, so it is unknown how full the GPU is", "use a CUDA or ROCm profiler"
        )
    fill = _fills(c, kernels)
    small = [job for job, share in zip(kernels, fill, strict=True) if share < FILL_BELOW]
    total = sum(job.ns for job in kernels)
    spent = sum(job.ns for job in small)
    if len(small) < LEAST_KERNELS or spent < LEAST_SHARE * total:
        return Clean()
    best = {job.row: _least_share(c, job) for job in small}
    saved = sum(job.ns * (1 - best[job.row]) for job in small)
    most = total / max(total - saved, 1.0)
    expected = min(1 + (most - 1) / 2, MOST_PROMISED)
    part = (1 - 1 / expected) / (1 - 1 / most) if most > 1 else 0.0
    median = float(np.median([share for job, share in zip(kernels, fill, strict=True) if share < FILL_BELOW]))
    return Found(
        f"{len(small)} small kernels a step run on one stream and leave the GPU half empty",
        c.job_sites(small),
        _edit(best, part),
        [
            f"{spent / 1e6:.3f} ms of {total / 1e6:.3f} ms a step in kernels that fill {median:.0%} of the GPU",
            "all kernels run on one stream, and the GPU, not the host, sets the pace",
        ],
        "A trace cannot show that ops are independent: if each needs the one before, the gain is nothing.",
        FIX,
        cautious=lambda program: program,
        hopeful=_edit(best, 1.0),
        assumptions=["half of the small kernels are independent of the other half (not provable from a trace)"],
    )


def _fills(c: Context, kernels: list[Job]) -> list[float]:
    """How much of the GPU each kernel's grid fills: blocks against those resident at a time; 1 where unknown."""
    device = c.s.raw.meta.devices[0] if c.s.raw.meta.devices else None
    sms = (device.num_sms if device else None) or (c.peaks.sms if c.peaks else None)
    limits = limits_of(device) if device else None
    names = ["block_x", "block_y", "block_z", "registers", "shared_bytes"]
    taken = c.s.raw.activities.select(names)[[job.row for job in kernels]].fill_null(0)
    fill = []
    for job, (x, y, z, registers, shared) in zip(kernels, taken.iter_rows(), strict=True):
        threads = int(x) * max(int(y), 1) * max(int(z), 1)
        held = occupancy(threads, int(registers), int(shared), limits) if limits and threads else None
        fill.append(job.blocks / (held.blocks * sms) if held and sms and job.blocks else 1.0)
    return fill


def _least_share(c: Context, job: Job) -> float:
    """Share of its time that a kernel takes at best when another runs beside it."""
    if c.peaks is None or job.cost is None or job.ns <= 0:
        return 0.75
    peak = c.peaks.tflops(job.kernel.dtype) or c.peaks.matrix_tflops(job.cost.dtype) or c.peaks.fp32
    least = max(job.cost.flops / (REACHED * peak * 1e3), job.cost.bytes / c.best_bandwidth)
    return float(min(max(least / job.ns, 0.5), 1.0))


def _edit(best: dict[int, float], part: float) -> Edit:
    """Each small kernel gives up this part of what it could."""

    def edit(program: Program) -> Program:
        factor = np.array([1 - part * (1 - best.get(row, 1.0)) for row in program.act_row.tolist()])
        return set_activity_ns(program, factor < 1.0, factor * program.act_ns)

    return edit
