"""How long do launches take, how late does the work start, and how deep is the queue?

Latency is from a launch call's start to its first activity's start; delay from the call's *end*. Both are clamped at 0
where clocks disagree (the count of negative ones is a trust figure). The usual delay is the median over launches whose
stream was idle when the call ended: what an empty queue costs. A launch is *queue-full* where it lasts far beyond the
usual while about a thousand launches are outstanding: the host runs ahead of a busy GPU, which is healthy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gapless.analyses.call_names import LAUNCHES
from gapless.analyses.causes import QUEUE_OVERHEADS
from gapless.analyses.links import Links
from gapless.ingest.raw import RawTrace
from gapless.tables.coding import matches
from gapless.tables.intervals import Int, as_ns, covered, merge

QUEUE_CAPACITY = 1022
"""Launches that an H200 under CUDA 13 takes before the host stalls (measured; NVIDIA says about 1000)."""
NEARLY_FULL = 900
LONG_LAUNCH_RATIO = 5.0


@dataclass(frozen=True, slots=True)
class Launches:
    """Launch figures. Arrays run over `calls` (-1 where the call launched nothing recorded).

    `latency`: call start to first activity start; `delay`: call end to it; `depth`: launches outstanding on the
    activity's device when the call starts, this one excluded; `queue_full` flags calls that waited for room.
    `usual_delay_ns` and `usual_call_ns` are medians on idle streams; `negative` counts activities before their launch.
    """

    latency: Int
    delay: Int
    depth: Int
    queue_full: NDArray[np.bool_]
    usual_delay_ns: int
    usual_call_ns: int
    negative: int
    most_negative_ns: int


def launch_figures(raw: RawTrace, links: Links) -> Launches:
    """Figures for every launch of a trace."""
    calls, activities = raw.calls, raw.activities
    start = as_ns(calls["start_ns"].to_numpy())
    dur = as_ns(calls["dur_ns"].to_numpy())
    first = links.first_activity
    linked = np.flatnonzero(first >= 0)
    a_start = as_ns(activities["start_ns"].to_numpy())
    missing = np.full(calls.height, -1, dtype=np.int64)
    latency, delay, depth = missing.copy(), missing.copy(), missing.copy()
    raw_latency = a_start[first[linked]] - start[linked]
    latency[linked] = np.maximum(raw_latency, 0)
    delay[linked] = np.maximum(a_start[first[linked]] - start[linked] - dur[linked], 0)
    depth[linked] = _depth(start[linked], a_start[first[linked]], as_ns(activities["device"].to_numpy())[first[linked]])
    idle = _stream_idle(raw, links, linked, start + dur)
    usual_delay = int(np.median(delay[linked][idle])) if idle.any() else 0
    launch_call = np.isin(links.call_class, [int(kind) for kind in LAUNCHES])
    usual = linked[launch_call[linked] & (links.activity_count[linked] == 1)]
    usual_call = int(np.median(dur[usual])) if usual.size else 0
    full = _queue_full(raw, launch_call, start, dur, depth, usual_call)
    negative = raw_latency < 0
    return Launches(
        latency, delay, depth, full, usual_delay, usual_call, int(negative.sum()),
        int(raw_latency.min()) if negative.any() else 0,
    )  # fmt: skip


def _depth(call_start: Int, begin: Int, device: Int) -> Int:
    depth = np.zeros(call_start.size, dtype=np.int64)
    for one in np.unique(device):
        rows = np.flatnonzero(device == one)
        issued = np.searchsorted(np.sort(call_start[rows]), call_start[rows], side="left")
        begun = np.searchsorted(np.sort(begin[rows]), call_start[rows], side="right")
        depth[rows] = np.maximum(issued - begun, 0)
    return depth


def _stream_idle(raw: RawTrace, links: Links, linked: Int, call_end: Int) -> NDArray[np.bool_]:
    """Whether the stream of each linked launch had nothing left to do when the call ended."""
    device, stream = as_ns(raw.activities["device"].to_numpy()), as_ns(raw.activities["stream"].to_numpy())
    begin = as_ns(raw.activities["start_ns"].to_numpy())
    end = begin + as_ns(raw.activities["dur_ns"].to_numpy())
    order = np.lexsort((begin, stream, device))
    reach = np.full(begin.size, np.iinfo(np.int64).min)
    previous = order[:-1]
    same = (device[order[1:]] == device[previous]) & (stream[order[1:]] == stream[previous])
    reach[order[1:][same]] = end[previous[same]]
    return np.asarray(reach[links.first_activity[linked]] <= call_end[linked])


def _queue_full(
    raw: RawTrace, launch_call: NDArray[np.bool_], start: Int, dur: Int, depth: Int, usual_call: int
) -> NDArray[np.bool_]:
    long = launch_call & (dur > LONG_LAUNCH_RATIO * max(usual_call, 1))
    full = long & (depth >= NEARLY_FULL)
    if raw.overheads.height:
        rows = matches(raw.overheads["name"], lambda n: n in QUEUE_OVERHEADS)
        begin = as_ns(raw.overheads["start_ns"].to_numpy())[rows]
        stalls = merge(begin, begin + as_ns(raw.overheads["dur_ns"].to_numpy())[rows])
        full |= launch_call & (covered(stalls, start, start + dur) * 2 > dur) & (dur > 0)
    return full


def queue_depth_series(raw: RawTrace, links: Links) -> pl.DataFrame:
    """Launches outstanding over time, one row a change: device, time_ns, depth."""
    first = links.first_activity
    linked = np.flatnonzero(first >= 0)
    device = as_ns(raw.activities["device"].to_numpy())[first[linked]]
    up = as_ns(raw.calls["start_ns"].to_numpy())[linked]
    down = np.maximum(as_ns(raw.activities["start_ns"].to_numpy())[first[linked]], up)
    parts = []
    for one in np.unique(device):
        rows = device == one
        times = np.concatenate([up[rows], down[rows]])
        change = np.concatenate([np.ones(int(rows.sum()), dtype=np.int64), -np.ones(int(rows.sum()), dtype=np.int64)])
        order = np.lexsort((change, times))
        parts.append(
            pl.DataFrame(
                {"device": np.full(times.size, one), "time_ns": times[order], "depth": np.cumsum(change[order])}
            )
        )
    schema = {"device": pl.Int64, "time_ns": pl.Int64, "depth": pl.Int64}
    return pl.concat(parts) if parts else pl.DataFrame(schema=schema)
