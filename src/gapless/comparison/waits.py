"""Where is time lost on each side, by cause, and which waits only moved to another call?

Host: time blocked in calls, by the call and the op that made it, on every stepping thread. GPU: idle time of the busiest
device by cause. Both per step, means over the steps that count. A wait has moved where one call's blocking shrinks while
another's grows: as much of it as both have in common.
"""

from __future__ import annotations

from dataclasses import replace

from gapless.comparison.side import Side, recorded
from gapless.model.diff import WaitRow

LEAST_MS, LEAST_SHARE = 0.005, 0.02
"""A wait counts as moved from 5 us and 2 % of the longer step on; less is how calls vary."""


def waits(before: Side, after: Side) -> list[WaitRow]:
    """Host waits and GPU idle time, what differs most first."""
    old, new = recorded(before, after)
    longest = max(old or 0.0, new or 0.0)
    rows = [*_moved(_rows(_host(before), _host(after), "host"), longest), *_rows(_gpu(before), _gpu(after), "gpu")]
    return sorted(rows, key=lambda r: (-abs(r.after_ms - r.before_ms), -(r.after_ms + r.before_ms), r.who, r.cause))


def _rows(old: dict[str, float], new: dict[str, float], who: str) -> list[WaitRow]:
    return [
        WaitRow(cause, old.get(cause, 0.0), new.get(cause, 0.0), who)  # type: ignore[arg-type]
        for cause in sorted(old.keys() | new.keys())
    ]


def _host(side: Side) -> dict[str, float]:
    """Blocked milliseconds per step by `call (op)`."""
    found: dict[str, float] = {}
    for site in side.waits:
        cause = f"{site.name} ({site.place.op})" if site.place.op else site.name
        found[cause] = found.get(cause, 0.0) + site.wall / side.count / 1e6
    full = [part.ns for host in side.report.host for part in host.parts if part.state == "queue-full"]
    if sum(full):
        found["launch queue full"] = sum(full) / side.count / 1e6
    return found


def _gpu(side: Side) -> dict[str, float]:
    """Idle milliseconds per step of the busiest device by cause."""
    device = side.s.busiest
    if device is None:
        return {}
    account = side.s.devices[device]
    steps = max(account.pieces[0].size, 1)
    return {
        cause if state == "idle" else state: ns / steps / 1e6
        for state, cause, ns in account.parts.iter_rows()
        if state in ("idle", "unrecorded")
    }


def _moved(rows: list[WaitRow], step_ms: float) -> list[WaitRow]:
    """Pair the waits that shrink with those that grow, the largest with the largest, as much as both have in common."""
    least = max(LEAST_MS, LEAST_SHARE * step_ms)
    out = {row.cause: row for row in rows}
    shrinking = sorted(((row.before_ms - row.after_ms, row.cause) for row in rows), key=lambda p: (-p[0], p[1]))
    growing = sorted(((row.after_ms - row.before_ms, row.cause) for row in rows), key=lambda p: (-p[0], p[1]))
    while shrinking and growing and min(shrinking[0][0], growing[0][0]) >= least:
        (less, source), (more, target) = shrinking.pop(0), growing.pop(0)
        common = min(less, more)
        if out[source].moved_to is None and out[target].moved_from is None:
            out[source] = replace(out[source], moved_to=target, moved_ms=common)
            out[target] = replace(out[target], moved_from=source, moved_ms=common)
        if less > common:
            shrinking.insert(0, (less - common, source))
        if more > common:
            growing.insert(0, (more - common, target))
    return list(out.values())
