"""What did each blocking call wait for: which GPU work, a copy, something untraced, or nothing?

A call that blocks from c0 to c1 waits for the last activity launched before c0 on its stream (every stream of the
device for a device synchronisation) that ends by c1. The stream is the `cuda_sync` record's if there is one, else that
of the last activity its thread launched, else whichever stream's work ends last within the call. The call's time splits
exactly: copies, then other GPU work, up to the end of what it waited for; stretches of more than `UNTRACED_NS` inside
the call in which the device shows no activity are `untraced` (a host that is blocked launches nothing, so the GPU must
have worked on something this file lacks, or the driver was busy); what remains is `overhead`: returning, scheduling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gapless.analyses.call_names import CallClass
from gapless.analyses.links import Links
from gapless.ingest.raw import RawTrace
from gapless.tables.coding import matches
from gapless.tables.intervals import Int, Set, as_ns, covered, merge, subtract

RETURN_TOLERANCE_NS = 20_000
"""Clock disagreement allowed between the end of GPU work and the return of the call that waited for it."""
UNTRACED_NS = 200_000
"""Blocking this long with no recorded work left cannot be the call's own cost (a return takes 3 us, a slow one 50)."""


@dataclass(frozen=True, slots=True)
class Syncs:
    """One entry a blocking call, in the order of `calls`.

    `call`: row of `calls`. `device`: the device waited for, -1 unknown. `waited_activity`: the activity whose end it
    waited for, -1 if none was pending. `work_end`: that end (c0 if none). `gpu_work`, `copy`, `untraced`, `overhead`:
    nanoseconds, summing to the call's duration. `idle_after`: GPU idle from the end of the work, or from the call's own
    start if none was pending, to the next activity on that device; a stretch counts for its first call alone.
    `untraced_sets`: device -> the untraced stretches.
    """

    call: Int
    device: Int
    waited_activity: Int
    work_end: Int
    gpu_work: Int
    copy: Int
    untraced: Int
    overhead: Int
    idle_after: Int
    untraced_sets: dict[int, Set]


@dataclass(frozen=True, slots=True)
class _Stream:
    device: int
    stream: int
    issued: Int
    reach: Int
    last: Int


@dataclass(frozen=True, slots=True)
class _Latest:
    """For each call the work that ends last of what was seen; of equals the first. activity is -1 where there is none."""

    end: Int
    activity: Int
    device: Int

    @classmethod
    def none(cls, size: int) -> _Latest:
        """Nothing seen yet."""
        return cls(*(np.full(size, -1, dtype=np.int64) for _ in range(3)))

    def see(self, counts: NDArray[np.bool_], end: Int, activity: Int, device: int) -> None:
        """Take work into account where it `counts`."""
        later = counts & (end > self.end)
        self.end[later], self.activity[later], self.device[later] = end[later], activity[later], device


def explain_syncs(raw: RawTrace, links: Links, blocking: NDArray[np.bool_]) -> Syncs:
    """Explain every blocking call of a trace."""
    rows = np.flatnonzero(blocking)
    c0 = as_ns(raw.calls["start_ns"].to_numpy())[rows]
    c1 = c0 + as_ns(raw.calls["dur_ns"].to_numpy())[rows]
    streams = _streams(raw, links)
    kind = links.call_class[rows]
    own = np.where(np.isin(kind, (int(CallClass.COPY), int(CallClass.COPY_SYNC))), links.first_activity[rows], -1)
    device, waited = _waited(raw, links, rows, c0, c1, own, kind, streams)
    a_start = as_ns(raw.activities["start_ns"].to_numpy())
    a_end = a_start + as_ns(raw.activities["dur_ns"].to_numpy())
    work_end = np.where(waited >= 0, np.clip(a_end[np.maximum(waited, 0)] if a_end.size else c0, c0, c1), c0)
    gpu, copy = _split(raw, device, c0, work_end)
    rest = (c1 - c0) - gpu - copy
    stretches = _untraced(raw, device, c0, c1)
    untraced = np.zeros(rows.size, dtype=np.int64)
    for one, intervals in stretches.items():
        mine = device == one
        untraced[mine] = covered(intervals, c0[mine], c1[mine])
    idle = _idle_after(raw, device, np.maximum(work_end, c0))
    return Syncs(rows, device, waited, work_end, gpu, copy, untraced, rest - untraced, idle, stretches)


def _untraced(raw: RawTrace, device: Int, c0: Int, c1: Int) -> dict[int, Set]:
    """Per device, the stretches inside blocking calls in which it shows no activity for longer than `UNTRACED_NS`."""
    a_device = as_ns(raw.activities["device"].to_numpy())
    start = as_ns(raw.activities["start_ns"].to_numpy())
    end = start + as_ns(raw.activities["dur_ns"].to_numpy())
    found = {}
    for one in np.unique(device[device >= 0]).tolist():
        here, mine = a_device == one, device == one
        quiet = subtract(merge(c0[mine], c1[mine]), merge(start[here], end[here]))
        long = quiet[1] - quiet[0] > UNTRACED_NS
        if long.any():
            found[one] = (quiet[0][long], quiet[1][long])
    return found


def _streams(raw: RawTrace, links: Links) -> list[_Stream]:
    """Per stream: launches in order of issue, the latest end so far, and which activity has it."""
    activities = raw.activities
    if activities.height == 0:
        return []
    device, stream = as_ns(activities["device"].to_numpy()), as_ns(activities["stream"].to_numpy())
    start = as_ns(activities["start_ns"].to_numpy())
    end = start + as_ns(activities["dur_ns"].to_numpy())
    call_start = as_ns(raw.calls["start_ns"].to_numpy())
    launch = links.launch_of
    order = np.lexsort((start, stream, device))
    bounds = np.flatnonzero((np.diff(device[order]) != 0) | (np.diff(stream[order]) != 0)) + 1
    found = []
    for rows in np.split(order, bounds):
        issued = np.append(call_start, np.iinfo(np.int64).min)[launch[rows]]
        # Work without a launch was issued after what its stream ran before it; before every call if that was nothing.
        issued = np.where(launch[rows] < 0, np.maximum.accumulate(issued), issued)
        by_issue = np.lexsort((start[rows], issued))
        rows, issued = rows[by_issue], issued[by_issue]
        reach = np.maximum.accumulate(end[rows])
        is_last = end[rows] == reach
        last = rows[np.maximum.accumulate(np.where(is_last, np.arange(rows.size), 0))]
        found.append(_Stream(int(device[rows[0]]), int(stream[rows[0]]), issued, reach, last))
    return found


def _waited(
    raw: RawTrace, links: Links, rows: Int, c0: Int, c1: Int, own: Int, kind: Int, streams: list[_Stream]
) -> tuple[Int, Int]:
    """Device and activity each call waited for."""
    size = rows.size
    device, waited = np.full(size, -1, dtype=np.int64), np.full(size, -1, dtype=np.int64)
    if not streams or size == 0:
        return device, waited
    stream_index, device_hint = _hints(raw, links, rows, c0, streams)
    any_one, on_device, on_stream = (_Latest.none(size) for _ in range(3))
    for index, one in enumerate(streams):
        spot = np.searchsorted(one.issued, c0, side="left") - 1
        end, last = one.reach[np.maximum(spot, 0)], one.last[np.maximum(spot, 0)]
        in_time = (spot >= 0) & (end > c0) & (end <= c1 + RETURN_TOLERANCE_NS)
        any_one.see(in_time, end, last, one.device)
        on_device.see(in_time & (device_hint == one.device), end, last, one.device)
        on_stream.see(in_time & (stream_index == index), end, last, one.device)
    for best, meant in (
        (any_one, np.ones(size, dtype=bool)),
        (on_device, kind == int(CallClass.SYNC_DEVICE)),
        (on_stream, kind != int(CallClass.SYNC_DEVICE)),
    ):
        take = meant & (best.activity >= 0)
        waited[take], device[take] = best.activity[take], best.device[take]
    device = np.where(waited >= 0, device, device_hint)
    has = own >= 0
    if has.any():
        a_device = as_ns(raw.activities["device"].to_numpy())
        waited[has], device[has] = own[has], a_device[own[has]]
    return device, waited


def _hints(raw: RawTrace, links: Links, rows: Int, c0: Int, streams: list[_Stream]) -> tuple[Int, Int]:
    """The stream (as an index of `streams`) and the device that each call most likely waits on."""
    index_of = {(one.device, one.stream): i for i, one in enumerate(streams)}
    a_device, a_stream = as_ns(raw.activities["device"].to_numpy()), as_ns(raw.activities["stream"].to_numpy())
    call_thread, call_start = as_ns(raw.calls["thread"].to_numpy()), as_ns(raw.calls["start_ns"].to_numpy())
    launching = np.flatnonzero(links.first_activity >= 0)
    order = launching[np.lexsort((call_start[launching], call_thread[launching]))]
    stream_index = np.full(rows.size, -1, dtype=np.int64)
    device = np.full(rows.size, -1, dtype=np.int64)
    thread = call_thread[rows]
    for one in np.unique(thread):
        mine = order[call_thread[order] == one]
        if mine.size == 0:
            continue
        here = np.flatnonzero(thread == one)
        spot = np.searchsorted(call_start[mine], c0[here], side="right") - 1
        activity = links.first_activity[mine[np.maximum(spot, 0)]]
        pairs = zip(a_device[activity].tolist(), a_stream[activity].tolist(), strict=True)
        keys = np.array([index_of[pair] for pair in pairs], dtype=np.int64)
        stream_index[here] = np.where(spot >= 0, keys, -1)
        device[here] = np.where(spot >= 0, a_device[activity], -1)
    only = np.unique(a_device)
    if only.size == 1:
        device[:] = only[0]
    return _recorded_streams(raw, rows, stream_index, index_of), device


def _recorded_streams(raw: RawTrace, rows: Int, guess: Int, index_of: dict[tuple[int, int], int]) -> Int:
    """The guess, replaced where the file holds a `cuda_sync` record for the call."""
    if raw.gpu_syncs.height == 0:
        return guess
    correlation = as_ns(raw.calls["correlation"].to_numpy())[rows]
    records = raw.gpu_syncs.filter(pl.col("name").cast(pl.String) == "Stream Sync")
    by_id = dict(
        zip(
            records["correlation"].to_list(),
            zip(records["device"].to_list(), records["stream"].to_list(), strict=True),
            strict=True,
        )
    )
    known = [index_of.get(by_id.get(c, (-1, -1)), -1) for c in correlation.tolist()]
    recorded = as_ns(known)
    return np.where(recorded >= 0, recorded, guess)


def _split(raw: RawTrace, device: Int, c0: Int, work_end: Int) -> tuple[Int, Int]:
    """Nanoseconds of non-copy GPU work and of copies alone inside `[c0, work_end)` of each call."""
    gpu, copy = np.zeros(c0.size, dtype=np.int64), np.zeros(c0.size, dtype=np.int64)
    if raw.activities.height == 0:
        return gpu, copy
    is_copy = matches(raw.activities["kind"], lambda k: k == "memcpy")
    a_device = as_ns(raw.activities["device"].to_numpy())
    start = as_ns(raw.activities["start_ns"].to_numpy())
    end = start + as_ns(raw.activities["dur_ns"].to_numpy())
    for one in np.unique(device[device >= 0]):
        rows = device == one
        here = a_device == one
        work = merge(start[here & ~is_copy], end[here & ~is_copy])
        busy = merge(start[here], end[here])
        gpu[rows] = covered(work, c0[rows], work_end[rows])
        copy[rows] = covered(busy, c0[rows], work_end[rows]) - gpu[rows]
    return gpu, copy


def _idle_after(raw: RawTrace, device: Int, at: Int) -> Int:
    """How long is the device idle from `at` on? 0 where it is busy then or nothing follows, and where an earlier call
    found the same stretch: sums over calls count no instant twice."""
    idle = np.zeros(at.size, dtype=np.int64)
    if raw.activities.height == 0:
        return idle
    a_device = as_ns(raw.activities["device"].to_numpy())
    start = as_ns(raw.activities["start_ns"].to_numpy())
    end = start + as_ns(raw.activities["dur_ns"].to_numpy())
    for one in np.unique(device[device >= 0]):
        rows = np.flatnonzero(device == one)
        here = a_device == one
        begin, finish = merge(start[here], end[here])
        if begin.size == 0:
            continue  # work of no duration alone makes nobody busy
        spot = np.searchsorted(begin, at[rows], side="right")
        busy = (spot > 0) & (at[rows] < finish[np.maximum(spot - 1, 0)])
        following = begin[np.minimum(spot, begin.size - 1)]
        order = np.lexsort((at[rows], spot))
        known = np.zeros(rows.size, dtype=bool)
        known[order[1:]] = spot[order[1:]] == spot[order[:-1]]
        idle[rows] = np.where(busy | known | (spot >= begin.size), 0, following - at[rows])
    return idle
