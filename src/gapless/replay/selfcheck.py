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
class _Host:
    """What each replayed call did on the host. `gap`: recorded time since the calls before it ended (overlapping calls of
    other threads leave none); `own`: its time when it waits for nothing; `dur` as recorded; `waits`: for GPU work on
    stream `target`, or on all (`device`), after whose end it took `back`."""

    gap: Int
    own: Int
    dur: Int
    waits: NDArray[np.bool_]
    target: Int
    device: NDArray[np.bool_]
    back: Int


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
    step = s.steps.step_of_call[calls]
    checked = np.flatnonzero((s.links.first_activity[calls] >= 0) & (step >= 0))
    if checked.size == 0:
        return None
    last = ends_of_launches(s, _ends(s))[calls]
    ends, recorded = np.zeros(s.steps.count), np.zeros(s.steps.count)
    np.maximum.at(ends, step[checked], np.array(_replay(s, calls, start, end, machine))[checked])
    np.maximum.at(recorded, step[checked], last[checked])
    return float(np.abs(ends - recorded).max()) / max(float(recorded.max()) - int(start[0]), 1.0)


def _ends(s: Study) -> Int:
    """When each activity ended."""
    return as_ns(s.raw.activities["start_ns"].to_numpy()) + as_ns(s.raw.activities["dur_ns"].to_numpy())


def _relevant(s: Study) -> Int:
    rows = np.flatnonzero((s.links.first_activity >= 0) | s.blocking)
    start = as_ns(s.raw.calls["start_ns"].to_numpy())
    rows = rows[np.argsort(start[rows], kind="stable")]
    return rows[:MOST_CALLS]


def _work_of(s: Study, calls: Int, start: Int, end: Int, lane_of: Int) -> _Work:
    a_start, a_end = as_ns(s.raw.activities["start_ns"].to_numpy()), _ends(s)
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


def _host_of(s: Study, calls: Int, start: Int, end: Int, lane_of: Int) -> _Host:
    previous = np.maximum.accumulate(np.append(start[:1], end))[:-1]
    sync_of = np.full(s.raw.calls.height, -1, dtype=np.int64)
    sync_of[s.syncs.call] = np.arange(s.syncs.call.size)
    sync = np.where(s.blocking[calls], sync_of[calls], -1)
    awaited = np.where(sync >= 0, np.append(s.syncs.waited_activity, -1)[sync], -1)
    waits = awaited >= 0
    own = np.maximum(end - np.maximum(start, previous), 0)
    full = s.launches.queue_full[calls]
    own = np.where(waits, 0, np.where(full, np.minimum(own, s.launches.usual_call_ns), own))
    back = np.where(waits, end - np.append(s.syncs.work_end, 0)[sync], 0)
    device = s.links.call_class[calls] == int(CallClass.SYNC_DEVICE)
    return _Host(
        np.maximum(start - previous, 0), own, end - start, waits, lane_of[np.maximum(awaited, 0)], device, back
    )


def _lanes(s: Study) -> Int:
    """Per activity the index of its stream."""
    device, stream = as_ns(s.raw.activities["device"].to_numpy()), as_ns(s.raw.activities["stream"].to_numpy())
    streams, stream = np.unique(stream, return_inverse=True)
    device = np.unique(device, return_inverse=True)[1]
    return as_ns(np.unique(device * streams.size + stream, return_inverse=True)[1])


def _backlog(s: Study, lane_of: Int, first_call: int) -> list[float]:
    """Per stream, when the work that was launched before the window ends."""
    a_start, a_end = as_ns(s.raw.activities["start_ns"].to_numpy()), _ends(s)
    free = np.full(int(lane_of.max()) + 1 if lane_of.size else 1, -1e18)
    old = (s.links.launch_of < 0) & (a_start <= first_call + BACKLOG_NS)
    np.maximum.at(free, lane_of[old], a_end[old].astype(np.float64))
    return [float(at) for at in free]


def _replay(s: Study, calls: Int, start: Int, end: Int, machine: Machine) -> list[float]:
    """The replayed end of each call's GPU work; 0 where it launches none."""
    lane_of = _lanes(s)
    host, work = _host_of(s, calls, start, end, lane_of), _work_of(s, calls, start, end, lane_of)
    free = _backlog(s, lane_of, int(start[0]))
    alone = work.was_free & (work.after < 0)
    delay = np.where(alone, np.maximum(work.begin - end, 0), machine.delay_ns)
    late = (s.links.call_class[calls] == int(CallClass.GRAPH_LAUNCH)) | host.waits
    columns = (
        host.gap, host.own, work.lane, work.after, work.was_idle, work.begin - start, work.end - work.begin, delay, late,
        host.waits, host.device, host.target, host.back, host.dur,
    )  # fmt: skip
    done: list[float] = []
    begun: deque[float] = deque(maxlen=machine.queue)
    clock = float(start[0])
    for gap, own, lane, after, idle, recorded, length, own_delay, at_once, waits, device, target, back, dur in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        clock += gap
        issued = clock
        clock += own
        ended = 0.0
        if lane >= 0:
            if len(begun) == machine.queue and begun[0] > clock:
                clock = begun[0]
            begin = free[lane] + machine.spacing_ns
            if after >= 0:
                begin = max(begin, done[after] + machine.delay_ns)
            if not at_once:
                begin = max(begin, clock + own_delay)
            elif waits and not idle:
                begin = max(begin, issued)
            else:
                begin = max(begin, issued + recorded)
            ended = begin + length
            begun.append(begin)
            free[lane] = max(free[lane], ended)
        done.append(ended)
        if waits:
            until = max(free) if device else free[target]
            clock = max(clock, until + back) if until > issued else clock + dur
    return done
