"""What was each idle stretch of a device waiting for, instant by instant?

A gap ends where an activity A starts; A was launched by call L = [l0, l1) on thread T. Before l0 the gap belongs to
what T was doing (its shared line: while T waited for the autograd or main thread, to what that one was doing); inside
[l0, l1) to the launch call; then to `latency` for as long as launches onto an idle stream usually take, and the rest
to `dependency` (inside a graph, or where several streams are in use) or `queue`. A gap before an activity without a
recorded launch is `unrecorded`; a gap that no activity ends belongs to the main thread's doing. `sync` in a gap means
that the host was still blocked although the GPU had finished: it is called `sync-return`.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gapless.analyses.call_names import CallClass
from gapless.analyses.causes import Cause
from gapless.analyses.host_states import HostStates
from gapless.analyses.launches import Launches
from gapless.analyses.links import Links
from gapless.ingest.raw import RawTrace
from gapless.tables.intervals import Int, Set, as_ns
from gapless.tables.segments import split_by

GAP_CAUSES: tuple[str, ...] = (
    *("sync-return" if cause is Cause.SYNC else cause.label for cause in Cause),
    "latency",
    "dependency",
    "queue",
    "unrecorded",
)
LATENCY, DEPENDENCY, QUEUE, UNRECORDED = (GAP_CAUSES.index(c) for c in ("latency", "dependency", "queue", "unrecorded"))


def split_gaps(
    raw: RawTrace, links: Links, states: HostStates, launches: Launches, device: int, gaps: Set
) -> pl.DataFrame:
    """Split the gaps of one device (a set) into rows gap, start_ns, end_ns, cause (code of `GAP_CAUSES`), activity,
    call, thread; rows of one gap tile it exactly, in time order. activity, call and thread are -1 where unknown."""
    begin, finish = gaps
    activity = _next_activity(raw, device, finish)
    call = np.where(activity >= 0, links.launch_of[np.maximum(activity, 0)] if links.launch_of.size else -1, -1)
    call_start, call_end, call_thread = _calls(raw, call)
    linked = call >= 0
    thread = np.where(linked, call_thread, np.where(activity < 0, states.main, -1))
    l0 = np.where(linked, np.clip(call_start, begin, finish), np.where(activity < 0, finish, begin))
    l1 = np.where(linked, np.clip(call_end, l0, finish), l0)
    parts = [_before_launch(states, thread, begin, l0)]
    inside = _inside_cause(links, launches, call)
    parts.append(_rows(np.arange(begin.size), l0, l1, inside, linked))
    late = np.minimum(l1 + launches.usual_delay_ns, finish)
    parts.append(_rows(np.arange(begin.size), l1, late, np.full(begin.size, LATENCY), linked))
    rest = _rest_cause(raw, links, device, activity, call)
    parts.append(_rows(np.arange(begin.size), late, finish, rest, linked))
    parts.append(
        _rows(np.arange(begin.size), begin, finish, np.full(begin.size, UNRECORDED), (activity >= 0) & ~linked)
    )
    gap, start, end, cause = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((start, gap))
    gap, start, end, cause = gap[order], start[order], end[order], cause[order]
    return pl.DataFrame(
        {
            "gap": gap,
            "start_ns": start,
            "end_ns": end,
            "cause": cause,
            "activity": activity[gap],
            "call": call[gap],
            "thread": thread[gap],
        }
    )


def _calls(raw: RawTrace, call: Int) -> tuple[Int, Int, Int]:
    if raw.calls.height == 0:
        none = np.zeros(call.size, dtype=np.int64)
        return none, none, none
    row = np.maximum(call, 0)
    start = as_ns(raw.calls["start_ns"].to_numpy())[row]
    return start, start + as_ns(raw.calls["dur_ns"].to_numpy())[row], as_ns(raw.calls["thread"].to_numpy())[row]


def _next_activity(raw: RawTrace, device: int, at: Int) -> Int:
    """The activity of the device that starts exactly at each instant (the first in table order); -1 if none."""
    rows = np.flatnonzero(as_ns(raw.activities["device"].to_numpy()) == device)
    if rows.size == 0:
        return np.full(at.size, -1, dtype=np.int64)
    start = as_ns(raw.activities["start_ns"].to_numpy())[rows]
    order = np.argsort(start, kind="stable")
    spot = np.minimum(np.searchsorted(start[order], at), rows.size - 1)
    return np.where(start[order][spot] == at, rows[order][spot], -1)


def _rows(gap: Int, start: Int, end: Int, cause: Int, keep: NDArray[np.bool_]) -> tuple[Int, Int, Int, Int]:
    rows = np.flatnonzero(keep & (end > start))
    return gap[rows], start[rows], end[rows], cause[rows]


def _before_launch(states: HostStates, thread: Int, begin: Int, l0: Int) -> tuple[Int, Int, Int, Int]:
    """What the launching thread did from each gap's start to the launch; holes are Python (main) or untraced."""
    gaps, starts, ends, causes = [], [], [], []
    for one in np.unique(thread):
        rows = np.flatnonzero((thread == one) & (l0 > begin))
        if one < 0 or rows.size == 0:
            none = np.zeros(0, dtype=np.int64)
            gaps.append(rows)
            starts.append(begin[rows])
            ends.append(l0[rows])
            causes.append(np.full(rows.size, int(Cause.UNTRACED)) if rows.size else none)
            continue
        line = states.shared[one]
        piece, query, low, high = split_by(line, begin[rows], l0[rows])
        gaps.append(rows[query])
        starts.append(low)
        ends.append(high)
        causes.append(line[2][piece])
        hole = int(Cause.PYTHON) if states.roles[one] in ("main", "autograd") else int(Cause.UNTRACED)
        h_query, h_low, h_high = _holes(query, low, high, begin[rows], l0[rows])
        gaps.append(rows[h_query])
        starts.append(h_low)
        ends.append(h_high)
        causes.append(np.full(h_query.size, hole))
    if not gaps:
        none = np.zeros(0, dtype=np.int64)
        return none, none, none, none
    return np.concatenate(gaps), np.concatenate(starts), np.concatenate(ends), np.concatenate(causes)


def _holes(query: Int, low: Int, high: Int, begin: Int, finish: Int) -> tuple[Int, Int, Int]:
    """The parts of each `[begin, finish)` that its pieces (ordered by query, time) leave uncovered."""
    everyone = np.arange(begin.size)
    owner = np.concatenate([query, everyone, everyone])
    times = np.concatenate([low, begin, finish])
    until = np.concatenate([high, begin, finish])
    order = np.lexsort((until, times, owner))
    owner, times, until = owner[order], times[order], until[order]
    hole = (owner[1:] == owner[:-1]) & (times[1:] > until[:-1])
    return owner[:-1][hole], until[:-1][hole], times[1:][hole]


def _inside_cause(links: Links, launches: Launches, call: Int) -> Int:
    """What a gap inside each launch call waits for; -1 is no call."""
    of_class = np.full(len(CallClass), int(Cause.LAUNCH), dtype=np.int64)
    of_class[int(CallClass.GRAPH_LAUNCH)] = int(Cause.GRAPH_LAUNCH)
    of_class[[int(CallClass.COPY), int(CallClass.COPY_SYNC)]] = int(Cause.COPY_CALL)
    of_call = np.where(launches.queue_full, int(Cause.QUEUE_FULL), of_class[links.call_class])
    # The entry at the end is found by -1.
    return np.append(of_call, UNRECORDED)[call]


def _rest_cause(raw: RawTrace, links: Links, device: int, activity: Int, call: Int) -> Int:
    here = raw.activities.filter(pl.col("device") == device)
    several = here["stream"].n_unique() > 1
    row = np.maximum(activity, 0)
    first = links.first_activity[np.maximum(call, 0)] if links.first_activity.size else row
    inner = (call >= 0) & (first != row)
    waits = bool((links.call_class == int(CallClass.WAIT_EVENT)).any())
    return np.where(inner | (several and waits), DEPENDENCY, QUEUE)
