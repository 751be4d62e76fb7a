"""Where is attention written out: a softmax between two batched products, and its backward pass?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gapless.rules._jobs import Job
from gapless.rules._swap import stretch
from gapless.tables.intervals import Int, as_ns, contains, merge

if TYPE_CHECKING:
    from gapless.rules.context import Context

SOFTMAX = frozenset(("_softmax", "_safe_softmax", "softmax"))
PRODUCTS = frozenset(("bmm", "baddbmm", "mm"))
MASKING = frozenset(("masked_fill_", "masked_fill", "where", "add", "add_"))
DROPOUT = frozenset(("native_dropout", "bernoulli_", "dropout"))
LIBRARY = "scaled_dot_product_attention"
LIGHT = frozenset(("pointwise", "copy", "random", "memset", "memcpy", "embedding", "reduction"))
REACH = 16
"""Kernels between the softmax and a product at most: scale, mask, cast, dropout and their helpers."""


@dataclass(frozen=True, slots=True)
class Chain:
    """One attention. `jobs` forward, `backward` the jobs of its backward pass; `start`/`end` host intervals of both
    passes (`back_at`: begin of the backward one, -1 if there is none). Sizes are None without shapes: `pairs` scores
    computed, `width` head size of q and v together; `dtype` of q, k and v. `causal`: one square
    mask for all heads; `masked`: dropout or another mask. `in_library`: the pieces are
    those of PyTorch's own attention, on its fallback path."""

    jobs: list[Job]
    backward: list[Job]
    start: Int
    end: Int
    back_start: Int
    back_end: Int
    pairs: int | None
    width: int | None
    dtype: str | None
    causal: bool
    masked: bool
    in_library: bool


def chains_of(c: Context) -> list[Chain]:
    """Every attention of the program that is written out."""
    jobs = c.jobs
    starts = as_ns([job.start for job in jobs])
    found: list[Chain] = []
    taken = -1
    for i, job in enumerate(jobs):
        if job.family != "softmax" or job.name not in SOFTMAX or i <= taken:
            continue
        first, last = _product(jobs, i, -1), _product(jobs, i, 1)
        if first < 0 or last < 0 or first <= taken or not _fits(jobs[first], job, jobs[last]):
            continue
        chain = _chain(c, jobs, starts, first, i, last)
        if chain is not None:
            found.append(chain)
            taken = last
    return found


def _product(jobs: list[Job], at: int, way: int) -> int:
    """Index of the nearest product before or after, with nothing but light kernels between; -1 if there is none."""
    spot = at + way
    while 0 <= spot < len(jobs) and abs(spot - at) <= REACH:
        job = jobs[spot]
        if job.family == "gemm" and not job.kernel.helper:
            return spot if job.name in PRODUCTS else -1
        if job.family not in LIGHT and not job.kernel.helper:
            return -1
        spot += way
    return -1


def _fits(first: Job, middle: Job, last: Job) -> bool:
    """Do the shapes (where recorded) agree: scores of the first product are what the softmax and the second read?"""
    if not (first.tensors and middle.tensors and last.tensors):
        return first.name in ("bmm", "baddbmm") and last.name in ("bmm", "baddbmm")
    a, b = first.tensors[-2:] if len(first.tensors) > 1 else (first.tensors[0], first.tensors[0])
    if len(a.shape) < 2 or len(b.shape) < 2:
        return False
    scores = a.count // max(a.shape[-1], 1) * b.shape[-1]
    reads = last.tensors[-2] if len(last.tensors) > 1 else last.tensors[0]
    return scores == middle.tensors[0].count == reads.count


def _chain(c: Context, jobs: list[Job], starts: Int, first: int, middle: int, last: int) -> Chain | None:
    forest = c.s.links.forest
    ends = [c.root_of(jobs[i].op_row) for i in (first, last)]
    if min(ends) < 0 or forest.thread[ends[0]] != forest.thread[ends[1]]:
        return None
    low, high = int(forest.start[ends[0]]), int(forest.end[ends[1]])
    mine = [jobs[i] for i in np.flatnonzero((low <= starts) & (starts < high)).tolist()]
    heavy = [j for j in mine if j.family not in LIGHT | {"softmax"} and not j.kernel.helper]
    if any(job.index not in (first, last) for job in heavy):
        return None
    start, end = stretch(c, int(forest.thread[ends[0]]), low, high)
    back = _backward_rows(c, low, high, int(forest.thread[ends[0]]))
    back_start, back_end = forest.start[back], forest.end[back]
    backward = [jobs[i] for i in np.flatnonzero(contains(merge(back_start, back_end), starts)).tolist()]
    a, b = jobs[first].tensors, jobs[last].tensors
    outer = c.args_of(ends[0]) if c.name_of(ends[0]).endswith(LIBRARY) else None
    dtypes = [t.dtype for t in (outer.tensors() if outer else a)]
    square = _square_mask(jobs[first : last + 1], jobs[first])
    return Chain(
        mine, backward, start, end, back_start, back_end,
        jobs[middle].tensors[0].count if jobs[middle].tensors else None,
        a[-2].shape[-1] + b[-1].shape[-1] if len(a) > 1 and len(b) > 1 else None,
        dtypes[0] if dtypes else None,
        square,
        any(job.name in DROPOUT or (job.name in MASKING and not square) for job in jobs[first : last + 1]),
        c.name_of(ends[0]).endswith(LIBRARY),
    )  # fmt: skip


def _square_mask(between: list[Job], first: Job) -> bool:
    """Is one mask of tokens x tokens shared by all heads and batches (most likely a causal one)?"""
    a, b = first.tensors[-2:] if len(first.tensors) > 1 else (None, None)
    if a is None or b is None or len(a.shape) < 2 or a.shape[-2] != b.shape[-1]:
        return False
    size = a.shape[-2] ** 2
    return any(t.count == size for job in between if job.name in MASKING for t in job.tensors[1:]) or any(
        job.name in ("triu", "tril") for job in between
    )


def _backward_rows(c: Context, low: int, high: int, thread: int) -> Int:
    """Outermost rows of the backward nodes whose forward op started between two instants on a thread."""
    links, forest = c.s.links, c.s.links.forest
    backward = np.flatnonzero(links.forward_op >= 0)
    if backward.size == 0:
        return backward
    forward = forest.of_op[links.forward_op[backward]]
    mine = (forest.start[forward] >= low) & (forest.start[forward] < high) & (forest.thread[forward] == thread)
    roots = {c.root_of(int(row)) for row in forest.of_op[backward[mine]].tolist()}
    rows = np.array(sorted(row for row in roots if row >= 0), dtype=np.int64)
    return c.in_base(rows)
