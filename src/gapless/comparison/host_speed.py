"""How fast did the host run on each side, judged by what both sides ran?

Operators without anything inside them, and launch calls that neither block nor wait for room, have a duration of their
own that the recorder hardly touches. The ratio of their medians, after over before, weighted by how often they ran,
says whether one recording was made on a slower host (or a throttled one).
"""

from __future__ import annotations

import numpy as np

from gapless.analyses.host import CALL
from gapless.comparison.side import Side
from gapless.tables.coding import categories, codes
from gapless.tables.intervals import as_ns

LEAST_EVENTS = 20
"""With fewer common events than this the ratio is chance."""
SPEED_LOW, SPEED_HIGH = 0.77, 1.3
"""Ratios outside this band mean that the two hosts cannot be taken for equally fast (H200 pairs)."""


def host_speed(before: Side, after: Side) -> float | None:
    """Time of what both sides ran, after over before; None where too little is common."""
    old, new = _medians(before), _medians(after)
    rows = [
        (np.log(max(new[key][0], 1.0) / max(old[key][0], 1.0)), min(old[key][1], new[key][1]))
        for key in sorted(old.keys() & new.keys())
    ]
    if sum(weight for _, weight in rows) < LEAST_EVENTS:
        return None
    return float(np.exp(_weighted_median([r for r, _ in rows], [w for _, w in rows])))


def differs(ratio: float | None) -> bool:
    """Is the ratio outside the band in which hosts count as equally fast?"""
    return ratio is not None and not SPEED_LOW <= ratio <= SPEED_HIGH


def _weighted_median(values: list[float], weights: list[float]) -> float:
    """The mean of the lower and the upper weighted median, so that swapping sides only flips the sign."""
    order = np.argsort(values, kind="stable")
    sorted_values, mass = np.array(values)[order], np.cumsum(np.array(weights, dtype=float)[order])
    half = mass[-1] / 2
    low = int(np.searchsorted(mass, half, side="left"))
    high = int(np.searchsorted(mass, half, side="right"))
    return float(sorted_values[low] + sorted_values[min(high, len(values) - 1)]) / 2


def _medians(side: Side) -> dict[str, tuple[float, int]]:
    """Median duration and count of each kind of event that is comparable."""
    s, forest = side.s, side.s.links.forest
    childless = np.ones(forest.source.size, dtype=bool)
    childless[forest.parent[forest.parent >= 0]] = False
    alone = childless & side.counted
    length = forest.end - forest.start
    found: dict[str, tuple[float, int]] = {}
    ops = np.flatnonzero(alone & side.is_op)
    _collect(found, "op ", side.op_names, side.op_code[forest.row[ops]], length[ops])
    calls = np.flatnonzero(alone & (forest.source == CALL))
    row = forest.row[calls]
    calls = calls[(s.links.activity_count[row] == 1) & ~s.blocking[row] & ~s.launches.queue_full[row]]
    names = categories(s.raw.calls["name"])
    _collect(found, "call ", names, codes(s.raw.calls["name"])[forest.row[calls]], length[calls])
    return found


def _collect(into: dict[str, tuple[float, int]], prefix: str, names: list[str], code: object, length: object) -> None:
    keys, values = as_ns(code), as_ns(length)
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    for one in np.unique(keys).tolist():
        mine = values[np.searchsorted(keys, one) : np.searchsorted(keys, one, side="right")]
        into[prefix + names[one]] = (float(np.median(mine)), int(mine.size))
