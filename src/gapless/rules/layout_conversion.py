"""# layout-conversion: the same values are written again in another order

## What it does
Finds copies that change nothing but the order in memory: `.contiguous()` and `clone()` of permuted tensors whose next
user would take any strides, there-and-back pairs, and the conversions between NCHW and NHWC that cuDNN wraps round each
16-bit or TF32 convolution of an NCHW tensor.

## Why it costs
A permuting copy reads and writes every byte, and usually far below the memory's bandwidth. Products, convolutions and
element-wise ops take strided tensors as they are; convolutions on tensor cores want NHWC (channels_last).

## How the gain is computed
The copies go, on host and GPU. Cautious: half of their GPU time stays, because the next op reads less regularly. A copy
that a `view` into another shape needs, or that the next op would make itself (norms, softmax), is not counted.

## When it may be wrong
Who uses a copy is told by shape and strides alone. Kernels of your own may insist on contiguous tensors. Channels_last
must reach the whole network: one layer that does not know it converts back. Batch norms of channels_last tensors are
taken to need two thirds of their time, their biases nine tenths.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gapless.analyses.op_costs import base_name
from gapless.replay.program import Program
from gapless.replay.whatif import cut_host, drop_calls, set_activity_ns
from gapless.rules._consumers import PERMUTES, VIEWS, next_consumer, viewable
from gapless.rules._jobs import Job
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Edit, Found, Outcome, Unknown
from gapless.tables.intervals import as_ns

CODE = KIND = "layout-conversion"

EXPLICIT = frozenset(("contiguous", "clone", "to", "_to_copy"))
NEEDS_CONTIGUOUS = frozenset(
    ("layer_norm", "native_layer_norm", "softmax", "_softmax", "log_softmax", "rms_norm", "cumsum", "embedding", "sort")
)
STAYS = 0.5
NORM_SHARE, HOPEFUL_NORM_SHARE = 0.65, 0.45
"""Time of batch norms on channels_last tensors against NCHW (H200, 128 channels: 0.61-0.68 forward, 0.26 backward)."""
BIAS_SHARE, HOPEFUL_BIAS_SHARE = 0.92, 0.85
"""The same for adding a convolution's bias (0.92 and 0.86)."""
LEAST_SHARE = 0.01
"""Of the step's GPU time: less is no finding."""

FIX_COPY = """\
# Matrix products, convolutions and element-wise ops take any strides: leave the copy out.
h = x.permute(0, 3, 1, 2).contiguous()        # before: reads and writes all of x
h = x.permute(0, 3, 1, 2)                     # after: a view, free
y = a @ w.t()                                 # not w.t().contiguous()

# Needed before .view() into another shape? Keep the tensor in the order that is used most, from where it is made.
"""
FIX_CONV = """\
# Give the model and its input the order that tensor-core convolutions want, once:
model = model.to(memory_format=torch.channels_last)
x = x.to(memory_format=torch.channels_last)     # shape stays [N, C, H, W]
y = model(x)
"""


@dataclass(frozen=True, slots=True)
class _Copy:
    """One copy that could go: its activity, and the outermost op that goes with it."""

    job: Job
    root: int


def check(c: Context) -> Outcome:
    """Are there copies that only change the order in memory?"""
    copies = _copies(c)
    conversions = _conversions(c)
    total = sum(job.ns for job in c.jobs) or 1.0
    copied, converted = sum(copy.job.ns for copy in copies), sum(job.ns for job in conversions)
    if copied + converted < LEAST_SHARE * total:
        blind = [
            j for j in c.jobs if j.name == "copy_" and j.family == "copy" and j.args is None and j.ns > 0.05 * total
        ]
        if blind and not c.has_shapes:
            return Unknown("large copies were seen, but not their shapes", "profile with record_shapes=True")
        return Clean()
    evidence = []
    if copies:
        moved = sum(copy.job.cost.bytes for copy in copies if copy.job.cost)
        rate = f" at {moved / copied:.0f} GB/s of {c.best_bandwidth:.0f}" if moved else ""
        evidence.append(f"{len(copies)} copies a step that only change strides: {copied / 1e6:.3f} ms{rate}")
    if conversions:
        evidence.append(
            f"{len(conversions)} conversions between NCHW and NHWC round convolutions: {converted / 1e6:.3f} ms a step"
        )
    jobs = [copy.job for copy in copies] + conversions
    return Found(
        f"{len(jobs)} copies a step only reorder memory: {(copied + converted) / total:.0%} of the GPU time",
        c.job_sites(jobs),
        _edit(c, copies, conversions, 0.0, NORM_SHARE),
        evidence,
        "Who uses a copy is told by its shape; kernels of your own may need contiguous tensors.",
        "\n".join(([FIX_COPY] if copies else []) + ([FIX_CONV] if conversions else [])),
        cautious=_edit(c, copies, conversions, STAYS, 1.0),
        hopeful=_edit(c, copies, conversions, 0.0, HOPEFUL_NORM_SHARE),
        assumptions=[
            "the op that follows runs as fast on the strided tensor (cautious: half of the copy's time stays)",
            *([f"batch norms take {NORM_SHARE:.0%} of their time on channels_last"] if conversions else []),
        ],
    )


def _copies(c: Context) -> list[_Copy]:
    found = []
    for job in c.jobs:
        if job.name != "copy_" or job.family not in ("copy", "memcpy"):
            continue
        root = c.root_of(job.op_row)
        if root >= 0 and base_name(c.name_of(root)) in EXPLICIT and _permutes(job) and _removable(c, job, root):
            found.append(_Copy(job, root))
    return found


def _permutes(job: Job) -> bool:
    """Do source and target hold the same values in another order?"""
    tensors, strides = job.tensors, job.strides
    if len(tensors) < 2 or len(strides) < 2 or tensors[0].dtype != tensors[1].dtype:
        return False
    target, source = strides[0], strides[1]
    if target is None or source is None or tensors[0].shape != tensors[1].shape:
        return False
    matters = [i for i, n in enumerate(tensors[0].shape) if n != 1]
    same = all(target[i] == source[i] for i in matters)
    dense = {target[i] for i in matters} == {source[i] for i in matters} or sorted(_order(job, source)) == sorted(
        _order(job, target)
    )
    return not same and dense and 0 not in source


def _order(job: Job, strides: tuple[int, ...]) -> list[int]:
    """Sizes from the outermost to the innermost dimension in memory."""
    shape = job.tensors[0].shape
    return [shape[i] for i in sorted(range(len(shape)), key=lambda i: -strides[i]) if shape[i] != 1]


def _removable(c: Context, job: Job, root: int) -> bool:
    shape, target, source = job.tensors[0].shape, job.strides[0], job.strides[1]
    user = next_consumer(c, root, shape, job.tensors[0].dtype, target)
    if user is None or source is None:
        return False
    if user.name in VIEWS:
        new = user.args.numbers(1)
        return new is not None and viewable(shape, source, _resolved(shape, new))
    return user.name in PERMUTES or user.name not in NEEDS_CONTIGUOUS


def _resolved(shape: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
    """A view's shape with -1 filled in."""
    if -1 not in new:
        return new
    rest = int(np.prod([n for n in new if n != -1], dtype=np.int64)) or 1
    return tuple(int(np.prod(shape, dtype=np.int64)) // rest if n == -1 else n for n in new)


def _conversions(c: Context) -> list[Job]:
    """Layout kernels of tensor-core convolutions whose tensors are in NCHW order."""
    by_op: dict[int, list[Job]] = {}
    for job in c.jobs:
        if "conv" in job.name:
            by_op.setdefault(job.op, []).append(job)
    found = []
    for jobs in by_op.values():
        if not any(job.kernel.tensor_core or job.kernel.dtype in ("bf16", "fp16", "tf32") for job in jobs):
            continue
        if _is_nchw(jobs[0]):
            found += [job for job in jobs if job.family == "layout"]
    return found


def _is_nchw(job: Job) -> bool:
    """Is the convolution's first tensor in NCHW order? Where strides are missing, yes: cuDNN converts only then."""
    known = [strides for strides in job.strides if strides is not None and len(strides) == 4]
    tensors = [tensor for tensor in job.tensors if len(tensor.shape) == 4]
    if not known or not tensors:
        return True
    return known[0][1] != 1 and tensors[0].shape[1] > 1


def _edit(c: Context, copies: list[_Copy], conversions: list[Job], stays: float, norms: float) -> Edit:
    """Copies and conversions keep `stays` of their GPU time, batch norms `norms` of theirs."""
    forest = c.s.links.forest
    roots = as_ns([copy.root for copy in copies])
    rows = np.array([copy.job.row for copy in copies] + [job.row for job in conversions], dtype=np.int64)
    factor = _faster(c, norms) if conversions else {}
    gone = np.zeros(c.program.item_ns.size, dtype=bool)
    gone[[job.item for job in conversions]] = True

    def edit(program: Program) -> Program:
        if stays > 0:
            return set_activity_ns(program, np.isin(program.act_row, rows), stays * program.act_ns)
        shares = np.array([factor.get(row, 1.0) for row in program.act_row.tolist()])
        program = set_activity_ns(program, shares < 1.0, shares * program.act_ns)
        edited = cut_host(program, forest.start[roots], forest.end[roots]) if roots.size else program
        return drop_calls(edited, gone)

    return edit


def _faster(c: Context, norms: float) -> dict[int, float]:
    """Activities that run faster on channels_last tensors, with the share of their time that stays."""
    found = {}
    for job in c.jobs:
        if job.family == "normalization" and "batch_norm" in job.name:
            found[job.row] = norms
        elif job.name == "add_" and "conv" in c.name_of(c.root_of(job.op_row)):
            found[job.row] = BIAS_SHARE if norms > HOPEFUL_NORM_SHARE else HOPEFUL_BIAS_SHARE
    return found
