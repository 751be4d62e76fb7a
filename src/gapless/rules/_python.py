"""Which stretch of Python surrounds an event, and where does a thread run without any recorded op or call?"""

from __future__ import annotations

import numpy as np

from gapless.analyses.causes import Cause
from gapless.analyses.host import CALL, OP
from gapless.rules.context import Context
from gapless.tables.intervals import Int, as_ns


def python_round(c: Context, rows: Int, most_ns: int = 1 << 60) -> tuple[Int, Int]:
    """For each row of the base step, the stretch of Python it lies in: from the end of the op or call before it to the
    start of the one after it (inside the step), at most `most_ns` on either side."""
    forest, program = c.s.links.forest, c.program
    row = np.maximum(program.piece_row, 0)
    # Recording an event or asking for a stream's state beside a wait belongs to the wait, not to the work round it.
    alone = (forest.source[row] == CALL) & (forest.source[np.maximum(forest.parent[row], 0)] < OP)
    aside = (c.s.states.cause_of_row[row] == int(Cause.EVENT)) | (alone & ~np.isin(row, _item_rows(c)))
    busy = (program.piece_row >= 0) & np.isin(forest.source[row], (OP, CALL)) & ~aside
    ends = np.sort(np.concatenate([program.piece_end[busy], _item_ends(c)]))
    starts = np.sort(np.concatenate([program.piece_start[busy], program.item_start]))
    low, high = forest.start[rows], forest.end[rows]
    before = np.searchsorted(ends, low, side="right") - 1
    after = np.searchsorted(starts, high, side="left")
    left = np.where(before >= 0, ends[np.maximum(before, 0)] if ends.size else low, program.base_start)
    right = np.where(
        after < starts.size,
        starts[np.minimum(after, max(starts.size - 1, 0))] if starts.size else high,
        program.base_end,
    )
    return np.clip(left, low - most_ns, low), np.clip(right, high, high + most_ns)


def _item_rows(c: Context) -> Int:
    return c.s.links.forest.of_call[c.program.item_call]


def _item_ends(c: Context) -> Int:
    calls = c.program.item_call
    return c.program.item_start + as_ns(c.s.raw.calls["dur_ns"].to_numpy())[calls]


def until_next_item(c: Context, rows: Int) -> Int:
    """For each row of the base step, when the host next launches or blocks after it; the step's end if it does not."""
    starts = np.append(c.program.item_start, c.program.base_end)
    return starts[np.searchsorted(c.program.item_start, c.s.links.forest.end[rows], side="left")]
