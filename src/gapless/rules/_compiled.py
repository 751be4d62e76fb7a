"""Which calls of compiled code does the program make, and what would it be if several of them, with what runs between,
were one?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gapless.analyses.causes import Cause
from gapless.analyses.host import OP
from gapless.replay.program import NONE, Program
from gapless.replay.whatif import add_host, cut_host, drop_activities, host_ns, inside_items
from gapless.rules._jobs import Job
from gapless.rules.context import Context
from gapless.rules.outcome import Edit
from gapless.tables.coding import matches
from gapless.tables.intervals import Int, as_ns

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
LOOKUP_BEFORE_NS = 100_000
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
class _Unit:
    """One op that launches: its host interval and clean host time, its activities (rows), whether a compiler fuses it,
    the compiled graph it runs in (-1: none), whether the host waits in it."""

    start: int
    host: float
    jobs: list[Job]
    light: bool
    piece: int
    waits: bool


def region_mask(c: Context) -> NDArray[np.bool_]:
    """Which forest rows are calls of compiled code? Where a version names no regions, its `CompiledFunction` rows."""
    forest = c.s.links.forest
    flag = np.zeros(forest.source.size, dtype=bool)
    flag[forest.of_op] = matches(c.s.raw.ops["name"], lambda n: n.startswith(REGION))
    if not flag.any():
        flag[forest.of_op] = matches(c.s.raw.ops["name"], lambda n: n == "CompiledFunction")
    return flag


def calls_of(c: Context, rows: Int) -> list[Call]:
    """The calls of the base step that these region rows are, each with the guard check before it."""
    forest = c.s.links.forest
    lookups = c.op_rows(LOOKUP)
    out: list[Call] = []
    for row in np.sort(c.in_base(rows)).tolist():
        start = int(forest.start[row])
        before = lookups[
            (forest.thread[lookups] == forest.thread[row])
            & (forest.end[lookups] <= start + 1_000)
            & (forest.start[lookups] >= max(start - LOOKUP_BEFORE_NS, out[-1].end if out else 0))
        ]
        first = int(forest.start[before].max()) if before.size else start
        out.append(Call(max(first, c.program.base_start), int(forest.end[row]), row))
    return out


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
    places = program.piece_start[foreign]
    return lambda one, two: bool(((places >= one.end) & (places < two.start)).any())


def waits_between(c: Context) -> Callable[[Call, Call], int]:
    """How often does the host wait between two calls?"""
    places = c.program.item_start[c.program.item_wait != NONE]
    return lambda one, two: int(((places >= one.end) & (places < two.start)).sum())


def overhead_ns(c: Context, start: int, end: int) -> float:
    """Host time of a stretch that is spent on anything but its launching ops."""
    whole = host_ns(c.program, as_ns([start]), as_ns([end]))
    return max(whole - sum(unit.host for unit in _units(c, start, end)), 0.0)


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
        units = [u for low, high in span for u in _units(c, low, high)]
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
    calls = calls_of(c, np.flatnonzero(region_mask(c)))
    inside = [call for call in calls if any(low <= call.start < high for span in spans for low, high in span)]
    leaves = [call for i, call in enumerate(inside) if i + 1 == len(inside) or inside[i + 1].start >= call.end]
    own = [overhead_ns(c, call.start, call.end) for call in leaves]
    return min(max(float(np.median(own)), CALL_NS / 2), 2 * CALL_NS) if own else CALL_NS


def _units(c: Context, start: int, end: int) -> list[_Unit]:
    """The launching ops of a stretch, in order."""
    forest, program = c.s.links.forest, c.program
    bodies = _body_mask(c)
    items = inside_items(program, as_ns([start]), as_ns([end]))
    waiting = items & (program.item_wait != NONE)
    found: dict[int, list[Job]] = {}
    for job in c.jobs:
        if items[job.item]:
            found.setdefault(_work_row(c, job), []).append(job)
    out = []
    for row, jobs in found.items():
        call_row = int(forest.of_call[int(program.item_call[jobs[0].item])])
        own = row if row >= 0 else call_row
        low, high = int(forest.start[own]), int(forest.end[own])
        inside = inside_items(program, as_ns([low]), as_ns([high]))
        out.append(
            _Unit(
                max(low, start), host_ns(program, as_ns([low]), as_ns([high])), jobs,
                all(job.family in LIGHT for job in jobs), _nearest(c, bodies, own), bool((waiting & inside).any()),
            )
        )  # fmt: skip
    return sorted(out, key=lambda unit: unit.start)


def _work_row(c: Context, job: Job) -> int:
    """The outermost op that launched a job and is no wrapper; for a call outside any op, minus the call's row."""
    forest = c.s.links.forest
    row, found = job.op_row, -1 - int(forest.of_call[int(c.program.item_call[job.item])])
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
    return flag if flag.any() else region_mask(c)


def _nearest(c: Context, flag: NDArray[np.bool_], row: int) -> int:
    parent = c.s.links.forest.parent
    while row >= 0 and not flag[row]:
        row = int(parent[row])
    return row


def _groups(units: list[_Unit], *, fuse: bool) -> list[list[_Unit]]:
    """Neighbours that become one kernel."""
    groups: list[list[_Unit]] = []
    for unit in units:
        last = groups[-1][-1] if groups else None
        same_piece = last is not None and unit.piece >= 0 and unit.piece == last.piece
        if fuse and last is not None and unit.light and last.light and not same_piece:
            groups[-1].append(unit)
        else:
            groups.append([unit])
    return groups
