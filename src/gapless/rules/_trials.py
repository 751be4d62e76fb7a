"""Where does the program try kernels out, measuring each with events, to choose among them?

Two habits are known by their calls alone, whatever the library's version. A convolution library that searches
(`cudnn.benchmark`) waits for several events inside one operator. A tuner such as Triton's records an event before and
after each launch of the kernel and clears the cache in between by filling one tensor, dozens of times in a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gapless.analyses.call_names import CallClass
from gapless.analyses.host import OP
from gapless.rules.context import Context
from gapless.tables.coding import matches
from gapless.tables.intervals import Int, as_ns

LEAST_WAITS = 3
"""Event waits inside one convolution from which on it is a search: running one takes none."""
LEAST_TRIALS = 20
"""Timed launches with a cleared cache in between, from which on it is tuning: a user who times a few layers clears none."""
NEW_PLAN_NS = 1_000_000.0
"""Host time of choosing a convolution's algorithm for a new shape by rule instead of trial (H200 host: 1.2 ms)."""
CLEARS = ("aten::zero_", "aten::fill_")


@dataclass(frozen=True, slots=True)
class Search:
    """Host time spent on trials: from `start` to `end`; `row`: forest row of the op or call that stands for it; `kept_ns`:
    host time that a choice without trials takes instead."""

    start: int
    end: int
    row: int
    kept_ns: float


def searches(c: Context) -> list[Search]:
    """All searches of the counted steps, in order."""
    return sorted(_in_convolutions(c) + _timed_launches(c), key=lambda one: one.start)


def _in_convolutions(c: Context) -> list[Search]:
    forest, links = c.s.links.forest, c.s.links
    waits = np.flatnonzero((links.call_class == int(CallClass.SYNC_EVENT)) & (links.op_of_call >= 0))
    waits = waits[c.counted_rows[forest.of_call[waits]]]
    if waits.size < LEAST_WAITS:
        return []
    is_conv = matches(c.s.raw.ops["name"], lambda n: "conv" in n.lower() and n.startswith("aten::"))
    waits = waits[is_conv[links.op_of_call[waits]]]
    found = []
    ends = forest.end[forest.of_call]
    for op in np.unique(links.op_of_call[waits]).tolist():
        inside = waits[links.op_of_call[waits] == op]
        if inside.size >= LEAST_WAITS:
            row = int(forest.of_op[op])
            found.append(Search(int(forest.start[row]), int(ends[inside].max()), row, NEW_PLAN_NS))
    return found


def _timed_launches(c: Context) -> list[Search]:
    forest, links = c.s.links.forest, c.s.links
    records = np.flatnonzero(matches(c.s.raw.calls["name"], lambda n: "EventRecord" in n))
    records = records[c.counted_rows[forest.of_call[records]]]
    if records.size < 2 * LEAST_TRIALS:
        return []
    start = as_ns(c.s.raw.calls["start_ns"].to_numpy())
    thread = as_ns(c.s.raw.calls["thread"].to_numpy())
    launches = np.flatnonzero(links.first_activity >= 0)
    launches = launches[np.argsort(start[launches], kind="stable")]
    clears = np.zeros(c.s.raw.ops.height + 1, dtype=bool)
    clears[:-1] = matches(c.s.raw.ops["name"], lambda n: n in CLEARS)
    found = []
    step = np.searchsorted(c.s.steps.start, start[records], side="right") - 1
    for number in np.unique(step).tolist():
        for one in np.unique(thread[records[step == number]]).tolist():
            mine = np.sort(start[records[(step == number) & (thread[records] == one)]])
            own = launches[thread[launches] == one]
            spot = np.searchsorted(mine, start[own])
            single = np.bincount(spot, minlength=mine.size + 1) == 1
            clear = np.zeros(mine.size + 1, dtype=bool)
            clear[spot[clears[links.op_of_call[own]]]] = True
            timed = single & ~clear
            timed[[0, -1]] = False
            # A trial: one launch between two events, the cache cleared just before.
            trial = np.flatnonzero(timed[1:] & clear[:-1]) + 1
            if trial.size >= LEAST_TRIALS:
                found.append(_stretch(c, one, int(mine[trial[0] - 1]), int(mine[trial[-1]])))
    return found


def _stretch(c: Context, thread: int, first: int, last: int) -> Search:
    """From the end of the last op before the trials to the launch of what was chosen."""
    forest, links = c.s.links.forest, c.s.links
    clears = matches(c.s.raw.ops["name"], lambda n: n in (*CLEARS, "aten::empty"))
    ops = c.root_ops[(forest.thread[c.root_ops] == thread) & (forest.start[c.root_ops] < first)]
    ops = ops[~clears[forest.row[ops]]]
    low = int(forest.end[ops].max()) if ops.size else first
    calls = np.flatnonzero(as_ns(c.s.raw.calls["thread"].to_numpy()) == thread)
    rows = forest.of_call[calls]
    waits = rows[np.isin(links.call_class[calls], (int(CallClass.SYNC_DEVICE), int(CallClass.SYNC_EVENT)))]
    waits = waits[forest.start[waits] >= last]
    high = int(forest.end[waits].min()) if waits.size else last
    # The tuner reads its events and decides before anything else is launched.
    later = rows[(links.first_activity[forest.row[rows]] >= 0) & (forest.start[rows] >= high)]
    step = int(np.searchsorted(c.s.steps.start, last, side="right")) - 1
    after = int(forest.start[later].min()) if later.size else high
    high = after if after < c.s.steps.end[step] else high
    row = _launch_at(c, rows, first)
    return Search(min(low, first), high, row, 0.0)


def _launch_at(c: Context, rows: Int, at: int) -> int:
    forest = c.s.links.forest
    later = rows[(forest.start[rows] >= at) & (c.s.links.first_activity[forest.row[rows]] >= 0)]
    plain = later[c.s.links.op_of_call[forest.row[later]] < 0]
    chosen = plain if plain.size else later
    return int(chosen[np.argmin(forest.start[chosen])]) if chosen.size else int(np.flatnonzero(forest.source == OP)[0])
