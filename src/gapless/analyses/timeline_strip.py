"""What does a device's strip show: who owns each instant, how deep the queue is, and the whole run at a glance?"""

from __future__ import annotations

import numpy as np
import polars as pl

from gapless.analyses.accounting import IDLE, STATES, DeviceAccounting
from gapless.analyses.gaps import GAP_CAUSES
from gapless.analyses.host import ANNOTATION, CALL, OP
from gapless.analyses.host_states import AUTOGRAD, MAIN
from gapless.analyses.launches import queue_depth_series
from gapless.analyses.study import Study
from gapless.analyses.timeline_boxes import LaneKey
from gapless.analyses.timeline_text import Strings
from gapless.model.palette import FAMILY_COLOURS, family
from gapless.model.timeline import Overview, Queue, Strip
from gapless.tables.columns import packed
from gapless.tables.intervals import Int, Set, as_ns, covered, merge
from gapless.tables.nesting import nearest
from gapless.tables.segments import split

BUCKETS = 600
_DEVICE_CAUSES = ("latency", "dependency", "queue", "unrecorded")


def strip_table(s: Study, shown: Set, lane_of: dict[LaneKey, int], strings: Strings) -> Strip:
    """Pieces of every device within `shown` that the accounting owns; idle ones say what the host was at."""
    parts: list[tuple[Int, ...]] = []
    for device in sorted(s.devices):
        lane = lane_of.get(("device", device, 0))
        if lane is None:
            continue
        start, end, state, cause, thread = _pieces(s.devices[device])
        piece, low, high = split((start, end, state), *shown)
        state, cause, thread = state[piece], cause[piece], thread[piece]
        doing = np.zeros(low.size, dtype=np.int64)
        named = (cause >= 0) & ~np.isin(cause, [GAP_CAUSES.index(c) for c in _DEVICE_CAUSES])
        doing[named] = _doing(s, thread[named], (low[named] + high[named]) // 2, strings)
        states = np.array([strings.row(text) for text in STATES], dtype=np.int64)
        causes = np.array([0, *(strings.row(text) for text in GAP_CAUSES)], dtype=np.int64)
        rows = (low, high, states[state], causes[cause + 1], doing)
        low, high, state, cause, doing = _joined(*rows)
        parts.append((np.full(low.size, lane), low, high - low, state, cause, doing))
    if not parts:
        return Strip()
    order = sorted(range(len(parts)), key=lambda i: int(parts[i][0][0]) if parts[i][0].size else -1)
    return Strip(*(packed(np.concatenate([parts[i][column] for i in order])) for column in range(6)))


def _pieces(account: DeviceAccounting) -> tuple[Int, Int, Int, Int, Int]:
    """The accounting as pieces start, end, state, cause (-1 unless idle), thread: idle ones split by cause."""
    start, end, state = account.line
    busy = state != IDLE
    gaps = account.gaps
    columns = [as_ns(gaps[name].to_numpy()) for name in ("start_ns", "end_ns", "cause", "thread")]
    none = np.full(int(busy.sum()), -1, dtype=np.int64)
    joined = (
        np.concatenate([start[busy], columns[0]]),
        np.concatenate([end[busy], columns[1]]),
        np.concatenate([state[busy], np.full(gaps.height, IDLE, dtype=np.int64)]),
        np.concatenate([none, columns[2]]),
        np.concatenate([none, columns[3]]),
    )
    order = np.argsort(joined[0], kind="stable")
    start, end, state, cause, thread = (column[order] for column in joined)
    return start, end, state, cause, thread


def _doing(s: Study, thread: Int, at: Int, strings: Strings) -> Int:
    """The op (else call or annotation) that the launching thread, or the thread it waits for, was in; '' if none."""
    forest = s.links.forest
    # One entry more for row -1, nobody: a file may hold GPU work alone.
    own = np.append(np.isin(forest.source, (OP, CALL)), False)
    op = nearest(forest.source == OP, forest.parent)
    best = np.append(np.where(op >= 0, op, nearest(np.isin(forest.source, (CALL, ANNOTATION)), forest.parent)), -1)
    partners = [t for t, role in enumerate(s.states.roles) if role in (MAIN, AUTOGRAD)]
    row = np.full(at.size, -1, dtype=np.int64)
    for one in np.unique(thread).tolist():
        if one < 0:
            continue
        mine = np.flatnonzero(thread == one)
        found = _innermost(s, one, at[mine])
        for other in partners if one in partners else []:
            weak = ~own[found]
            theirs = _innermost(s, other, at[mine])
            found = np.where(weak & own[theirs], theirs, found)
        row[mine] = found
    return _names(s, best[row], strings)


def _innermost(s: Study, thread: int, at: Int) -> Int:
    start, end, label = s.states.innermost[thread]
    if start.size == 0:
        return np.full(at.size, -1, dtype=np.int64)
    spot = np.searchsorted(start, at, side="right") - 1
    inside = (spot >= 0) & (at < end[np.maximum(spot, 0)])
    return np.where(inside, label[np.maximum(spot, 0)], -1)


def _names(s: Study, rows: Int, strings: Strings) -> Int:
    forest = s.links.forest
    out = np.zeros(rows.size, dtype=np.int64)
    for code, table in ((OP, s.raw.ops), (ANNOTATION, s.raw.ops), (CALL, s.raw.calls)):
        here = (
            np.flatnonzero((rows >= 0) & (forest.source[np.maximum(rows, 0)] == code))
            if forest.source.size
            else rows[:0]
        )
        out[here] = strings.categories(table["name"], forest.row[rows[here]])
    return out


def _joined(start: Int, end: Int, *labels: Int) -> tuple[Int, ...]:
    """Neighbours with equal labels become one piece."""
    if start.size == 0:
        return start, end, *labels
    fresh = np.ones(start.size, dtype=bool)
    same = start[1:] == end[:-1]
    for label in labels:
        same &= label[1:] == label[:-1]
    fresh[1:] = ~same
    first = np.flatnonzero(fresh)
    last = np.append(first[1:] - 1, start.size - 1)
    return start[first], end[last], *(label[first] for label in labels)


def queue_table(s: Study, shown: Set, lane_of: dict[LaneKey, int]) -> Queue:
    """How many launches had not begun, from each change on, within `shown` (and the last change before)."""
    series = queue_depth_series(s.raw, s.links)
    lanes, times, depths = [], [], []
    for key, lane in sorted(lane_of.items(), key=lambda item: item[1]):
        if key[0] != "device":
            continue
        rows = series.filter(pl.col("device") == key[1])
        time, depth = as_ns(rows["time_ns"].to_numpy()), as_ns(rows["depth"].to_numpy())
        last = np.append(time[1:] != time[:-1], True) if time.size else np.zeros(0, dtype=bool)
        time, depth = time[last], depth[last]
        keep = np.zeros(time.size, dtype=bool)
        for low, high in zip(shown[0].tolist(), shown[1].tolist(), strict=True):
            a, b = np.searchsorted(time, [low, high])
            keep[max(0, int(a) - 1) : int(b)] = True
        times.append(time[keep])
        depths.append(depth[keep])
        lanes.append(np.full(int(keep.sum()), lane, dtype=np.int64))
    if not lanes:
        return Queue()
    return Queue(*(packed(np.concatenate(column)) for column in (lanes, times, depths)))


def overview(s: Study, low: int, high: int) -> Overview | None:
    """The busiest device's whole window in `BUCKETS` equal buckets, thousandths of each by family."""
    device = s.busiest
    if device is None or high - low < BUCKETS:
        return None
    start, end, state, cause, _ = _pieces(s.devices[device])
    names = np.array(
        [family(STATES[int(a)], GAP_CAUSES[int(b)] if b >= 0 else None) for a, b in zip(state, cause, strict=True)]
    )
    edges = low + (np.arange(BUCKETS + 1, dtype=np.int64) * (high - low)) // BUCKETS
    families, shares = [], []
    for one in FAMILY_COLOURS:
        here = names == one
        if here.any():
            spent = covered(merge(start[here], end[here]), edges[:-1], edges[1:])
            families.append(one)
            shares.append(packed(spent * 1000 // np.maximum(edges[1:] - edges[:-1], 1)))
    return Overview(low, high, tuple(families), tuple(shares))
