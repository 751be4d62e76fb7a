"""Which interval contains which? Trees from start and end times, for recordings that do not always nest.

Rows must be sorted by (group, start, -duration, rank); a group is one thread. Real files contain children that end up
to a microsecond after their parent and pairs that cross (an annotation entered inside a Python frame and left outside
it), so containment has a tolerance, and crossing siblings are cut, never dropped.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gapless.tables.intervals import Int
from gapless.tables.segments import Line


def parents(group: Int, start: Int, end: Int, tolerance_ns: int = 1000) -> Int:
    """Which row is the innermost container of each row? -1 for roots.

    Row j contains row i (j earlier in order, same group) if i starts before j ends and i ends at most `tolerance_ns`
    after j. Found by skipping along earlier candidates (the classic previous-greater search, all rows at once): every
    candidate that fails for the skipped row fails for this one too, so skips may double.
    """
    size = start.size
    candidate = np.arange(-1, size - 1, dtype=np.int64)
    if size == 0:
        return candidate
    other = np.flatnonzero(group[1:] != group[:-1]) + 1
    candidate[other] = -1
    active = np.flatnonzero(candidate >= 0)
    while active.size:
        j = candidate[active]
        fails = (start[active] >= end[j]) | (end[active] > end[j] + tolerance_ns)
        active = active[fails]
        candidate[active] = candidate[candidate[active]]
        active = active[candidate[active] >= 0]
    return candidate


def depths(parent: Int) -> Int:
    """How many containers does each row have?"""
    depth = (parent >= 0).astype(np.int64)
    jump = parent.copy()
    active = np.flatnonzero(jump >= 0)
    while active.size:
        j = jump[active]
        depth[active] += depth[j]
        jump[active] = jump[j]
        active = active[jump[active] >= 0]
    return depth


def inherit(own: Int, parent: Int, missing: int = -1) -> Int:
    """What label does each row have when it takes its parent's where its own is `missing`?"""
    label = own.copy()
    lacking = label == missing
    if lacking.all():
        return label
    pointer = parent.copy()
    active = np.flatnonzero(lacking & (pointer >= 0))
    while active.size:
        j = pointer[active]
        label[active] = label[j]
        pointer[active] = pointer[j]
        active = active[(label[active] == missing) & (pointer[active] >= 0)]
    return label


def nearest(flag: NDArray[np.bool_], parent: Int) -> Int:
    """Which is the closest row at or above each row for which `flag` holds? -1 if none."""
    return inherit(np.where(flag, np.arange(parent.size), -1), parent)


def topmost(flag: NDArray[np.bool_], parent: Int) -> Int:
    """Which is the outermost row at or above each row for which `flag` holds? -1 if none."""
    closest = nearest(flag, parent)
    above = np.where(parent >= 0, closest[np.maximum(parent, 0)], -1)
    step = np.where(flag, above, -1)
    jump = np.where(step >= 0, step, np.arange(parent.size))
    while True:
        further = jump[jump]
        if (further == jump).all():
            return np.append(jump, -1)[closest]
        jump = further


def trim(group: Int, start: Int, end: Int, parent: Int) -> Int:
    """Where does each row end once it may neither outlast its parent nor run into its next sibling?"""
    end = end.copy()
    order = np.lexsort((start, parent, group))
    same = (parent[order[1:]] == parent[order[:-1]]) & (group[order[1:]] == group[order[:-1]])
    crossing = same & (end[order[:-1]] > start[order[1:]])
    end[order[:-1][crossing]] = start[order[1:][crossing]]
    while True:
        late = np.flatnonzero((parent >= 0) & (end > end[np.maximum(parent, 0)]))
        if late.size == 0:
            return np.maximum(end, start)
        end[late] = end[parent[late]]


def flatten(start: Int, end: Int, parent: Int) -> Line:
    """Which row is innermost at each instant? One group's rows in order of start, trimmed; labels are row numbers.

    At equal times an end comes before a start, inner ends before outer ones.
    """
    rows = np.flatnonzero(end > start)
    if rows.size == 0:
        none = np.zeros(0, dtype=np.int64)
        return none, none, none
    inner_first = rows[::-1]
    ending = inner_first[np.argsort(end[inner_first], kind="stable")]
    times = np.concatenate([end[ending], start[rows]])
    order = np.argsort(times, kind="stable")
    owner = np.concatenate([parent[ending], rows])[order]
    times = times[order]
    keep = (times[1:] > times[:-1]) & (owner[:-1] >= 0)
    return times[:-1][keep], times[1:][keep], owner[:-1][keep]
