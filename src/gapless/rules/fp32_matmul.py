"""# fp32-matmul: products in fp32 without the matrix units

## What it does
Finds matrix products and convolutions whose tensors are fp32 and whose kernels use no matrix units (tensor cores). It
goes by the op and its dtypes, not by a kernel's name: a convolution may run as FFT or Winograd kernels.

## Why it costs
Matrix units compute fp32 products in TF32 (10-bit mantissa, fp32 range and sums) several times as fast as the plain
fp32 units: 67 against 495 TFLOP/s on an H200. PyTorch leaves that off for products by default. Older NVIDIA GPUs (V100,
T4) have matrix units for fp16 alone: there mixed precision is the way.

## How the gain is computed
All kernels of such an op become one of FLOPs / (0.72 of the TF32 peak), but no faster than its bytes allow; what can
overlap of the two counts to 30 %. Convolutions in NCHW pay for converting to NHWC and back. Cautious: half of the peak;
hopeful: 0.82. For fp16 units the shares are 0.5, 0.25 and 0.7, chosen wide because they were not measured. What the host
costs stays, so a step that waits for the host gains nothing.

## When it may be wrong
TF32 keeps about three decimal digits of each factor. Training of most networks does not notice; solvers, long sums of
values that cancel, and comparisons with fp64 do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gapless.analyses.op_costs import OpCost
from gapless.model.peaks import DevicePeaks
from gapless.replay.program import Program
from gapless.replay.whatif import drop_activities, set_activity_ns
from gapless.rules._jobs import MATH, Job
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Edit, Found, Outcome, Unknown

CODE = KIND = "fp32-matmul"

TF32_SHARES, FP16_SHARES = (0.72, 0.50, 0.82), (0.5, 0.25, 0.7)
"""TF32 on an H200: 0.69 of the peak for 8192x2048x2048, 0.78 for 4096 cubed, 0.72 for convolutions of 256 channels, and
0.47 for batches of 512 cubed (memory)."""
FP16_UNITS = ("7.0", "7.5")
"""Compute capabilities whose matrix units take fp16 alone (CUDA programming guide); bf16 and TF32 came with 8.0."""
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


FIX_16 = """\
# This GPU's matrix units compute in fp16 only: mixed precision keeps the weights in fp32.
scaler = torch.amp.GradScaler("cuda")
with torch.autocast("cuda", dtype=torch.float16):
    loss = model(x)
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
"""


@dataclass(frozen=True, slots=True)
class _Unit:
    """The matrix unit that could run fp32 products: how it is called, its peak, the share of it that products reach
    (expected, cautious, hopeful), what it does to precision, and the code that turns it on."""

    name: str
    tflops: float
    shares: tuple[float, float, float]
    doubt: str
    fix: str


@dataclass(frozen=True, slots=True)
class _Product:
    """One product or convolution: its kernels and what its shapes say it costs."""

    jobs: list[Job]
    cost: OpCost


def check(c: Context) -> Outcome:
    """Do fp32 products run without matrix units?"""
    unit = _unit(c.peaks)
    if c.peaks is not None and unit is None:
        return Clean()
    groups = _groups(c)
    shaped = [_Product(group, cost) for group in groups if (cost := group[0].cost) is not None]
    if groups and not shaped:
        return Unknown("products without matrix units were seen, but no shapes", "profile with record_shapes=True")
    if not shaped or c.peaks is None or unit is None:
        return Clean()
    expected, cautious, hopeful = unit.shares
    jobs = [job for product in shaped for job in product.jobs]
    now = sum(job.ns for job in jobs)
    flops = sum(product.cost.flops for product in shaped)
    names = sorted({product.jobs[0].name for product in shaped})
    return Found(
        f"{len(shaped)} fp32 product{'s' if len(shaped) > 1 else ''} a step run without tensor cores",
        c.job_sites(jobs),
        _edit(c, shaped, unit.tflops * expected),
        [
            f"{now / 1e6:.3f} ms a step in {', '.join(names[:MOST_NAMES])}: {flops / max(now, 1.0) / 1e3:.0f} TFLOP/s; "
            f"{unit.name} offers {unit.tflops:.0f} on {c.peaks.name}",
            "their tensors are fp32 and none of their kernels uses the matrix units",
        ],
        unit.doubt,
        unit.fix,
        cautious=_edit(c, shaped, unit.tflops * cautious),
        hopeful=_edit(c, shaped, unit.tflops * hopeful),
        assumptions=[
            f"{unit.name} reaches {expected:.0%} of its peak ({cautious:.0%} to {hopeful:.0%})",
            f"memory moves {c.best_bandwidth:.0f} GB/s",
        ],
    )  # fmt: skip


def _unit(peaks: DevicePeaks | None) -> _Unit | None:
    if peaks is None:
        return None
    if peaks.tf32 is not None:
        doubt = "TF32 keeps about three decimal digits of each factor: most training does not notice, solvers may."
        return _Unit("TF32", peaks.tf32, TF32_SHARES, doubt, FIX)
    if peaks.fp16 is not None and peaks.compute in FP16_UNITS:
        doubt = (
            "fp16 has a small range: gradients need scaling (the scaler skips steps that overflow), some losses fp32."
        )
        return _Unit("fp16", peaks.fp16, FP16_SHARES, doubt, FIX_16)
    return None


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


def _target_ns(c: Context, product: _Product, tflops: float) -> float:
    """GPU time of the op on matrix units: compute and memory, partly overlapping, and layout conversions round it."""
    compute = product.cost.flops / max(tflops * 1e3, 1.0)
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


def _edit(c: Context, products: list[_Product], tflops: float) -> Edit:
    """One kernel for each op: its longest takes the new time, the others go."""
    target: dict[int, float] = {}
    for product in products:
        main = max(product.jobs, key=lambda job: job.ns)
        target.update((job.row, 0.0) for job in product.jobs)
        target[main.row] = min(_target_ns(c, product, tflops), sum(job.ns for job in product.jobs))

    def edit(program: Program) -> Program:
        new = np.array([target.get(row, -1.0) for row in program.act_row.tolist()])
        edited = set_activity_ns(program, new > 0, new)
        return drop_activities(edited, new == 0)

    return edit
