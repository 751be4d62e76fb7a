"""How is a stretch of the program replaced by something shorter: host work, launches and GPU time at once?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gapless.replay.program import Program
from gapless.replay.whatif import add_activity, add_host, cut_host
from gapless.rules.outcome import Edit
from gapless.tables.intervals import Int, as_ns

if TYPE_CHECKING:
    from gapless.rules.context import Context

PYTHON_GAP_NS = 40_000
"""Python between two ops of a region longer than this is something else and stays."""


@dataclass(frozen=True, slots=True)
class Swap:
    """Host intervals that go with all they launch, and what comes instead: `host_ns` of host work at `at`, and GPU work
    of `gpu_ns` on `stream` (0: none)."""

    start: Int
    end: Int
    at: int
    host_ns: float
    gpu_ns: float
    stream: int


def swapped(swaps: Iterable[Swap]) -> Edit:
    """An edit that makes all these replacements."""
    chosen = sorted(swaps, key=lambda one: one.at)

    def edit(program: Program) -> Program:
        if not chosen:
            return program
        start, end = (np.concatenate([getattr(one, side) for one in chosen]) for side in ("start", "end"))
        at = as_ns([one.at for one in chosen])
        edited = add_host(cut_host(program, start, end), at, np.array([one.host_ns for one in chosen]))
        gpu_ns, stream = np.array([one.gpu_ns for one in chosen]), as_ns([one.stream for one in chosen])
        return add_activity(edited, at, gpu_ns, stream)

    return edit


def stretch(c: Context, thread: int, low: int, high: int) -> tuple[Int, Int]:
    """Host intervals of one thread's outermost ops between two instants, with the short Python gaps between them."""
    forest = c.s.links.forest
    rows = c.root_ops_on(thread)
    rows = rows[slice(*np.searchsorted(forest.start[rows], [low, high]))]
    if rows.size == 0:
        return as_ns([]), as_ns([])
    start, end = forest.start[rows], forest.end[rows].copy()
    short = start[1:] - end[:-1] <= PYTHON_GAP_NS
    end[:-1] = np.where(short, np.maximum(start[1:], end[:-1]), end[:-1])
    return start, end
