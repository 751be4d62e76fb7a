"""Who owns each instant? Time lines cut into labelled pieces, painted by priority and split exactly.

A *line* is a triple `(start, end, label)` of arrays sorted by start, without overlaps, labels int64. Instants that no
piece covers have no owner. Sums over pieces are exact: nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gapless.tables.intervals import Int, Set, as_ns, clip, complement, merge, subtract

Line = tuple[Int, Int, Int]


def empty_line() -> Line:
    """A line with no piece."""
    none = np.zeros(0, dtype=np.int64)
    return none, none, none


def paint(layers: Sequence[tuple[Set, int]], low: int, high: int) -> Line:
    """Who owns each instant of `[low, high)` when earlier layers win?

    `layers` are (set, label) in order of priority; the last should cover the whole window if no hole may remain.
    """
    taken: Set = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    starts, ends, labels = [], [], []
    for intervals, label in layers:
        free = subtract(clip(intervals, low, high), taken)
        starts.append(free[0])
        ends.append(free[1])
        labels.append(np.full(free[0].size, label, dtype=np.int64))
        taken = merge(np.concatenate([taken[0], free[0]]), np.concatenate([taken[1], free[1]]))
    return _sorted(np.concatenate(starts), np.concatenate(ends), np.concatenate(labels))


def overlay(top: Line, bottom: Line) -> Line:
    """Who owns each instant when `top` wins wherever it has a piece?"""
    if top[0].size == 0:
        return bottom
    rows, start, end = split(bottom, *_holes(top, bottom))
    if rows.size == 0:
        return top
    return _sorted(
        np.concatenate([top[0], start]), np.concatenate([top[1], end]), np.concatenate([top[2], bottom[2][rows]])
    )


def stack(lines: Sequence[Line]) -> Line:
    """Who owns each instant when earlier lines win wherever they have a piece?"""
    left = list(lines) or [empty_line()]
    while len(left) > 1:
        left = [overlay(*left[i : i + 2]) if i + 1 < len(left) else left[i] for i in range(0, len(left), 2)]
    return left[0]


def _holes(top: Line, bottom: Line) -> tuple[Int, Int]:
    if bottom[0].size == 0:
        return bottom[0], bottom[1]
    return complement(merge(top[0], top[1]), int(bottom[0][0]), int(bottom[1].max()))


def split(line: Line, start: Int, end: Int) -> tuple[Int, Int, Int]:
    """Which pieces of a line lie in the sorted, disjoint intervals `[start, end)`?

    Returns `(piece, start, end)`: the row of the line and the clipped bounds, one row a non-empty overlap, in time order.
    """
    piece, _, low, high = split_by(line, start, end)
    return piece, low, high


def split_by(line: Line, start: Int, end: Int) -> tuple[Int, Int, Int, Int]:
    """Like `split` for any intervals (they may overlap): `(piece, query, start, end)`, ordered by query, then time."""
    begin, finish, _ = line
    first = np.searchsorted(finish, start, side="right")
    last = np.searchsorted(begin, end, side="left")
    count = np.where(end > start, np.maximum(last - first, 0), 0)
    stop = np.cumsum(count)
    query = np.repeat(np.arange(start.size), count)
    piece = np.arange(query.size) + np.repeat(first - (stop - count), count)
    low, high = begin[piece], finish[piece]
    # Pieces do not overlap, so a query cuts none but its first and its last.
    some = np.flatnonzero(count)
    heads, tails = stop[some] - count[some], stop[some] - 1
    low[heads] = np.maximum(low[heads], start[some])
    high[tails] = np.minimum(high[tails], end[some])
    keep = high > low
    if keep.all():
        return piece, query, low, high
    return piece[keep], query[keep], low[keep], high[keep]


def sums(line: Line, size: int) -> Int:
    """Nanoseconds per label `0..size-1`."""
    out = np.zeros(size, dtype=np.int64)
    np.add.at(out, line[2], line[1] - line[0])
    return out


def fill(line: Line, low: int, high: int, label: int) -> Line:
    """The line inside `[low, high)` with every hole owned by `label`."""
    whole: Line = (as_ns([low]), as_ns([high]), as_ns([label]))
    piece, start, end = split(line, whole[0], whole[1])
    inside: Line = (start, end, line[2][piece])
    return overlay(inside, whole) if high > low else empty_line()


def _sorted(start: Int, end: Int, label: Int) -> Line:
    order = np.argsort(start, kind="stable")
    return start[order], end[order], label[order]
