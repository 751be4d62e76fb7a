"""Which calls of compiled code does the program make, and what would it be if several of them, with what runs between,
were one?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gapless.analyses.causes import Cause
from gapless.analyses.host import OP
from gapless.replay.program import NONE, Program
from gapless.replay.whatif import add_host, cut_host, drop_activities
from gapless.rules._jobs import Job
from gapless.rules.outcome import Edit
from gapless.tables.coding import matches
from gapless.tables.intervals import Int, as_ns, contains, merge

if TYPE_CHECKING:
    from gapless.analyses.study import Study
    from gapless.rules.context import Context

REGION, LOOKUP = "Torch-Compiled Region", "TorchDynamo Cache Lookup"
WRAPPERS = (
    REGION, LOOKUP, "Pregraph bytecode", "AOTDispatcher Runtime Wrapper", "CompiledFunction", "## Call CompiledFxGraph",
    "autograd::engine", "dynamo", "entire_frame_compile", "inductor",
)  # fmt: skip
"""Rows that stand for calling compiled code, not for the work in it."""
BODY = ("## Call CompiledFxGraph", "CompiledFunction")
LIGHT = frozenset(
    ("pointwise", "triton", "reduction", "copy", "normalization", "softmax", "random", "memset", "memcpy")
)
"""Families that a compiler fuses with their neighbours."""
CALL_NS = 25_000.0
"""Host time of calling a compiled function, its launches not counted (H200 host, torch 2.11, unprofiled: one call with
one kernel takes 35 to 55 us)."""
FUSED_SHARE = 0.25
"""What is left of a long chain's element-wise GPU time once it is one kernel (measured chains: 0.18 and 0.27)."""
LAUNCH_NS = 10_000.0
"""Host time of one launch of a generated kernel (H200 host, unprofiled)."""
STALL_NS = 100_000.0
QUICK_CALL = 0.6
"""Share of the usual cost of a call that the quickest calls of H200 hosts take."""


Span = list[tuple[int, int]]
"""Host intervals that become one call together."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of compiled code: from its guard check (`start`) to the end of its region; `row` is the region's."""

    start: int
    end: int
    row: int


@dataclass(frozen=True, slots=True)
class Unit:
    """One op that launches: its start and clean host time, its activities, whether a compiler fuses it, the compiled
    graph it runs in (-1: none), whether the host waits in it."""

    start: int
    host: float
    jobs: list[Job]
    light: bool
    piece: int
    waits: bool


class HostClock:
    """Clean host time and waits of any stretch of the program whose borders are event borders."""

    def __init__(self, program: Program) -> None:
        self._pieces, self._items = program.piece_start, program.item_start
        self._piece_sum = np.concatenate([[0.0], np.cumsum(program.piece_ns)])
        self._item_sum = np.concatenate([[0.0], np.cumsum(program.item_ns)])
        self._wait_sum = np.concatenate([[0], np.cumsum(program.item_wait != NONE)])

    def ns(self, start: int, end: int) -> float:
        """Host time of a stretch, blocked time not included."""
        low, high = np.searchsorted(self._pieces, (start, end))
        first, last = np.searchsorted(self._items, (start, end))
        return float(self._piece_sum[high] - self._piece_sum[low] + self._item_sum[last] - self._item_sum[first])

    def waits(self, start: int, end: int) -> int:
        """Blocking calls that start in a stretch."""
        first, last = np.searchsorted(self._items, (start, end))
        return int(self._wait_sum[last] - self._wait_sum[first])


@dataclass(frozen=True, slots=True)
class Work:
    """The program's launching ops by start (`units`, at `at`), and sums that make host time of a stretch a look-up."""

    units: list[Unit]
    at: Int
    hosted: NDArray[np.float64]
    clock: HostClock

    def inside(self, start: int, end: int) -> list[Unit]:
        """The launching ops that start in a stretch."""
        low, high = np.searchsorted(self.at, (start, end))
        return self.units[int(low) : int(high)]

    def overhead_ns(self, start: int, end: int) -> float:
        """Host time of a stretch that is spent on anything but its launching ops."""
        low, high = np.searchsorted(self.at, (start, end))
        return max(self.clock.ns(start, end) - float(self.hosted[high] - self.hosted[low]), 0.0)


def work_of(c: Context) -> Work:
    """All launching ops of the program."""
    forest = c.s.links.forest
    bodies, clock = _body_mask(c), HostClock(c.program)
    found: dict[int, list[Job]] = {}
    for job in c.jobs:
        found.setdefault(_work_row(c, job), []).append(job)
    units = []
    for row, jobs in found.items():
        low, high = int(forest.start[row]), int(forest.end[row])
        light = all(job.family in LIGHT for job in jobs)
        units.append(Unit(low, clock.ns(low, high), jobs, light, _nearest(c, bodies, row), clock.waits(low, high) > 0))
    units.sort(key=lambda unit: unit.start)
    hosted = np.concatenate([[0.0], np.cumsum([unit.host for unit in units])])
    return Work(units, as_ns([unit.start for unit in units]), hosted, clock)


def region_mask(s: Study) -> NDArray[np.bool_]:
    """Which forest rows are calls of compiled code? Where a version names no regions, its `CompiledFunction` rows."""
    forest = s.links.forest
    flag = np.zeros(forest.source.size, dtype=bool)
    flag[forest.of_op] = matches(s.raw.ops["name"], lambda n: n.startswith(REGION))
    if not flag.any():
        flag[forest.of_op] = matches(s.raw.ops["name"], lambda n: n == "CompiledFunction")
    return flag


def calls_of(c: Context, rows: Int) -> list[Call]:
    """The calls of the base step that these region rows are, by start, each with the guard check before it."""
    forest = c.s.links.forest
    rows = c.in_base(rows)
    lookups = c.op_rows(LOOKUP)
    before = dict(zip(next_op(c, lookups).tolist(), lookups.tolist(), strict=True)) if rows.size else {}
    out = []
    for row in rows[np.argsort(forest.start[rows], kind="stable")].tolist():
        first = int(forest.start[before.get(row, row)])
        out.append(Call(max(first, c.program.base_start), int(forest.end[row]), row))
    return out


def next_op(c: Context, rows: Int) -> Int:
    """The op that follows each row under the same parent; -1 where none does."""
    forest = c.s.links.forest
    ops = np.flatnonzero(forest.source == OP)
    ops = ops[np.lexsort((forest.start[ops], forest.parent[ops], forest.thread[ops]))]
    after = np.full(forest.source.size, -1, dtype=np.int64)
    here, there = ops[:-1], ops[1:]
    same = (forest.parent[here] == forest.parent[there]) & (forest.thread[here] == forest.thread[there])
    after[here[same]] = there[same]
    return after[rows]


def stretches(calls: list[Call], may_follow: Callable[[Call, Call], bool]) -> list[list[Call]]:
    """Runs of at least two calls, each of which `may_follow` the one before."""
    groups: list[list[Call]] = []
    for call in calls:
        if groups and may_follow(groups[-1][-1], call):
            groups[-1].append(call)
        else:
            groups.append([call])
    return [group for group in groups if len(group) > 1]


def apart(c: Context) -> Callable[[Call, Call], bool]:
    """Does something lie between two calls that no compiler takes in: autograd, an optimizer, data loading, a stall?"""
    program, forest = c.program, c.s.links.forest
    row = program.piece_row
    cause = np.where(row >= 0, c.s.states.cause_of_row[np.maximum(row, 0)], int(Cause.PYTHON))
    foreign = np.isin(
        cause, [int(k) for k in (Cause.AUTOGRAD, Cause.OPTIMIZER, Cause.DATALOADER, Cause.GC, Cause.COMPILE,
                                 Cause.AUTOTUNE, Cause.COLLECTIVE_HOST)]
    )  # fmt: skip
    quiet = (row < 0) | (forest.source[np.maximum(row, 0)] < OP)
    foreign |= quiet & (program.piece_ns > STALL_NS)
    places = np.sort(program.piece_start[foreign])
    return lambda one, two: bool(np.diff(np.searchsorted(places, (one.end, two.start)))[0] > 0)


def waits_between(c: Context) -> Callable[[Call, Call], int]:
    """How often does the host wait between two calls?"""
    clock = c.compiled.clock
    return lambda one, two: clock.waits(one.end, two.start)


def as_one_call(
    c: Context,
    spans: list[Span],
    *,
    fuse: bool,
    call_share: float = 1.0,
    without: NDArray[np.bool_] | None = None,
    most_ns: float = np.inf,
) -> Edit:
    """An edit that makes each span one call of compiled code.

    Waits, guards, wrappers and Python go. What a compiler does not fuse keeps its op's host time and its kernels. With
    `fuse` neighbours that it does fuse become one kernel, unless one compiled region holds both: that compiler had the
    choice. `call_share`: what a call costs, as a share of what it costs in these spans. `without` marks items whose work
    goes too (trials of tuning). `most_ns`: what an op may take on the host at most (less than it took while cold).
    """
    call_ns = call_share * _usual_call_ns(c, spans)
    host: list[tuple[int, float]] = []
    factor = np.ones(c.s.raw.activities.height)
    for span in spans:
        host.append((span[0][0], call_ns))
        units = [u for low, high in span for u in c.compiled.inside(low, high)]
        units = [u for u in units if without is None or not without[u.jobs[0].item]]
        for group in _groups([u for u in units if not u.waits], fuse=fuse):
            kernels = [job for unit in group for job in unit.jobs]
            own = min(most_ns, *(unit.host for unit in group))
            # The recorder makes a generated launch describe itself: what it really takes is known.
            host.append((group[0].start, min(own, LAUNCH_NS) if fuse and group[0].light else own))
            if len(group) > 1:
                share = max(1 / len(kernels), FUSED_SHARE)
                factor[[job.row for job in kernels]] = 0.0
                factor[kernels[0].row] = share * sum(job.ns for job in kernels) / max(kernels[0].ns, 1.0)
        factor[[job.row for unit in units if unit.waits for job in unit.jobs]] = 0.0
    starts, ends = (as_ns([one[side] for span in spans for one in span]) for side in (0, 1))
    at, ns = as_ns([a for a, _ in host]), np.array([n for _, n in host])

    def edit(program: Program) -> Program:
        edited = cut_host(program, starts, ends, keep_work=True)
        own = np.where(edited.act_row >= 0, factor[np.maximum(edited.act_row, 0)], 1.0)
        if without is not None:
            own = np.where(without[edited.act_item], 0.0, own)
        edited = replace(edited, act_ns=edited.act_ns * own)
        return add_host(drop_activities(edited, own == 0.0), at, ns)

    return edit


def _usual_call_ns(c: Context, spans: list[Span]) -> float:
    """What calling a region costs in these spans beyond its launches, by those that call no other; else the usual."""
    calls = calls_of(c, np.flatnonzero(region_mask(c.s)))
    low, high = (as_ns([one[side] for span in spans for one in span]) for side in (0, 1))
    known = contains(merge(low, high), as_ns([call.start for call in calls]))
    inside = [call for call, here in zip(calls, known.tolist(), strict=True) if here]
    leaves = [call for i, call in enumerate(inside) if i + 1 == len(inside) or inside[i + 1].start >= call.end]
    own = [c.compiled.overhead_ns(call.start, call.end) for call in leaves]
    return min(max(float(np.median(own)), CALL_NS / 2), 2 * CALL_NS) if own else CALL_NS


def _work_row(c: Context, job: Job) -> int:
    """The outermost op that launched a job and is no wrapper; the call itself outside any such op."""
    forest = c.s.links.forest
    row, found = job.op_row, int(forest.of_call[int(c.program.item_call[job.item])])
    while row >= 0:
        if forest.source[row] == OP and not c.name_of(row).startswith(WRAPPERS):
            found = row
        row = int(forest.parent[row])
    return found


def _body_mask(c: Context) -> NDArray[np.bool_]:
    """Which forest rows are bodies of compiled graphs? Regions, where a version names no bodies."""
    forest = c.s.links.forest
    flag = np.zeros(forest.source.size, dtype=bool)
    flag[forest.of_op] = matches(c.s.raw.ops["name"], lambda n: n.startswith(BODY))
    return flag if flag.any() else region_mask(c.s)


def _nearest(c: Context, flag: NDArray[np.bool_], row: int) -> int:
    parent = c.s.links.forest.parent
    while row >= 0 and not flag[row]:
        row = int(parent[row])
    return row


def _groups(units: list[Unit], *, fuse: bool) -> list[list[Unit]]:
    """Neighbours that become one kernel."""
    groups: list[list[Unit]] = []
    for unit in units:
        last = groups[-1][-1] if groups else None
        same_piece = last is not None and unit.piece >= 0 and unit.piece == last.piece
        if fuse and last is not None and unit.light and last.light and not same_piece:
            groups[-1].append(unit)
        else:
            groups.append([unit])
    return groups
