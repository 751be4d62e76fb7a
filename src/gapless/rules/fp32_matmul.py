"""# fp32-matmul: products in fp32 without the matrix units

## What it does
Finds matrix products and convolutions whose tensors are fp32 and whose kernels use no matrix units (tensor cores). It
goes by the op and its dtypes, not by a kernel's name: a convolution may run as FFT or Winograd kernels.

## Why it costs
Matrix units compute fp32 products in TF32 (10-bit mantissa, fp32 range and sums) several times as fast as the plain
fp32 units: 67 against 495 TFLOP/s on an H200. PyTorch leaves that off for products by default.

## How the gain is computed
All kernels of such an op become one of FLOPs / (0.72 of the TF32 peak), but no faster than its bytes allow; what can
overlap of the two counts to 30 %. Convolutions in NCHW pay for converting to NHWC and back. Cautious: half of the peak;
hopeful: 0.82. What the host costs stays, so a step that waits for the host gains nothing.

## When it may be wrong
TF32 keeps about three decimal digits of each factor. Training of most networks does not notice; solvers, long sums of
values that cancel, and comparisons with fp64 do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gapless.analyses.op_costs import OpCost
from gapless.replay.program import Program
from gapless.replay.whatif import drop_activities, set_activity_ns
from gapless.rules._jobs import MATH, Job
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Edit, Found, Outcome, Unknown

CODE = KIND = "fp32-matmul"

PEAK_SHARE, CAUTIOUS_SHARE, HOPEFUL_SHARE = 0.72, 0.50, 0.82
"""TF32 on an H200: 0.69 of the peak for 8192x2048x2048, 0.78 for 4096 cubed, 0.72 for convolutions of 256 channels, and
0.47 for batches of 512 cubed (memory)."""
OVERLAP = 0.3
FLOOR_NS = 2_500.0
MOST_NAMES = 3
PRODUCTS = frozenset(("mm", "addmm", "bmm", "baddbmm", "_addmm_activation", "linear", "matmul", "addmv", "mv"))

FIX = """\
import torch

torch.set_float32_matmul_precision("high")     # products of fp32 tensors in TF32
torch.backends.cudnn.allow_tf32 = True         # convolutions too (this is the default)

# Faster still, with the weights kept in fp32:
with torch.autocast("cuda", dtype=torch.bfloat16):
    loss = model(x)
"""


@dataclass(frozen=True, slots=True)
class _Product:
    """One product or convolution: its kernels and what its shapes say it costs."""

    jobs: list[Job]
    cost: OpCost


def check(c: Context) -> Outcome:
    """Do fp32 products run without matrix units?"""
    if c.peaks is not None and c.peaks.tf32 is None:
        return Clean()
    groups = _groups(c)
    shaped = [_Product(group, cost) for group in groups if (cost := group[0].cost) is not None]
    if groups and not shaped:
        return Unknown("products without matrix units were seen, but no shapes", "profile with record_shapes=True")
    if not shaped or c.peaks is None:
        return Clean()
    jobs = [job for product in shaped for job in product.jobs]
    now = sum(job.ns for job in jobs)
    flops = sum(product.cost.flops for product in shaped)
    names = sorted({product.jobs[0].name for product in shaped})
    return Found(
        f"{len(shaped)} fp32 product{'s' if len(shaped) > 1 else ''} a step run without tensor cores",
        c.job_sites(jobs),
        _edit(c, shaped, PEAK_SHARE),
        [
            f"{now / 1e6:.3f} ms a step in {', '.join(names[:MOST_NAMES])}: {flops / max(now, 1.0) / 1e3:.0f} TFLOP/s; "
            f"TF32 offers {c.peaks.tf32:.0f} on {c.peaks.name}",
            "their tensors are fp32 and none of their kernels uses the matrix units",
        ],
        "TF32 keeps about three decimal digits of each factor: most training does not notice, solvers may.",
        FIX,
        cautious=_edit(c, shaped, CAUTIOUS_SHARE),
        hopeful=_edit(c, shaped, HOPEFUL_SHARE),
        assumptions=[
            f"TF32 reaches {PEAK_SHARE:.0%} of its peak ({CAUTIOUS_SHARE:.0%} to {HOPEFUL_SHARE:.0%})",
            f"memory moves {c.best_bandwidth:.0f} GB/s",
        ],
    )  # fmt: skip


def _groups(c: Context) -> list[list[Job]]:
    """Kernels of each op that multiplies fp32 tensors without matrix units."""
    by_op: dict[int, list[Job]] = {}
    for job in c.jobs:
        if job.op >= 0:
            by_op.setdefault(job.op, []).append(job)
    return [jobs for jobs in by_op.values() if _is_plain(jobs)]


def _is_plain(jobs: list[Job]) -> bool:
    name = jobs[0].name
    if name not in PRODUCTS and "conv" not in name:
        return False
    kernels = [job.kernel for job in jobs if job.kernel.family not in ("memset", "memcpy")]
    if not any(kernel.family in MATH or kernel.family == "fft" for kernel in kernels):
        return False
    if any(kernel.tensor_core or kernel.dtype == "tf32" for kernel in kernels):
        return False
    if jobs[0].args is None:
        return any(kernel.family in MATH and kernel.dtype == "fp32" for kernel in kernels)
    floats = [tensor.dtype for tensor in jobs[0].tensors if tensor.dtype.startswith(("fp", "bf"))]
    return bool(floats) and all(dtype == "fp32" for dtype in floats)


def _target_ns(c: Context, product: _Product, share: float) -> float:
    """GPU time of the op in TF32: compute and memory, partly overlapping, and layout conversions round it."""
    peak = (c.peaks.tf32 if c.peaks else None) or 0.0
    compute = product.cost.flops / max(share * peak * 1e3, 1.0)
    memory = product.cost.bytes / c.best_bandwidth
    least = max(compute, memory) + OVERLAP * min(compute, memory)
    return max(least + _conversion_ns(c, product), FLOOR_NS)


def _conversion_ns(c: Context, product: _Product) -> float:
    """Time to bring an NCHW convolution's tensors to NHWC and back: each byte read and written once more."""
    first = product.jobs[0]
    strides = first.strides[0] if first.strides else None
    if "conv" not in first.name or strides is None or len(strides) != 4 or strides[1] == 1:
        return 0.0
    return 2.0 * product.cost.bytes / c.best_bandwidth


def _edit(c: Context, products: list[_Product], share: float) -> Edit:
    """One kernel for each op: its longest takes the new time, the others go."""
    target: dict[int, float] = {}
    for product in products:
        main = max(product.jobs, key=lambda job: job.ns)
        target.update((job.row, 0.0) for job in product.jobs)
        target[main.row] = min(_target_ns(c, product, share), sum(job.ns for job in product.jobs))

    def edit(program: Program) -> Program:
        new = np.array([target.get(row, -1.0) for row in program.act_row.tolist()])
        edited = set_activity_ns(program, new > 0, new)
        return drop_activities(edited, new == 0)

    return edit
