"""Does the model reproduce what was recorded?

The recorded calls of all warm steps are replayed once, with recorded host times between them, from a GPU that is busy
with the recorded backlog. The host is free to be delayed only where a call blocks or the queue is full. For each step
the replayed end of its GPU work is compared with the recorded one; the error is relative to the span replayed.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from gapless.analyses.call_names import CallClass
from gapless.analyses.study import Study
from gapless.replay.engine import Machine
from gapless.tables.intervals import Int, as_ns

MOST_CALLS = 60_000
"""Longer recordings are checked on their first calls: the check is for the model, not for the whole file."""


def self_check(s: Study, machine: Machine) -> float | None:
    """The largest relative error of the replayed ends of GPU work; None where no launch is linked."""
    calls = _relevant(s)
    if calls.size == 0:
        return None
    start = as_ns(s.raw.calls["start_ns"].to_numpy())[calls]
    end = start + as_ns(s.raw.calls["dur_ns"].to_numpy())[calls]
    ends, recorded = _replay(s, calls, start, end, machine)
    if not ends:
        return None
    span = max(max(recorded.values()) - int(start[0]), 1)
    return max(abs(ends[step] - recorded[step]) for step in ends) / span


def _relevant(s: Study) -> Int:
    blocking = s.blocking.copy()
    rows = np.flatnonzero((s.links.first_activity >= 0) | blocking)
    start = as_ns(s.raw.calls["start_ns"].to_numpy())
    rows = rows[np.argsort(start[rows], kind="stable")]
    return rows[:MOST_CALLS]


def _replay(s: Study, calls: Int, start: Int, end: Int, machine: Machine) -> tuple[dict[int, float], dict[int, int]]:
    a_start = as_ns(s.raw.activities["start_ns"].to_numpy())
    a_end = a_start + as_ns(s.raw.activities["dur_ns"].to_numpy())
    stream, device = as_ns(s.raw.activities["stream"].to_numpy()), as_ns(s.raw.activities["device"].to_numpy())
    lanes = {pair: i for i, pair in enumerate(sorted(set(zip(device.tolist(), stream.tolist(), strict=True))))}
    lane = np.array([lanes[p] for p in zip(device.tolist(), stream.tolist(), strict=True)], dtype=np.int64)
    free = [-1e18] * max(len(lanes), 1)
    for row in np.flatnonzero(s.links.launch_of < 0).tolist():
        if a_start[row] <= start[0] + 1_000_000_000:
            free[int(lane[row])] = max(free[int(lane[row])], float(a_end[row]))
    span_end = np.zeros(s.raw.calls.height, dtype=np.int64)
    linked = np.flatnonzero(s.links.launch_of >= 0)
    np.maximum.at(span_end, s.links.launch_of[linked], a_end[linked])
    sync_of = {call: i for i, call in enumerate(s.syncs.call.tolist())}
    begun: deque[float] = deque(maxlen=machine.queue)
    ends: dict[int, float] = {}
    recorded: dict[int, int] = {}
    clock, previous = float(start[0]), int(start[0])
    for i, call in enumerate(calls.tolist()):
        # The recorded gap since the previous call ended; overlapping calls of other threads leave no gap.
        clock += max(int(start[i]) - previous, 0)
        issued, first = clock, int(s.links.first_activity[call])
        waits = s.blocking[call]
        sync = sync_of.get(call, -1)
        own = int(end[i] - max(start[i], previous)) if end[i] > previous else 0
        waited = int(s.syncs.work_end[sync]) if waits and s.syncs.waited_activity[sync] >= 0 else -1
        if waited >= 0:
            own = 0
        elif s.launches.queue_full[call]:
            own = min(own, s.launches.usual_call_ns)
        clock += own
        if first >= 0:
            if len(begun) == machine.queue and begun[0] > clock:
                clock = begun[0]
            where = int(lane[first])
            delay = (
                max(int(a_start[first] - end[i]), 0)
                if _was_free(s, first, lane, a_end, int(end[i]))
                else machine.delay_ns
            )
            begin = max(clock + delay, free[where] + machine.spacing_ns)
            if s.links.call_class[call] == int(CallClass.GRAPH_LAUNCH) or waited >= 0:
                begin = max(issued, free[where] + machine.spacing_ns)
                begin = max(begin, issued + float(a_start[first] - start[i])) if waited < 0 else begin
            done = begin + float(span_end[call] - a_start[first])
            begun.append(begin)
            free[where] = max(free[where], done)
            step = int(s.steps.step_of_call[call])
            if step >= 0:
                ends[step] = max(ends.get(step, 0.0), done)
                recorded[step] = max(recorded.get(step, 0), int(span_end[call]))
        if waited >= 0:
            target = int(lane[s.syncs.waited_activity[sync]])
            until = max(free) if s.links.call_class[call] == int(CallClass.SYNC_DEVICE) else free[target]
            clock = max(clock, until + float(end[i] - waited)) if until > issued else clock + float(end[i] - start[i])
        previous = max(previous, int(end[i]))
    return ends, recorded


def _was_free(s: Study, first: int, lane: Int, a_end: Int, call_end: int) -> bool:
    """Had the activity's stream nothing left when its launch returned? Then the recorded delay is the launch's own."""
    del s
    if first == 0 or lane[first - 1] != lane[first]:
        return False
    return bool(a_end[first - 1] <= call_end)
