"""Where does the main thread do something long that is neither an op nor a call, and what does it do to the rest?"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gapless.analyses.causes import Cause
from gapless.analyses.host import CALL, OP
from gapless.analyses.places import Place
from gapless.replay.program import Program
from gapless.replay.whatif import add_host, cut_host
from gapless.rules.context import Context
from gapless.rules.outcome import SiteCost
from gapless.tables.intervals import Int

NAMED_ELSEWHERE = (
    Cause.OPTIMIZER,
    Cause.DATALOADER,
    Cause.GC,
    Cause.COMPILE,
    Cause.AUTOTUNE,
    Cause.PROFILER,
    Cause.GUARD,
)


@dataclass(frozen=True, slots=True)
class Stalls:
    """Event-free stretches of the base step, longest first: start, end, clean host ns, the longest piece's forest row,
    and the rows of the events before and after (-1: none)."""

    start: Int
    end: Int
    ns: Int
    row: Int
    before: Int
    after: Int

    def only(self, keep: NDArray[np.bool_]) -> Stalls:
        """Those of them."""
        return Stalls(*(getattr(self, name)[keep] for name in ("start", "end", "ns", "row", "before", "after")))


def stalls(c: Context, least_ns: float) -> Stalls:
    """Stretches of at least `least_ns` without op or call; pieces that another rule explains break a stretch."""
    program, forest = c.program, c.s.links.forest
    row = program.piece_row
    source = np.where(row >= 0, forest.source[np.maximum(row, 0)], -1)
    cause = np.where(row >= 0, c.s.states.cause_of_row[np.maximum(row, 0)], int(Cause.PYTHON))
    free = ~np.isin(source, (OP, CALL)) & ~np.isin(cause, [int(k) for k in NAMED_ELSEWHERE])
    change = np.ones(row.size, dtype=bool)
    if row.size:
        change[1:] = (free[1:] != free[:-1]) | (program.piece_item[1:] != program.piece_item[:-1])
    group = np.cumsum(change) - 1
    total = np.bincount(group, weights=program.piece_ns * free) if row.size else np.zeros(0)
    chosen = np.flatnonzero(total >= least_ns)
    chosen = chosen[np.argsort(-total[chosen], kind="stable")]
    out: list[tuple[int, int, int, int, int, int]] = []
    for one in chosen.tolist():
        pieces = np.flatnonzero(group == one)
        longest = int(pieces[np.argmax(program.piece_ns[pieces])])
        first, last = int(pieces[0]), int(pieces[-1])
        before = int(row[first - 1]) if first > 0 else -1
        after = int(row[last + 1]) if last + 1 < row.size else -1
        out.append(
            (
                int(program.piece_start[first]),
                int(program.piece_end[last]),
                int(total[one]),
                int(row[longest]),
                before,
                after,
            )
        )
    columns = np.array(out, dtype=np.int64).reshape(-1, 6)
    return Stalls(*(columns[:, i] for i in range(6)))


def by_place(places: list[Place], found: Stalls) -> list[SiteCost]:
    """The sites of stretches of the base step, `places` those of each: by place, most time first."""
    at: dict[Place, list[int]] = {}
    for i, place in enumerate(places):
        at.setdefault(place, []).append(i)
    sites = [
        SiteCost(place, len(some), float(found.ns[some].sum()), int(found.start[some[0]]), int((found.end - found.start)[some[0]]))
        for place, some in at.items()
    ]  # fmt: skip
    return sorted(sites, key=lambda site: -site.ns)


def half_of(program: Program, found: Stalls) -> Program:
    """The program with half of each stretch."""
    return add_host(cut_host(program, found.start, found.end), found.start, found.ns / 2)


LONG_PAUSE_NS = 20_000_000
WARM_SHARE, WARMEST_SHARE = 0.7, 0.45
"""What dispatch costs warm, as a share of what it cost right after a pause of 20 ms and more (H200 hosts: 0.66 after
garbage collections, 0.45 after compilations)."""


def warmed(c: Context, program: Program, paused_ns: float, share: float) -> Program:
    """The program with its ops as fast as they are without a long pause before them: caches stay warm."""
    if paused_ns < LONG_PAUSE_NS:
        return program
    rows, forest = program.piece_row, c.s.links.forest
    ops = (rows >= 0) & np.isin(forest.source[np.maximum(rows, 0)], (OP, CALL))
    return replace(
        program, piece_ns=np.where(ops, program.piece_ns * share, program.piece_ns), item_ns=program.item_ns * share
    )
