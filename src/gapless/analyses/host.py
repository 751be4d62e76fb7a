"""What ran inside what on the host? One forest of annotations, Python frames, ops and calls for every thread.

Events nest by time on their thread (never by `External id`, which old torch writes wrongly). Ties go annotation, frame,
op, call from outside in. A child may outlast its parent by up to 1 us (2 us where the file has whole microseconds);
Python frames are first cut to the end of the frame that called them, because lost return events make them run on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from gapless.ingest.raw import RawTrace
from gapless.tables.coding import matches
from gapless.tables.intervals import Int, as_ns
from gapless.tables.nesting import depths, nearest, parents, trim

ANNOTATION, FRAME, OP, CALL = 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class HostForest:
    """Rows sorted by (thread, start, -duration, source): parallel arrays.

    `source` says which table a row comes from (annotations are rows of `ops`), `row` which row. `end` is trimmed so
    that rows nest; `start`/`end` of the tables stay as recorded. `parent` is -1 for roots. `of_op`, `of_call` and
    `of_frame` map table rows to forest rows.
    """

    source: Int
    row: Int
    thread: Int
    start: Int
    end: Int
    parent: Int
    of_op: Int
    of_call: Int
    of_frame: Int

    @property
    def depth(self) -> Int:
        """How many rows contain each row?"""
        return depths(self.parent)

    def nearest_source(self, *sources: int) -> Int:
        """For each row the closest row at or above it of one of these sources; -1 if none."""
        return nearest(np.isin(self.source, sources), self.parent)

    def thread_rows(self, thread: int) -> slice:
        """The rows of one thread (they are contiguous)."""
        low, high = np.searchsorted(self.thread, [thread, thread + 1])
        return slice(int(low), int(high))


def host_forest(raw: RawTrace) -> HostForest:
    """Build the forest of a trace."""
    ops, frames, calls = raw.ops, raw.frames, raw.calls
    is_annotation = matches(ops["kind"], lambda kind: kind == "annotation")
    source = np.concatenate(
        [np.where(is_annotation, ANNOTATION, OP), np.full(frames.height, FRAME), np.full(calls.height, CALL)]
    ).astype(np.int64)
    row = np.concatenate([np.arange(ops.height), np.arange(frames.height), np.arange(calls.height)]).astype(np.int64)
    thread = _joined("thread", ops, frames, calls)
    start = _joined("start_ns", ops, frames, calls)
    framed = _frame_durations(frames)
    dur = np.concatenate([_crossed_markers(ops, frames, framed), framed, as_ns(calls["dur_ns"])])
    order = _outside_in(thread, start, dur, source)
    source, row, thread, start = source[order], row[order], thread[order], start[order]
    end = start + dur[order]
    parent = parents(thread, start, end, 2000 if raw.meta.integer_us else 1000)
    end = trim(thread, start, end, parent)
    inverse = np.empty(order.size, dtype=np.int64)
    inverse[order] = np.arange(order.size)
    return HostForest(
        source, row, thread, start, end, parent,
        inverse[: ops.height], inverse[ops.height + frames.height :], inverse[ops.height : ops.height + frames.height],
    )  # fmt: skip


def _outside_in(thread: Int, start: Int, dur: Int, source: Int) -> Int:
    """The order by (thread, start, -duration, source). Each table is in order of start already, so sorting by that is
    quick, and only rows that start together need the rest."""
    order = np.lexsort((start, thread))
    same = (thread[order[1:]] == thread[order[:-1]]) & (start[order[1:]] == start[order[:-1]])
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    rows = order[tied]
    order[tied] = rows[np.lexsort((source[rows], -dur[rows], start[rows], thread[rows]))]
    return order


def _joined(column: str, *frames: pl.DataFrame) -> Int:
    return np.concatenate([as_ns(f[column].to_numpy()) for f in frames])


def _crossed_markers(ops: pl.DataFrame, frames: pl.DataFrame, framed: Int) -> Int:
    """Durations of ops; 0 for a step's marker that ends inside a Python frame which began within it.

    Where a recorder puts the boundary of steps inside a function (after `optimizer.step()`, say), the function's frame
    crosses it. Cut there, the frame would lose what it ran afterwards; a marker loses nothing by containing nothing.
    """
    dur = as_ns(ops["dur_ns"].to_numpy())
    if frames.height == 0:
        return dur
    dur = dur.copy()
    start, thread = as_ns(frames["start_ns"].to_numpy()), as_ns(frames["thread"].to_numpy())
    op_start, op_thread = as_ns(ops["start_ns"].to_numpy()), as_ns(ops["thread"].to_numpy())
    for row in np.flatnonzero(matches(ops["name"], lambda name: name.startswith("ProfilerStep#"))).tolist():
        low, high = op_start[row], op_start[row] + dur[row]
        crossing = (thread == op_thread[row]) & (start > low) & (start < high) & (start + framed > high)
        if crossing.any():
            dur[row] = 0
    return dur


def _frame_durations(frames: pl.DataFrame) -> Int:
    """Durations of Python frames, cut to the end of the calling frame as `Python parent id` names it."""
    start, dur = as_ns(frames["start_ns"].to_numpy()), as_ns(frames["dur_ns"].to_numpy())
    ids, callers = as_ns(frames["python_id"].to_numpy()), as_ns(frames["parent_id"].to_numpy())
    if start.size == 0:
        return dur
    by_id = np.argsort(ids, kind="stable")
    spot = np.minimum(np.searchsorted(ids[by_id], callers), ids.size - 1)
    caller = np.where((callers >= 0) & (ids[by_id][spot] == callers), by_id[spot], -1)
    thread = as_ns(frames["thread"].to_numpy())
    caller = np.where((caller >= 0) & (thread[np.maximum(caller, 0)] == thread), caller, -1)
    end = start + dur
    while True:
        late = np.flatnonzero((caller >= 0) & (end > end[np.maximum(caller, 0)]) & (start < end[np.maximum(caller, 0)]))
        if late.size == 0:
            return end - start
        end[late] = end[caller[late]]
