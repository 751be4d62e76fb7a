"""# dtype-conversion: the same values are converted to another dtype in every step

## What it does
Finds casts that a step makes again each time though their result could be kept or is not needed: weights that are cast
before every product, and activations that go to fp32 for element-wise ops and straight back. Casts that autocast makes
of weights count only without a backward pass: in training they are the price of fp32 master weights.

## Why it costs
A cast reads and writes the whole tensor; for a weight it often takes as long as the product it feeds. Element-wise ops
of 16-bit tensors compute in fp32 inside anyway.

## How the gain is computed
The casts go, on host and GPU. Where 16-bit weights are cast up, the product then runs in their dtype: half of its TF32
time. Element-wise kernels between two casts move half of the bytes. Cautious: only the casts go, and a quarter of their
time stays; hopeful: those kernels take a fifth less.

## When it may be wrong
A weight that changes in every step must be cast after each change. An op that sums many values (a norm written by hand)
needs fp32; such pairs are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gapless.analyses.op_costs import base_name
from gapless.replay.program import Program
from gapless.replay.whatif import cut_host, set_activity_ns
from gapless.rules._consumers import next_consumer
from gapless.rules._jobs import Job
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Edit, Found, Outcome, Unknown
from gapless.tables.intervals import as_ns

CODE = KIND = "dtype-conversion"

HALVES = frozenset(("bf16", "fp16"))
EXPLICIT = frozenset(("to", "_to_copy", "float", "half", "bfloat16", "type"))
PRODUCTS = frozenset(("mm", "addmm", "bmm", "baddbmm", "matmul", "linear", "conv1d", "conv2d", "conv3d", "convolution"))
WEIGHT_POSITION = {"addmm": 2, "baddbmm": 2}
TURNS = frozenset(("t", "transpose", "permute", "detach", "unsqueeze", "view"))
REACH = 6
"""Kernels between a cast up and the cast back down at most."""
LEAST_SHARE = 0.02
SIXTEEN_BIT_SHARE, STAYS, HOPEFUL = 0.55, 0.25, 0.8
"""Time of a 16-bit product against TF32 (H200, 512x4096x4096: 28 us against 53 us), and what stays, cautiously."""

FIX_WEIGHT = """\
# Convert the weights once, where the model is built, and let the product run in their dtype:
model = model.to(torch.bfloat16)
y = x.to(torch.bfloat16) @ w                 # not x @ w.float()
"""
FIX_AUTOCAST = """\
# Inference needs no fp32 weights: convert once instead of in every step under autocast.
model = model.to(torch.bfloat16).eval()
with torch.inference_mode():
    y = model(x.to(torch.bfloat16))
"""
FIX_ROUND_TRIP = """\
# Element-wise ops of 16-bit tensors compute in fp32 inside: no casts round them.
h = torch.relu(h)                             # not torch.relu(h.float()).to(torch.bfloat16)
"""


@dataclass(frozen=True, slots=True)
class _Cast:
    """One needless cast: its activity, the forest row that goes with it, what kind it is, and the activities that
    become cheaper with it: (row of `activities`, share of their time that stays)."""

    job: Job
    row: int
    kind: str
    cheaper: tuple[tuple[int, float], ...]


def check(c: Context) -> Outcome:
    """Are there casts whose result could be kept, or is not needed?"""
    total = sum(job.ns for job in c.jobs) or 1.0
    casts = _casts(c)
    spent = sum(cast.job.ns for cast in casts)
    if spent < LEAST_SHARE * total:
        blind = sum(job.ns for job in c.jobs if job.kernel.cast and job.args is None)
        if blind > 5 * LEAST_SHARE * total and not c.has_shapes:
            return Unknown("casts take much of the GPU time, but shapes are missing", "profile with record_shapes=True")
        return Clean()
    kinds = {cast.kind for cast in casts}
    evidence = [f"{len(casts)} casts a step, {spent / 1e6:.3f} ms, {spent / total:.0%} of the GPU time"]
    for kind, what in _WHAT.items():
        mine = [cast for cast in casts if cast.kind == kind]
        if mine:
            tensors = mine[0].job.tensors
            evidence.append(
                f"{len(mine)} {what}, e.g. {list(tensors[0].shape)} {tensors[1].dtype} to {tensors[0].dtype}"
            )
    fixes = (
        [FIX_WEIGHT] * ("weight" in kinds)
        + [FIX_AUTOCAST] * ("autocast" in kinds)
        + [FIX_ROUND_TRIP] * ("pair" in kinds)
    )
    return Found(
        f"{len(casts)} casts a step convert what could stay as it is ({spent / total:.0%} of the GPU time)",
        c.job_sites([cast.job for cast in casts]),
        _edit(c, casts, 1.0),
        evidence,
        "A weight that changes in every step must be cast after each change; sums over many elements need fp32.",
        "\n".join(fixes),
        cautious=_cautious(casts),
        hopeful=_edit(c, casts, HOPEFUL),
        assumptions=[f"a product of 16-bit weights takes {SIXTEEN_BIT_SHARE:.0%} of its TF32 time"]
        if "weight" in kinds
        else ["element-wise kernels between two casts take half of their time"],
    )  # fmt: skip


_WHAT = {
    "weight": "casts of a product's weight before each product",
    "autocast": "casts of weights by autocast, repeated in every step",
    "pair": "casts up or back round element-wise ops",
}


def _casts(c: Context) -> list[_Cast]:
    jobs = [job for job in c.jobs if _is_cast(job)]
    trains = bool((c.s.links.forward_op >= 0).any())
    found = []
    pairs = _pairs(c)
    for job in jobs:
        root = c.root_of(job.op_row)
        explicit = base_name(c.name_of(root)) in EXPLICIT
        if job.index in pairs:
            found.append(_Cast(job, root, "pair", pairs[job.index]))
        elif explicit and (product := _feeds_weight(c, job, root)) is not None:
            found.append(_Cast(job, root, "weight", product))
        elif not explicit and not trains and _is_autocast_weight(c, job, root):
            found.append(_Cast(job, _cast_row(c, job), "autocast", ()))
    return found


def _is_cast(job: Job) -> bool:
    tensors = job.tensors
    return job.name == "copy_" and job.family != "memcpy" and len(tensors) > 1 and tensors[0].dtype != tensors[1].dtype


def _feeds_weight(c: Context, job: Job, root: int) -> tuple[tuple[int, float], ...] | None:
    """Is the result of this cast the weight of the next product? Then that product's kernels, with the share of their
    time that a product in the source's dtype takes; None if it is not."""
    shape, dtype = job.tensors[0].shape, job.tensors[0].dtype
    user = next_consumer(c, root, shape, dtype)
    while user is not None and user.name in TURNS and len(shape) == 2:
        shape = shape[::-1] if user.name != "detach" else shape
        user = next_consumer(c, user.row, shape, dtype)
    if user is None or user.name not in PRODUCTS or user.position != WEIGHT_POSITION.get(user.name, 1):
        return None
    if job.tensors[1].dtype not in HALVES:
        return ()
    forest = c.s.links.forest
    mine = [j for j in c.jobs if forest.start[user.row] <= j.start < forest.end[user.row] and j.family == "gemm"]
    return tuple((j.row, _sixteen_bit_share(c, j)) for j in mine)


def _sixteen_bit_share(c: Context, job: Job) -> float:
    if job.kernel.tensor_core or c.peaks is None or c.peaks.bf16 is None or job.cost is None:
        return SIXTEEN_BIT_SHARE
    return min(job.cost.flops / (0.7 * c.peaks.bf16 * 1e3) / max(job.ns, 1.0), 1.0)


def _is_autocast_weight(c: Context, job: Job, root: int) -> bool:
    """Does autocast cast the weight of this very op? A weight is the second tensor of the op the user wrote."""
    args = c.args_of(root)
    if base_name(c.name_of(root)) not in PRODUCTS or args is None or job.tensors[0].dtype not in HALVES:
        return False
    weights = [tensor.shape for tensor in args.tensors()[1:]]
    return job.tensors[0].shape in weights


def _cast_row(c: Context, job: Job) -> int:
    """Forest row of the whole conversion inside another op: the outermost `to` or `_to_copy` round the copy."""
    forest, row, best = c.s.links.forest, job.op_row, job.op_row
    while row >= 0:
        if forest.source[row] == forest.source[job.op_row] and base_name(c.name_of(row)) in EXPLICIT:
            best = row
        row = int(forest.parent[row])
    return best


def _pairs(c: Context) -> dict[int, tuple[tuple[int, float], ...]]:
    """Casts up and back of one shape with nothing but element-wise kernels between them."""
    found: dict[int, tuple[tuple[int, float], ...]] = {}
    jobs = c.jobs
    for i, up in enumerate(jobs):
        if not _is_cast(up) or up.tensors[1].dtype not in HALVES or up.tensors[0].dtype != "fp32":
            continue
        for j in range(i + 1, min(i + REACH + 2, len(jobs))):
            down = jobs[j]
            if _is_cast(down) and down.tensors[0].shape == up.tensors[0].shape:
                if down.tensors[1].dtype == "fp32" and down.tensors[0].dtype == up.tensors[1].dtype:
                    between = tuple((job.row, 0.5) for job in jobs[i + 1 : j])
                    found[i], found[j] = between, ()
                break
            if down.family != "pointwise":
                break
    return found


def _edit(c: Context, casts: list[_Cast], better: float) -> Edit:
    forest = c.s.links.forest
    rows = as_ns([cast.row for cast in casts])
    share = {row: better * part for cast in casts for row, part in cast.cheaper}

    def edit(program: Program) -> Program:
        edited = cut_host(program, forest.start[rows], forest.end[rows])
        factor = np.array([share.get(row, 1.0) for row in edited.act_row.tolist()])
        return set_activity_ns(edited, factor < 1.0, factor * edited.act_ns)

    return edit


def _cautious(casts: list[_Cast]) -> Edit:
    rows = [cast.job.row for cast in casts]
    return lambda program: set_activity_ns(program, np.isin(program.act_row, rows), STAYS * program.act_ns)
