"""Does the model reproduce what was recorded?

The recorded calls of all warm steps are replayed once, with recorded host times between them, from a GPU that is busy
with the recorded backlog. The host is free to be delayed only where a call blocks or the queue is full; an activity
starts when its launch, its stream and the work that an event makes it wait for allow. For each step the replayed end of
its GPU work is compared with the recorded one; the error is relative to the span replayed.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapless.analyses.call_names import CallClass
from gapless.analyses.study import Study
from gapless.replay.engine import Machine
from gapless.replay.event_waits import event_waits
from gapless.replay.program import ends_of_launches
from gapless.tables.intervals import Int, as_ns

MOST_CALLS = 60_000
"""Longer recordings are checked on their first calls: the check is for the model, not for the whole file."""
BACKLOG_NS = 1_000_000_000
"""Work without a launch that begins later than this after the first call is not the window's backlog."""


@dataclass(frozen=True, slots=True)
class _Work:
    """What each replayed call launched, aligned with the calls; `lane` is -1 where it launched nothing.

    `begin`, `end`: recorded, of its first and last activity. `was_free`: its stream had nothing left when the call
    returned, `was_idle`: when the call began; then the recorded delay is the call's own. `after`: index of the call
    whose work it waited for.
    """

    lane: Int
    begin: Int
    end: Int
    was_free: NDArray[np.bool_]
    was_idle: NDArray[np.bool_]
    after: Int


def self_check(s: Study, machine: Machine) -> float | None:
    """The largest relative error of the replayed ends of GPU work; None where no launch is linked."""
    calls = _relevant(s)
    if calls.size == 0 or s.raw.activities.height == 0:
        return None
    start = as_ns(s.raw.calls["start_ns"].to_numpy())[calls]
    end = start + as_ns(s.raw.calls["dur_ns"].to_numpy())[calls]
    ends, recorded = _replay(s, calls, start, end, machine)
    if not ends:
        return None
    span = max(max(recorded.values()) - int(start[0]), 1)
    return max(abs(ends[step] - recorded[step]) for step in ends) / span


def _relevant(s: Study) -> Int:
    rows = np.flatnonzero((s.links.first_activity >= 0) | s.blocking)
    start = as_ns(s.raw.calls["start_ns"].to_numpy())
    rows = rows[np.argsort(start[rows], kind="stable")]
    return rows[:MOST_CALLS]


def _work_of(s: Study, calls: Int, start: Int, end: Int, lane_of: Int) -> _Work:
    a_start = as_ns(s.raw.activities["start_ns"].to_numpy())
    a_end = a_start + as_ns(s.raw.activities["dur_ns"].to_numpy())
    first = s.links.first_activity[calls]
    launches = first >= 0
    lane = np.where(launches, lane_of[np.maximum(first, 0)], -1)
    begin = np.where(launches, a_start[np.maximum(first, 0)], 0)
    last = ends_of_launches(s, a_end)[calls]
    # The end of the work before each activity on its own stream, in the order in which the stream ran it.
    order = np.lexsort((a_start, lane_of))
    before = np.full(a_start.size, np.iinfo(np.int64).min)
    same = lane_of[order[1:]] == lane_of[order[:-1]]
    before[order[1:][same]] = a_end[order[:-1][same]]
    was_free = launches & (before[np.maximum(first, 0)] <= end)
    was_idle = launches & (before[np.maximum(first, 0)] <= start)
    after = np.full(calls.size, -1, dtype=np.int64)
    launching = np.flatnonzero(launches)
    waits = as_ns(s.raw.calls["start_ns"].to_numpy())[s.links.call_class == int(CallClass.WAIT_EVENT)]
    found = event_waits(waits, start[launching], lane[launching], begin[launching], last[launching])
    after[launching] = np.where(found >= 0, launching[np.maximum(found, 0)], -1)
    return _Work(lane, begin, last, was_free, was_idle, after)


def _lanes(s: Study) -> Int:
    """Per activity the index of its stream."""
    device, stream = as_ns(s.raw.activities["device"].to_numpy()), as_ns(s.raw.activities["stream"].to_numpy())
    pairs = np.stack([device, stream], axis=1)
    return as_ns(np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1))


def _backlog(s: Study, lane_of: Int, first_call: int) -> list[float]:
    """Per stream, when the work that was launched before the window ends."""
    a_start = as_ns(s.raw.activities["start_ns"].to_numpy())
    a_end = a_start + as_ns(s.raw.activities["dur_ns"].to_numpy())
    free = np.full(int(lane_of.max()) + 1 if lane_of.size else 1, -1e18)
    old = (s.links.launch_of < 0) & (a_start <= first_call + BACKLOG_NS)
    np.maximum.at(free, lane_of[old], a_end[old].astype(np.float64))
    return [float(at) for at in free]


def _replay(s: Study, calls: Int, start: Int, end: Int, machine: Machine) -> tuple[dict[int, float], dict[int, int]]:
    lane_of = _lanes(s)
    work, free = _work_of(s, calls, start, end, lane_of), _backlog(s, lane_of, int(start[0]))
    done = [0.0] * calls.size
    sync_of = {call: i for i, call in enumerate(s.syncs.call.tolist())}
    begun: deque[float] = deque(maxlen=machine.queue)
    ends: dict[int, float] = {}
    recorded: dict[int, int] = {}
    clock, previous = float(start[0]), int(start[0])
    for i, call in enumerate(calls.tolist()):
        # The recorded gap since the previous call ended; overlapping calls of other threads leave no gap.
        clock += max(int(start[i]) - previous, 0)
        issued, kind = clock, s.links.call_class[call]
        sync = sync_of.get(call, -1)
        own = int(end[i] - max(start[i], previous)) if end[i] > previous else 0
        waits = bool(s.blocking[call]) and s.syncs.waited_activity[sync] >= 0
        if waits:
            own = 0
        elif s.launches.queue_full[call]:
            own = min(own, s.launches.usual_call_ns)
        clock += own
        if work.lane[i] >= 0:
            if len(begun) == machine.queue and begun[0] > clock:
                clock = begun[0]
            where, after = int(work.lane[i]), int(work.after[i])
            ready = free[where] + machine.spacing_ns
            if after >= 0:
                ready = max(ready, done[after] + machine.delay_ns)
            if waits and not work.was_idle[i]:
                begin = max(issued, ready)
            elif waits or kind == int(CallClass.GRAPH_LAUNCH):
                begin = max(issued + float(work.begin[i] - start[i]), ready)
            else:
                own_delay = max(int(work.begin[i] - end[i]), 0)
                begin = max(clock + (own_delay if work.was_free[i] and after < 0 else machine.delay_ns), ready)
            done[i] = begin + float(work.end[i] - work.begin[i])
            begun.append(begin)
            free[where] = max(free[where], done[i])
            step = int(s.steps.step_of_call[call])
            if step >= 0:
                ends[step] = max(ends.get(step, 0.0), done[i])
                recorded[step] = max(recorded.get(step, 0), int(work.end[i]))
        if waits:
            target = int(lane_of[s.syncs.waited_activity[sync]])
            until = max(free) if kind == int(CallClass.SYNC_DEVICE) else free[target]
            back = float(end[i] - s.syncs.work_end[sync])
            clock = max(clock, until + back) if until > issued else clock + float(end[i] - start[i])
        previous = max(previous, int(end[i]))
    return ends, recorded
