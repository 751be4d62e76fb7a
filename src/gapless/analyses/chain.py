"""What is the critical chain of a step: which work, if shorter, would have let it end earlier?

Walked backwards from the last GPU work that the step launched, as recorded. An activity began because the one before it
on its stream ended (if that was still running when its launch call returned; where the stream then stood still, because
the work of another stream ended last) or because it was launched; the launch happened
because the host got there, and the host was held up last by the end of a wait, which ended because the activity that
it waited for did. Host time between a wait and a launch is covered by the calls that the chain passes on its way.
"""

from __future__ import annotations

import numpy as np

from gapless.analyses.host_states import AUTOGRAD, MAIN
from gapless.analyses.study import Study
from gapless.tables.intervals import Int, as_ns

_MOST_LINKS = 200_000
_STREAM_STANDS_NS = 5_000
"""A stream that had work queued begins the next within about 2 us (H200); after 5 it waited for something else."""


def critical_chain(s: Study, step: int) -> tuple[Int, Int, Int, Int]:
    """Pieces (start, end, activity, call) in time order from the step's marker on; the row that is not meant is -1."""
    work = s.raw.activities
    start = as_ns(work["start_ns"].to_numpy())
    end = start + as_ns(work["dur_ns"].to_numpy())
    inside = np.flatnonzero(s.steps.step_of_activity == step)
    low = int(s.steps.start[step])
    none = np.zeros(0, dtype=np.int64)
    if inside.size == 0:
        return none, none, none, none
    before = _before_on_stream(s, start, end)
    finished = np.argsort(end, kind="stable")
    call_start = as_ns(s.raw.calls["start_ns"].to_numpy())
    call_end = call_start + as_ns(s.raw.calls["dur_ns"].to_numpy())
    waits = _host_waits(s, call_start)
    launches = _host_launches(s, call_start)
    pieces: list[tuple[int, int, int, int]] = []
    row = int(inside[np.argmax(end[inside])])
    for _ in range(_MOST_LINKS):
        pieces.append((int(start[row]), int(end[row]), row, -1))
        if start[row] <= low:
            break
        call, previous = int(s.links.launch_of[row]), int(before[row])
        if previous >= 0 and start[row] - end[previous] > _STREAM_STANDS_NS:
            last = int(finished[np.searchsorted(end[finished], start[row], side="right") - 1])
            previous = last if start[last] < start[row] else previous
        if previous >= 0 and (call < 0 or end[previous] > call_end[call]):
            row = previous
            continue
        if call < 0:
            break
        spot = int(np.searchsorted(call_start[waits], call_start[call], side="left")) - 1
        held = int(waits[spot]) if spot >= 0 else -1
        since = max(low, int(call_end[held])) if held >= 0 else low
        pieces += _host_pieces(launches, call_start, call_end, since, call)
        if held < 0 or since <= low:
            break
        awaited = int(s.syncs.waited_activity[np.searchsorted(s.syncs.call, held)])
        pieces.append((max(int(call_start[held]), int(end[awaited])), int(call_end[held]), -1, held))
        if end[awaited] >= start[row]:
            break
        row = awaited
    table = as_ns(sorted(p for p in pieces if p[1] > low)).reshape(-1, 4)
    return table[:, 0], table[:, 1], table[:, 2], table[:, 3]


def _before_on_stream(s: Study, start: Int, end: Int) -> Int:
    """For each activity the one before it on its stream; -1 for the first."""
    work = s.raw.activities
    device, stream = as_ns(work["device"].to_numpy()), as_ns(work["stream"].to_numpy())
    order = np.lexsort((end, start, stream, device))
    same = (device[order[1:]] == device[order[:-1]]) & (stream[order[1:]] == stream[order[:-1]])
    out = np.full(start.size, -1, dtype=np.int64)
    out[order[1:][same]] = order[:-1][same]
    return out


def _on_host_line(s: Study, calls: Int) -> Int:
    threads = [t for t, role in enumerate(s.states.roles) if role in (MAIN, AUTOGRAD)]
    return calls[np.isin(as_ns(s.raw.calls["thread"].to_numpy())[calls], threads)]


def _host_waits(s: Study, call_start: Int) -> Int:
    """Waits of the main and autograd threads that waited for recorded work, in time order."""
    rows = _on_host_line(s, s.syncs.call[s.syncs.waited_activity >= 0])
    return rows[np.argsort(call_start[rows], kind="stable")]


def _host_launches(s: Study, call_start: Int) -> Int:
    rows = _on_host_line(s, np.flatnonzero(s.links.first_activity >= 0))
    return rows[np.argsort(call_start[rows], kind="stable")]


def _host_pieces(launches: Int, start: Int, end: Int, since: int, call: int) -> list[tuple[int, int, int, int]]:
    """The launch calls that the host made from `since` to the end of `call`."""
    a, b = np.searchsorted(start[launches], [since, int(start[call])], side="left")
    passed = [*launches[a:b].tolist(), call]
    return [(int(start[c]), int(end[c]), -1, int(c)) for c in dict.fromkeys(passed)]
