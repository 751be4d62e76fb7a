"""Which blocking calls belong to one site, and what does the site cost per step?

Calls of one name, origin, outermost op, module, file and line are one site. Only calls of the steps that count are
taken (all calls where there are no steps); the recorder's own are kept apart by their origin.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from gapless.analyses.blocking import Origin
from gapless.analyses.kernel_names import decode
from gapless.analyses.places import Place, Places
from gapless.analyses.study import Study
from gapless.tables.coding import categories, codes
from gapless.tables.intervals import Int, as_ns

MOST_NAMED = 4
MOST_LOOKED_AT = 50


@dataclass(frozen=True, slots=True)
class SyncSite:
    """One site; times are nanoseconds summed over its calls in the counted steps. `rows` index `Syncs`."""

    name: str
    origin: Origin
    place: Place
    rows: Int
    wall: int
    gpu_work: int
    copy: int
    untraced: int
    overhead: int
    idle_after: int
    waited_for: list[str]


def sync_sites(s: Study, places: Places) -> list[SyncSite]:
    """The sites of a trace, by origin (the recorder's last), then by time blocked."""
    calls = s.syncs.call
    step = s.steps.step_of_call[calls]
    counted = np.isin(step, s.steps.used_indices()) if s.steps.thread is not None else np.ones(calls.size, dtype=bool)
    counted |= s.origin[calls] == int(Origin.PROFILER)
    names, name_code = categories(s.raw.calls["name"]), codes(s.raw.calls["name"])
    rows_of_call = s.links.forest.of_call[calls]
    groups: dict[tuple[int, int, int], list[int]] = {}
    for i in np.flatnonzero(counted).tolist():
        key = int(name_code[calls[i]]), int(s.origin[calls[i]]), int(places.key[rows_of_call[i]])
        groups.setdefault(key, []).append(i)
    sites = []
    for (name, origin, place), members in groups.items():
        sites.append(_site(s, names[name], Origin(origin), places.known[place], as_ns(members)))
    return sorted(sites, key=lambda site: (site.origin is Origin.PROFILER, -site.wall, site.name))


def _site(s: Study, name: str, origin: Origin, place: Place, rows: Int) -> SyncSite:
    syncs = s.syncs
    dur = as_ns(s.raw.calls["dur_ns"].to_numpy())[syncs.call[rows]]
    return SyncSite(
        name, origin, place, rows, int(dur.sum()), int(syncs.gpu_work[rows].sum()), int(syncs.copy[rows].sum()),
        int(syncs.untraced[rows].sum()), int(syncs.overhead[rows].sum()), int(syncs.idle_after[rows].sum()),
        _waited_for(s, rows),
    )  # fmt: skip


def _waited_for(s: Study, rows: Int) -> list[str]:
    """What the longest of these calls waited for, most time first: `3 x gemm (0.21 ms)`."""
    activities = s.raw.activities
    if activities.height == 0:
        return []
    call = s.syncs.call[rows]
    c0 = as_ns(s.raw.calls["start_ns"].to_numpy())[call]
    waited = s.syncs.work_end[rows] - c0
    chosen = np.argsort(-waited, kind="stable")[:MOST_LOOKED_AT]
    start = as_ns(activities["start_ns"].to_numpy())
    end = start + as_ns(activities["dur_ns"].to_numpy())
    device = as_ns(activities["device"].to_numpy())
    by_start = np.argsort(start, kind="stable")
    begin, reach = start[by_start], np.maximum.accumulate(end[by_start])
    names, name_code = categories(activities["name"]), codes(activities["name"])
    time: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for i in chosen.tolist():
        if waited[i] <= 0:
            continue
        low, high = int(c0[i]), int(s.syncs.work_end[rows[i]])
        near = by_start[np.searchsorted(reach, low, side="right") : np.searchsorted(begin, high)]
        hit = near[(device[near] == s.syncs.device[rows[i]]) & (end[near] > low)]
        for a in np.sort(hit).tolist():
            label = decode(names[int(name_code[a])]).short
            time[label] += int(min(end[a], high) - max(start[a], low))
            count[label] += 1
    return [f"{count[label]} x {label} ({ns / 1e6:.3f} ms)" for label, ns in time.most_common(MOST_NAMED)]
