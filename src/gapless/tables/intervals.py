"""How long is a set of half-open intervals, and what is left of it? Exact algebra on int64 nanosecond arrays.

An interval is `[start, end)` with `end >= start`; an empty one covers nothing. A *set* is a pair of arrays
`(start, end)` sorted by start whose intervals neither overlap nor touch; `merge` makes one from any intervals.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Int = NDArray[np.int64]
Set = tuple[Int, Int]


def as_ns(values: object) -> Int:
    """`values` as a contiguous int64 array."""
    return np.ascontiguousarray(values, dtype=np.int64)


def merge(start: Int, end: Int) -> Set:
    """Which instants do these intervals cover together? Any order and overlap; empty intervals vanish."""
    keep = end > start
    start, end = (as_ns(start), as_ns(end)) if keep.all() else (as_ns(start)[keep], as_ns(end)[keep])
    if start.size == 0:
        return start, end
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    first = np.empty(start.size, dtype=bool)
    first[0] = True
    np.greater(start[1:], reach[:-1], out=first[1:])
    begins = np.flatnonzero(first)
    lasts = np.append(begins[1:] - 1, start.size - 1)
    return start[begins], reach[lasts]


def total(intervals: Set) -> int:
    """How many nanoseconds does a set cover?"""
    return int((intervals[1] - intervals[0]).sum())


def clip(intervals: Set, low: int, high: int) -> Set:
    """The part of a set inside `[low, high)`."""
    start, end = np.maximum(intervals[0], low), np.minimum(intervals[1], high)
    keep = end > start
    return start[keep], end[keep]


def complement(intervals: Set, low: int, high: int) -> Set:
    """The part of `[low, high)` that a set does not cover."""
    start, end = clip(intervals, low, high)
    begins, ends = np.append(np.int64(low), end), np.append(start, np.int64(high))
    keep = ends > begins
    return as_ns(begins[keep]), as_ns(ends[keep])


def intersect(a: Set, b: Set) -> Set:
    """The instants that both sets cover."""
    if a[0].size == 0 or b[0].size == 0:
        return a[0][:0], a[0][:0]
    low, high = int(min(a[0][0], b[0][0])), int(max(a[1][-1], b[1][-1]))
    return subtract(a, complement(b, low, high))


def subtract(a: Set, b: Set) -> Set:
    """The instants of `a` that `b` does not cover."""
    if a[0].size == 0 or b[0].size == 0:
        return a
    times = np.concatenate([a[0], a[1], b[0], b[1]])
    in_a = np.concatenate([np.ones(a[0].size), -np.ones(a[1].size), np.zeros(b[0].size + b[1].size)]).astype(np.int64)
    in_b = np.concatenate([np.zeros(a[0].size + a[1].size), np.ones(b[0].size), -np.ones(b[1].size)]).astype(np.int64)
    order = np.argsort(times, kind="stable")
    times = times[order]
    holds = (np.cumsum(in_a[order]) > 0) & (np.cumsum(in_b[order]) == 0)
    return merge(times[:-1][holds[:-1]], times[1:][holds[:-1]])


def covered(intervals: Set, start: Int, end: Int) -> Int:
    """How many nanoseconds of each `[start, end)` does a set cover?"""
    return _measure(intervals, end) - _measure(intervals, np.minimum(start, end))


def _measure(intervals: Set, at: Int) -> Int:
    """Covered time before each instant `at`."""
    begin, finish = intervals
    if begin.size == 0:
        return np.zeros(np.shape(at), dtype=np.int64)
    before = np.concatenate([[0], np.cumsum(finish - begin)])
    index = np.searchsorted(begin, at, side="right")
    inside = np.minimum(at, finish[np.maximum(index - 1, 0)]) - begin[np.maximum(index - 1, 0)]
    return np.where(index == 0, 0, before[np.maximum(index - 1, 0)] + np.maximum(inside, 0))


def contains(intervals: Set, at: Int) -> NDArray[np.bool_]:
    """Which instants does a set cover?"""
    begin, finish = intervals
    if begin.size == 0:
        return np.zeros(np.shape(at), dtype=bool)
    index = np.searchsorted(begin, at, side="right") - 1
    return np.asarray((index >= 0) & (at < finish[np.maximum(index, 0)]))
