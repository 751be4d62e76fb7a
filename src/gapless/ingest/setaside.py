"""Which events make no sense beside the others, so that they must change no total?

Rules, in order, each with its reason:

- `bad-time`, isolated zero: an event at exactly 0 (recorders clamp what lies before their base to it) that is further
  from all other events than these are from each other, and more than a second.
- `bad-time`, far away: an event that starts more than seven days from the median start. No recording is that long.
- `absurd-duration`, too long: longer than seven days.
- `overruns-window`: it ends later than the recording did by more than the recording's length. The recorder drops GPU
  records that end after its window and clips open spans to it, so this is no time that passed. The recording is the
  `PyTorch Profiler` span and the end marker together; without either nothing is known and the rule does not apply.
- `absurd-duration`, in-order queue: a GPU activity of at least a second, if the next on its stream begins within a
  hundredth of that, and the next ten end before it does. One stream runs its work in order, but for tails overlapping
  by microseconds; ROCm writes such records. Work of one graph launch is exempt: its branches share a lane.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gapless.ingest.columns import Refused
from gapless.ingest.gather import Rows
from gapless.ingest.times import ns_to_text

SECOND = 1_000_000_000
LONGEST = 7 * 86_400 * SECOND
MIN_QUEUED = 10

Bools = NDArray[np.bool_]


def set_aside(tables: Mapping[str, Rows], names: Sequence[str]) -> tuple[dict[str, Rows], list[Refused]]:
    """The tables without senseless events, and those events."""
    kept = dict(tables)
    refused: list[Refused] = []

    def drop(table: str, bad: Bools, reason: str) -> None:
        if not bad.any():
            return
        rows = kept[table]
        refused.extend(
            Refused(
                rows.categories[rows.part[i]],
                names[rows.name[i]],
                ns_to_text(int(rows.start[i])),
                ns_to_text(int(rows.dur[i])),
                reason,
            )
            for i in np.flatnonzero(bad).tolist()
        )
        kept[table] = rows.take(~bad)

    lone_zero = _lone_zero(kept)
    for table, rows in tables.items():
        if lone_zero:
            drop(table, rows.start == 0, "bad-time")
    centre = _median_start(kept)
    for table in tables:
        drop(table, np.abs(kept[table].start - centre) > LONGEST, "bad-time")
        drop(table, kept[table].dur > LONGEST, "absurd-duration")
    window = _recording(kept["markers"], names)
    if window is not None:
        begin, end = window
        for table in tables:
            rows = kept[table]
            drop(table, rows.start + rows.dur > end + max(end - begin, SECOND // 1000), "overruns-window")
    drop("activities", _overruns_queue(kept["activities"]), "absurd-duration")
    return kept, refused


def _lone_zero(tables: Mapping[str, Rows]) -> bool:
    starts = [rows.start for rows in tables.values() if len(rows)]
    others = [start[start != 0] for start in starts]
    if not any(len(start) < len(all_of) for start, all_of in zip(others, starts, strict=True)):
        return False
    others = [start for start in others if len(start)]
    if not others:
        return False
    low = min(int(start.min()) for start in others)
    high = max(int(start.max()) for start in others)
    return low > max(SECOND, high - low)


def _median_start(tables: Mapping[str, Rows]) -> int:
    starts = [rows.start for rows in tables.values() if len(rows)]
    return int(np.median(np.concatenate(starts))) if starts else 0


def _recording(markers: Rows, names: Sequence[str]) -> tuple[int, int] | None:
    """Begin and end of the recording, as its own markers tell; None unless both are there."""
    begin: int | None = None
    end: int | None = None
    closed = False
    for i in range(min(len(markers), 1000)):
        name = names[markers.name[i]]
        start, stop = int(markers.start[i]), int(markers.start[i] + markers.dur[i])
        if name.startswith("PyTorch Profiler"):
            begin = start if begin is None else min(begin, start)
            end = stop if end is None else max(end, stop)
        elif name.startswith("Record Window End"):
            end = stop if end is None else max(end, stop)
            closed = True
    return (begin, end) if closed and begin is not None and end is not None and begin < end else None


def _overruns_queue(rows: Rows) -> Bools:
    bad = np.zeros(len(rows), dtype=np.bool_)
    if len(rows) <= MIN_QUEUED or not (rows.dur >= SECOND).any():
        return bad
    order = np.lexsort((-rows.dur, rows.start, rows.args["stream"], rows.lane))
    lane, stream, correlation = rows.lane[order], rows.args["stream"][order], rows.args["correlation"][order]
    start, dur = rows.start[order], rows.dur[order]
    count = len(order) - MIN_QUEUED
    first = slice(0, count)
    wrong = (dur[first] >= SECOND) & (start[1 : count + 1] - start[first] <= dur[first] // 100)
    for ahead in range(1, MIN_QUEUED + 1):
        other = slice(ahead, count + ahead)
        wrong &= (lane[first] == lane[other]) & (stream[first] == stream[other])
        wrong &= (correlation[first] != correlation[other]) | (correlation[first] < 0)
        wrong &= start[other] + dur[other] < start[first] + dur[first]
    bad[order[:count][wrong]] = True
    return bad
