"""How often a step does each side do what costs: kernels, launches, copies, waits, ops, frames?

Counts go by launch, medians over the steps that count, as in the report. What a side did not record is None.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gapless.analyses.blocking import Origin
from gapless.analyses.call_names import LAUNCHES, CallClass
from gapless.analyses.copies import copy_traits
from gapless.comparison.side import Side
from gapless.model.diff import CountRow, SyncSiteRow
from gapless.tables.coding import categories, matches
from gapless.tables.intervals import Int, as_ns

Flag = NDArray[np.bool_]
MOST_SITES = 200


def counts(before: Side, after: Side) -> list[CountRow]:
    """All counts, in a fixed order; directions of copies that neither side has are left out."""
    old, new = _counts(before), _counts(after)
    names = [*old, *(name for name in new if name not in old)]
    order = [name for name in _ORDER if name in names] + sorted(name for name in names if name not in _ORDER)
    rows = []
    for name in order:
        unit = "bytes" if name.startswith("bytes") else "count"
        mine, other = _value(before, old, name), _value(after, new, name)
        if name.startswith(("copies ", "bytes ")) and not mine and not other:
            continue
        rows.append(CountRow(name, mine, other, unit))  # type: ignore[arg-type]
    return rows


_ORDER = (
    "kernels", "launches", "graph launches", "kernels in graphs", "memsets", "copies", "copies HtoD", "copies DtoH",
    "copies DtoD", "copies PtoP", "bytes HtoD", "bytes DtoH", "bytes DtoD", "bytes PtoP", "syncs", "allocations",
    "streams", "host ops", "Python frames",
)  # fmt: skip


def _value(side: Side, found: dict[str, float], name: str) -> float | None:
    """A count that is missing is zero where the side could have recorded it, else unknown."""
    if name in found:
        return found[name]
    copies = name.startswith(("copies ", "bytes "))
    return 0.0 if copies and side.has_gpu else None


def _counts(side: Side) -> dict[str, float]:
    found: dict[str, float] = {}
    if side.has_gpu:
        found |= _gpu(side)
    if side.has_calls:
        found |= _calls(side)
    if side.has_host:
        found["host ops"] = _median(side, side.step_of_row[side.s.links.forest.of_op])
    if side.has_stacks:
        found["Python frames"] = _median(side, side.step_of_row[side.s.links.forest.of_frame])
    return found


def _gpu(side: Side) -> dict[str, float]:
    activities, step = side.s.raw.activities, side.s.steps.step_of_activity
    kernel, memset = (
        matches(activities["kind"], lambda k: k == "kernel"),
        matches(activities["kind"], lambda k: k == "memset"),
    )
    copy = matches(activities["kind"], lambda k: k == "memcpy")
    launch = side.s.links.launch_of
    graph = launch >= 0
    graph[graph] = side.s.links.call_class[launch[graph]] == int(CallClass.GRAPH_LAUNCH)
    found = {
        "kernels": _median(side, step, kernel), "kernels in graphs": _median(side, step, kernel & graph),
        "memsets": _median(side, step, memset), "copies": _median(side, step, copy),
        "streams": float(_streams(side)),
    }  # fmt: skip
    texts = [copy_traits(name).direction for name in categories(activities["name"])]
    size = as_ns(activities["size_bytes"].fill_null(0).to_numpy())
    for direction in sorted(set(texts) - {"unknown"}):
        mine = copy & np.array([text == direction for text in texts])[side.activity_code]
        if mine.any():
            found[f"copies {direction}"] = _median(side, step, mine)
            found[f"bytes {direction}"] = _median(side, step, mine, size)
    return found


def _streams(side: Side) -> int:
    """Streams of the busiest device that ran kernels of the steps that count."""
    activities = side.s.raw.activities
    rows = np.isin(side.s.steps.step_of_activity, side.used) & matches(activities["kind"], lambda k: k == "kernel")
    rows &= as_ns(activities["device"].to_numpy()) == (side.s.busiest or 0)
    return int(np.unique(as_ns(activities["stream"].to_numpy())[rows]).size)


def _calls(side: Side) -> dict[str, float]:
    s = side.s
    step = s.steps.step_of_call
    launched = s.links.first_activity >= 0
    if not side.has_gpu:
        launched = np.isin(s.links.call_class, [int(k) for k in LAUNCHES])
    own = s.origin[s.syncs.call] == int(Origin.PROFILER)
    waits = np.zeros(s.raw.calls.height, dtype=bool)
    waits[s.syncs.call[~own]] = True
    memory = np.isin(s.links.call_class, [int(k) for k in (CallClass.ALLOC, CallClass.FREE, CallClass.PIN)])
    return {
        "launches": _median(side, step, launched),
        "graph launches": _median(side, step, launched & (s.links.call_class == int(CallClass.GRAPH_LAUNCH))),
        "syncs": _median(side, step, waits),
        "allocations": _median(side, step, memory),
    }


def _median(side: Side, step: Int, flag: Flag | None = None, weight: Int | None = None) -> float:
    """Median over the used steps of how many rows (or how much weight) fall into each."""
    rows = step >= 0 if flag is None else (step >= 0) & flag
    total = np.bincount(step[rows], weights=None if weight is None else weight[rows], minlength=side.s.steps.count)
    return float(np.median(total[side.used])) if side.used else 0.0


def sync_rows(before: Side, after: Side) -> list[SyncSiteRow]:
    """Blocking calls by place, what differs most first.

    A place is paired with the same place, else with one that differs in its line alone (the file was edited).
    """
    old, new = _sites(before), _sites(after)
    pairs = [(place, old.pop(place), new.pop(place)) for place in sorted(old.keys() & new.keys(), key=str)]
    moved: dict[tuple[object, ...], list[_Where]] = {}
    for place in sorted(new, key=str):
        moved.setdefault(place[:-1], []).append(place)
    for place in sorted(old, key=str):
        twins = moved.get(place[:-1], [])
        pairs.append((place, old[place], new.pop(twins.pop(0)) if twins else _NOTHING))
    pairs += [(place, _NOTHING, new[place]) for place in sorted(new, key=str)]
    rows = [SyncSiteRow(*place, then[0], now[0], then[1], now[1]) for place, then, now in pairs]
    rows.sort(key=lambda r: (-abs(r.after_ms - r.before_ms), -abs(r.after - r.before)))
    return rows[:MOST_SITES]


_Where = tuple[str, str, str | None, str | None, str | None, int | None]
_NOTHING = (0.0, 0.0)


def _sites(side: Side) -> dict[_Where, tuple[float, float]]:
    """Count and milliseconds per step of the program's own blocking calls, by place."""
    found: dict[_Where, tuple[float, float]] = {}
    for site in side.waits:
        where = site.place
        key = (site.name, site.origin.label, where.op, where.module, where.file, where.line)
        found[key] = (site.rows.size / side.count, site.wall / side.count / 1e6)
    return found
