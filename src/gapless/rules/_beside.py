"""Which Python frame fills a long stretch without events, by the window with stacks that lies beside the trace?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gapless.analyses.borrowed import Borrowed
from gapless.analyses.host import FRAME, OP
from gapless.analyses.places import Place
from gapless.analyses.study import Study
from gapless.tables.intervals import Int, complement, merge

MOST = 0.5
"""A frame fills a stretch if it covers at least half of it; the innermost of those says best what it is. And a stretch of
the other window is the same one if it lasts at least half as long."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A Python frame's name, and the place in the user's program that it lies in."""

    name: str
    place: Place


def frame_in_stretch(s: Study, beside: Borrowed, start: int, end: int) -> Frame | None:
    """The innermost frame of the stepping thread that fills the stretch from `start` to `end` of the trace.

    The stretch is found again as the longest one without any op or call, of whatever thread, between the two outermost
    events of the stepping thread that enclose it. None where neither of them is known in the other window, where it holds
    no such stretch, or where no frame fills that.
    """
    forest = beside.other.links.forest
    around = _around(s, beside, start, end)
    if around is None:
        return None
    thread, low, high = around
    free = _longest_free(forest.start[forest.source >= OP], forest.end[forest.source >= OP], low, high)
    if free is None or free[1] - free[0] < MOST * (end - start):
        return None
    low, high = free
    frames = np.flatnonzero(
        (forest.thread == thread) & (forest.source == FRAME) & (forest.start < high) & (forest.end > low)
    )
    covered = np.minimum(forest.end[frames], high) - np.maximum(forest.start[frames], low)
    frames = frames[covered >= MOST * (high - low)]
    if frames.size == 0:
        return None
    inner = int(frames[np.argmin(forest.end[frames] - forest.start[frames])])
    return Frame(str(beside.other.raw.frames["name"][int(forest.row[inner])]), beside.there.place(inner))


def _around(s: Study, beside: Borrowed, start: int, end: int) -> tuple[int, int, int] | None:
    """The thread and the time between the events of the other window that enclose a stretch of the trace."""
    here, there = s.links.forest, beside.other.links.forest
    known = beside.outermost[beside.row[beside.outermost] >= 0]
    before = known[here.end[known] <= start]
    after = known[here.start[known] >= end]
    if before.size:
        last = int(beside.row[before[np.argmax(here.end[before])]])
        thread, low = int(there.thread[last]), int(there.end[last])
        starts = there.start[(there.thread == thread) & (there.source >= OP) & (there.start >= low)]
        return thread, low, int(starts.min()) if starts.size else int(there.end.max())
    if after.size:
        first = int(beside.row[after[np.argmin(here.start[after])]])
        thread, high = int(there.thread[first]), int(there.start[first])
        ends = there.end[(there.thread == thread) & (there.source >= OP) & (there.end <= high)]
        return thread, int(ends.max()) if ends.size else int(there.start.min()), high
    return None


def _longest_free(start: Int, end: Int, low: int, high: int) -> tuple[int, int] | None:
    """The longest stretch of [low, high] in which none of the intervals runs."""
    opens, closes = complement(merge(start, end), low, high)
    if opens.size == 0:
        return None
    best = int(np.argmax(closes - opens))
    return int(opens[best]), int(closes[best])
