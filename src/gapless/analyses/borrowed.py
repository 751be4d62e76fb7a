"""Where does a host event lie that was recorded without stacks, when another window of the same program has them?

Only outermost events of the stepping thread are matched: outermost ops, and calls that no op contains. One of them is
the k-th of its name in its step. It takes the place of the k-th of that name in a step of the window with stacks if
both steps hold equally many; where they do not, only if all of that name lie in one place there. What lies below an
outermost event lies where that event does. Anything else keeps the place it has.

A window of another program has few names in the same numbers: where fewer than half of the events are of a name that
some step of the other window has equally often, nothing is taken from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gapless.analyses.host import CALL
from gapless.analyses.places import Place, Places
from gapless.analyses.study import Study
from gapless.tables.coding import categories, codes
from gapless.tables.intervals import Int, as_ns

ENOUGH = 0.5
"""Share of outermost events whose name a step of the window with stacks must have equally often for it to be one of the
same program. Steps of one program differ, but seldom in most of what they do."""


@dataclass(frozen=True, slots=True)
class Borrowed:
    """Places with those of the window with stacks; `matched` of the `outermost` events in steps (forest rows by start)
    found theirs, `alike` are of a name that a step there has equally often. `there` are the places of `other`.

    `row`: for each forest row, the row in `other`'s forest of the event that stands there for its outermost event; -1
    for none. All are -1, and `places` as they were, where `other` is no window of the same program.
    """

    places: Places
    matched: int
    alike: int
    outermost: Int
    row: Int
    other: Study
    there: Places

    @property
    def used(self) -> bool:
        """Is `other` a window of the same program?"""
        return self.matched > 0 and self.alike >= ENOUGH * self.outermost.size


@dataclass(frozen=True, slots=True)
class _Outermost:
    """Outermost events in steps, in time order: forest row, step index, and name as text codes into `names`."""

    row: Int
    step: Int
    name: Int
    names: list[str]


def borrow_places(s: Study, places: Places, other: Study, other_places: Places) -> Borrowed:
    """The places of `s` with file, line and module from `other`, a window of the same program with stacks."""
    here, there = _outermost(s, places), _outermost(other, other_places)
    known_there = _by_name(there, other_places)
    anchor = _anchors(s, places)
    taken = np.full(anchor.size, -1, dtype=np.int64)
    taken[here.row], alike = _looked_up(here, known_there, other_places)
    matched = int((taken[here.row] >= 0).sum())
    row = as_ns(np.where(anchor >= 0, taken[np.maximum(anchor, 0)], -1))
    found = Borrowed(places, matched, alike, here.row, row, other, other_places)
    if not found.used:
        return replace(found, row=as_ns(np.full(row.size, -1)))
    from_there = np.where(row >= 0, other_places.key[np.maximum(row, 0)], -1)
    width = len(other_places.known) + 1
    distinct, key = np.unique(places.key * width + from_there + 1, return_inverse=True)
    known = tuple(
        _merged(places.known[int(value) // width], other_places, int(value) % width - 1) for value in distinct
    )
    return replace(found, places=replace(places, key=as_ns(key.reshape(-1)), known=known))


def _merged(own: Place, other: Places, key: int) -> Place:
    if key < 0 or own.file is not None:
        return own
    found = other.known[key]
    return Place(own.op, own.module or found.module, found.file, found.line)


def _anchors(s: Study, places: Places) -> Int:
    """For each forest row the outermost event that it is or lies in; -1 for none."""
    rows = np.arange(places.op.size)
    own = s.links.forest.source == CALL
    return np.where(places.op >= 0, places.op, np.where(own, rows, -1))


def _outermost(s: Study, places: Places) -> _Outermost:
    forest, steps = s.links.forest, s.steps
    op_names, call_names = categories(s.raw.ops["name"]), categories(s.raw.calls["name"])
    rows = np.flatnonzero(_anchors(s, places) == np.arange(places.op.size))
    if steps.thread is not None:
        rows = rows[forest.thread[rows] == steps.thread]
    rows = rows[np.argsort(forest.start[rows], kind="stable")]
    step = np.searchsorted(steps.start, forest.start[rows], side="right") - 1
    inside = (step >= 0) & (forest.start[rows] < steps.until[np.maximum(step, 0)])
    rows, step = rows[inside], step[inside]
    is_call = forest.source[rows] == CALL
    table_row = forest.row[rows]
    op_code, call_code = codes(s.raw.ops["name"]), codes(s.raw.calls["name"])
    name = np.zeros(rows.size, dtype=np.int64)
    name[~is_call] = op_code[table_row[~is_call]]
    name[is_call] = call_code[table_row[is_call]] + len(op_names)
    return _Outermost(rows, as_ns(step), name, [*op_names, *call_names])


def _by_name(events: _Outermost, places: Places) -> dict[str, list[list[int]]]:
    """Name -> for each step that holds it, its rows in order; -1 for one whose place has no file."""
    found: dict[str, dict[int, list[int]]] = {}
    usable = np.array([place.file is not None for place in places.known])
    row = events.row
    row = np.where(usable[places.key[row]], row, -1) if row.size else row
    for name, step, at in zip(events.name.tolist(), events.step.tolist(), row.tolist(), strict=True):
        found.setdefault(events.names[name], {}).setdefault(step, []).append(at)
    return {name: list(steps.values()) for name, steps in found.items()}


def _looked_up(events: _Outermost, known: dict[str, list[list[int]]], there: Places) -> tuple[list[int], int]:
    """For each event the row that stands for it in the other window, or -1; how many are of a name that it has as often."""
    group = list(zip(events.name.tolist(), events.step.tolist(), strict=True))
    count: dict[tuple[int, int], int] = {}
    for pair in group:
        count[pair] = count.get(pair, 0) + 1
    chosen = {pair: _listed(known.get(events.names[pair[0]], []), total, there) for pair, total in count.items()}
    seen: dict[tuple[int, int], int] = {}
    result = []
    for pair in group:
        k = seen[pair] = seen.get(pair, -1) + 1
        rows = chosen[pair]
        result.append(rows[k] if len(rows) > k else rows[0] if len(rows) == 1 else -1)
    alike = (total for (name, _), total in count.items() if total in map(len, known.get(events.names[name], [])))
    return result, sum(alike)


def _listed(steps: list[list[int]], total: int, places: Places) -> list[int]:
    """The rows of a step with as many events, else one row of the place that all share, else nothing."""
    for rows in reversed(steps):
        if len(rows) == total:
            return rows
    distinct = {int(places.key[row]) if row >= 0 else -1: row for rows in steps for row in rows}
    return list(distinct.values()) if len(distinct) == 1 else []
