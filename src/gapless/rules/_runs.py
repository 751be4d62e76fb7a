"""Which element-wise kernels run one after another, so that a compiler could make one of them?"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gapless.analyses.copies import copy_traits
from gapless.replay.program import NONE
from gapless.rules._jobs import Job
from gapless.rules._swap import stretch
from gapless.rules.context import Context
from gapless.rules.unfused_optimizer import optimizer_rows
from gapless.tables.coding import categories
from gapless.tables.intervals import Int

FUSABLE = frozenset(("pointwise", "copy", "reduction", "normalization", "softmax", "random", "memset"))
REDUCING = frozenset(("reduction", "normalization", "softmax"))
ALSO_FUSABLE = frozenset(("native_dropout_backward", "native_dropout"))
NEVER = frozenset(("cat", "stack", "index", "index_put_", "nonzero", "sort", "topk", "cumsum"))
MOVES = frozenset(("fill_", "zero_", "copy_", "ones_like", "zeros_like"))
ENGINE = ("torch::autograd::AccumulateGrad",)

_TRANSCENDENTAL = """
    tanh gelu sigmoid exp exp2 expm1 log log2 log10 log1p sin cos tan erf erfc silu mish softplus elu atan atan2 acos
    asin sinh cosh gelu_backward silu_backward softplus_backward mish_backward logsumexp log_sigmoid_forward
    native_dropout
"""
_DIVIDING = "div sqrt rsqrt reciprocal remainder fmod floor_divide _softmax _log_softmax"
SLOW_OPS = dict.fromkeys(_TRANSCENDENTAL.split(), 20.0) | dict.fromkeys(_DIVIDING.split(), 6.0)
"""Instructions per element of ops that need more than one or two (tanh on an H200: 36 us for ten of 4 M elements)."""
ISSUE_SHARE = 0.85
OVERLAP = 0.4
KERNEL_FLOOR_NS = 2_000.0
INDEPENDENT_SHARE = 0.4
"""Of the bytes moved now, at least, if nothing is taken for granted: chains of different tensors look like one."""
BLIND_FACTOR = 1.5
"""Without shapes the fused kernel is taken to last this much longer than the longest of those it replaces."""


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive fusable kernels of one thread and stream. `start`/`end`: host intervals of their ops."""

    jobs: list[Job]
    thread: int
    start: Int
    end: Int

    @property
    def arithmetic(self) -> int:
        """Kernels that compute something element by element, rather than fill, copy, reduce or normalise."""
        return sum(job.family == "pointwise" and job.name not in MOVES for job in self.jobs)

    @property
    def gpu_ns(self) -> float:
        """GPU time now."""
        return sum(job.ns for job in self.jobs)


def runs(c: Context, least: int) -> list[Run]:
    """Runs of at least so many kernels in the program; attention that is written out and optimizers are left out."""
    jobs = [job for job in c.jobs if job.op_row >= 0]
    excluded = {job.index for chain in c.attentions for job in (*chain.jobs, *chain.backward)}
    forest = c.s.links.forest
    for row in optimizer_rows(c):
        excluded |= {job.index for job in jobs if forest.start[row] <= job.start < forest.end[row]}
    blocked = c.program.item_start[c.program.item_wait != NONE]
    found = []
    for group in _groups(c, jobs, excluded, blocked):
        if len(group) >= least:
            first, last = c.root_of(group[0].op_row), c.root_of(group[-1].op_row)
            thread = int(forest.thread[first])
            start, end = stretch(c, thread, int(forest.start[first]), int(forest.end[last]))
            found.append(Run(group, thread, start, end))
    return found


def _groups(c: Context, jobs: list[Job], excluded: set[int], blocked: Int) -> Iterator[list[Job]]:
    """Split the jobs where a run ends: another thread or stream, work that cannot be fused, or a host that waits."""
    forest = c.s.links.forest
    by_root: list[tuple[int, list[Job]]] = []
    for job in jobs:
        root = c.root_of(job.op_row)
        if by_root and by_root[-1][0] == root:
            by_root[-1][1].append(job)
        else:
            by_root.append((root, [job]))
    copies_inside = np.array(
        [copy_traits(n).direction == "DtoD" for n in categories(c.s.raw.activities["name"])] or [False]
    )
    group: list[Job] = []
    blocks = blocked.tolist()
    for root, mine in by_root:
        good = not any(job.index in excluded or not _fusable(c, job, copies_inside) for job in mine)
        good = good and c.name_of(root).partition(": ")[2] not in ENGINE
        if group and (not good or _broken(c, group[-1], mine[0], blocks)):
            yield group
            group = []
        waits = bisect_left(blocks, forest.start[root]) < bisect_left(blocks, forest.end[root])
        if good and not waits:
            group.extend(mine)
    if group:
        yield group


def _fusable(c: Context, job: Job, copies_inside: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> bool:
    if job.name in NEVER:
        return False
    if job.family == "memcpy":
        return bool(copies_inside[c.activity_code[job.row]])
    return job.family in FUSABLE or job.name in ALSO_FUSABLE


def _broken(c: Context, before: Job, after: Job, blocks: list[int]) -> bool:
    forest = c.s.links.forest
    if before.stream != after.stream or forest.thread[before.op_row] != forest.thread[after.op_row]:
        return True
    return bisect_left(blocks, before.start) < bisect_right(blocks, after.start)


def fused_ns(c: Context, run: Run, extra: float) -> float:
    """GPU time of a run as fused kernels: one pass over memory for each reduction in it (one if there is none), its
    arithmetic, partly overlapping. Of the further inputs that the ops' shapes
    allow, at most `extra` are read too (infinity: take
    nothing for granted)."""
    passes = max(sum(job.family in REDUCING for job in run.jobs), 1)
    if any(job.cost is None for job in (run.jobs[0], run.jobs[-1])):
        return BLIND_FACTOR * max(job.ns for job in run.jobs) + KERNEL_FLOOR_NS * passes
    first, last = run.jobs[0].cost, run.jobs[-1].cost
    read, written = first.bytes_read if first else 0, last.bytes_written if last else 0
    largest = max((tensor.size for job in run.jobs for tensor in job.tensors), default=0)
    spare = min(_further_inputs(run), extra) * min(largest, read)
    moved = passes * (read + written + spare)
    if extra == np.inf:
        ops = {job.op: job for job in run.jobs}.values()
        moved = max(moved, INDEPENDENT_SHARE * sum(job.cost.bytes for job in ops if job.cost))
    memory = moved / c.best_bandwidth
    compute = _compute_ns(c, run)
    return max(max(memory, compute) + OVERLAP * min(memory, compute), KERNEL_FLOOR_NS * passes)


def _further_inputs(run: Run) -> int:
    """Large tensors read besides the first op's, if every result were used once: results used twice are counted too."""
    largest = max((tensor.count for job in run.jobs for tensor in job.tensors), default=0)
    ops = list({job.op: job for job in run.jobs}.values())
    uses = sum(sum(tensor.count == largest for tensor in job.tensors[:3]) for job in ops[1:])
    return max(uses - (len(ops) - 1), 0)


def _compute_ns(c: Context, run: Run) -> float:
    if c.peaks is None:
        return 0.0
    rate = c.peaks.fp32 * 1e3 / 2 * ISSUE_SHARE
    ops = {job.op: job for job in run.jobs}.values()
    work = sum(
        max((tensor.count for tensor in job.tensors), default=0) * SLOW_OPS.get(job.name.removesuffix("_"), 1.5)
        for job in ops
    )
    return work / rate
