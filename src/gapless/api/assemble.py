"""How do the analyses, the replay and the rules become one report?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import gapless
from gapless.analyses.accounting import account_host
from gapless.analyses.blocking import Origin
from gapless.analyses.borrowed import Borrowed, borrow_places
from gapless.analyses.places import find_places
from gapless.analyses.step_numbers import step_numbers
from gapless.analyses.study import Study
from gapless.analyses.sync_sites import SyncSite, sync_sites
from gapless.analyses.top_tables import top_tables
from gapless.analyses.trust import trust_checks
from gapless.api.sibling import stack_file_name
from gapless.model.calibration import Calibration
from gapless.model.report import (
    DeviceAccount,
    HostAccount,
    HostPart,
    Issue,
    Part,
    Report,
    StepNumbers,
    StepRow,
    SyncRow,
    TrustCheck,
    Waited,
    Window,
)
from gapless.replay.overhead import own_calibration
from gapless.replay.predict import Prediction, predict
from gapless.rules.context import Context
from gapless.rules.judge import judge
from gapless.rules.verdict import verdict
from gapless.tables.coding import codes
from gapless.tables.intervals import as_ns
from gapless.tables.segments import Line

MOST_SYNC_SITES = 200
MOST_HOST_THREADS = 32


@dataclass(frozen=True, slots=True)
class Assembled:
    """A report and what it was made from."""

    report: Report
    context: Context


def assemble(
    s: Study, stacks: Study | None = None, calibration: Calibration | None = None, *, stacks_unread: str = ""
) -> Assembled:
    """The finished report of a studied trace; `stacks` is the window with stacks recorded beside it (`stacks_unread`: why
    it could not be read), `calibration` what recording costs on the machine it comes from."""
    prediction = predict(s, calibration)
    places = find_places(s.raw, s.links)
    borrowed = None
    if stacks is not None:
        borrowed = borrow_places(s, places, stacks, find_places(stacks.raw, stacks.links))
        places = borrowed.places
    beside = borrowed if borrowed is not None and borrowed.used else None
    context = Context(s, prediction, places, stacks=beside)
    judged = judge(context)
    sites = sync_sites(s, places)
    report = Report(
        tool={"name": "gapless", "version": gapless.__version__},
        trace=_trace(s),
        trust=[
            *trust_checks(s, stacks_beside=beside is not None),
            *_replay_trust(s, prediction),
            *_stack_trust(s, borrowed, stacks_unread),
            *_calibration_trust(s, prediction, calibration),
        ],
        window=Window(
            s.steps.marker,
            [
                StepRow(name, int(start), int(end), bool(used), why)
                for name, start, end, used, why in zip(
                    s.steps.names, s.steps.start, s.steps.end, s.steps.used, s.steps.why, strict=True
                )
            ],
        ),
        step=_step(s, prediction),
        verdict=verdict(context),
        accounting=[_device(a.device, a.wall_ns, a.parts) for a in s.devices.values()],
        host=_host(s),
        syncs=[_sync(s, site) for site in sites[:MOST_SYNC_SITES]],
        findings=judged.findings,
        checks=judged.checks,
        issues=[Issue(**row) for row in s.raw.issues.iter_rows(named=True)],
        tables=top_tables(s),
        all_fixes=judged.all_fixes,
    )
    return Assembled(report, context)


def _trace(s: Study) -> dict[str, Any]:
    meta = s.raw.meta
    used = np.unique(as_ns(s.raw.activities["device"].to_numpy())).tolist()
    names = {device.id: device.name for device in meta.devices}
    only = meta.devices[0].name if len({d.name for d in meta.devices}) == 1 else None
    return {
        "path": meta.path,
        "bytes": meta.size_bytes,
        "sha256": meta.sha256,
        "events": meta.events,
        "devices": [{"index": index, "name": names.get(index) or only or ""} for index in used],
        "rank": meta.rank,
        "world_size": meta.world_size,
        "flags": list(meta.flags),
        "format": meta.format,
        "versions": dict(meta.versions),
    }


def _step(s: Study, p: Prediction) -> StepNumbers:
    numbers = step_numbers(s)
    bounds = p.range_ms
    return replace(
        numbers,
        steady_ms=None if p.recorded is None or s.raw.activities.height == 0 else p.recorded.period_ns / 1e6,
        unprofiled_ms=p.unprofiled_ms,
        unprofiled_low_ms=bounds[0] if bounds else None,
        unprofiled_high_ms=bounds[1] if bounds else None,
        unprofiled_method="measured" if p.measured_ms is not None else "withheld" if p.withheld else "estimated",
        unprofiled_why="" if p.measured_ms is not None else p.withheld,
    )


def _replay_trust(s: Study, p: Prediction) -> list[TrustCheck]:
    checks = []
    if p.self_check is not None:
        text = f"the replay meets the recorded ends of GPU work within {p.self_check:.2%} of the time replayed"
        checks.append(
            TrustCheck("replay", "warn" if p.withheld else "ok", text if not p.withheld else f"withheld: {p.withheld}")
        )
    elif p.withheld:
        checks.append(TrustCheck("replay", "unknown", f"predictions are withheld: {p.withheld}"))
    if p.program is not None and not s.raw.meta.integer_us and abs(np.log(max(p.scale, 1e-3))) > np.log(1.3):
        slow = "slower" if p.scale > 1 else "faster"
        checks.append(
            TrustCheck(
                "host-speed", "note", f"this host recorded ops {slow} than usual ({p.scale:.2f}x): ranges are wider"
            )
        )
    return checks


def _calibration_trust(s: Study, p: Prediction, stored: Calibration | None) -> list[TrustCheck]:
    own = own_calibration(s)
    used = own or stored
    if used is None or p.withheld or p.measured_ms is not None:
        return []
    where = (
        "in this file" if own else "stored here by `gapless calibrate`; wrong if the trace comes from another machine"
    )
    text = f"the recorder's costs are those measured on {used.machine}, torch {used.torch} ({where})"
    return [TrustCheck("calibration", "ok" if own else "note", text)]


def _stack_trust(s: Study, borrowed: Borrowed | None, unread: str) -> list[TrustCheck]:
    if unread:
        return [TrustCheck("stacks", "note", f"no file and line: the window with stacks is no use ({unread})")]
    if borrowed is None:
        name = stack_file_name(s.raw)
        text = f"{name} is not beside this file or not readable: no file and line"
        return [] if name is None else [TrustCheck("stacks", "note", text)]
    name = Path(borrowed.other.raw.meta.path).name
    share = borrowed.matched / max(borrowed.outermost.size, 1)
    if not borrowed.used:
        text = (
            f"{name} is not used: its steps do other things (another program, or other steps: are they marked there?)"
        )
        return [TrustCheck("stacks", "note", text)]
    return [TrustCheck("stacks", "ok", f"file and line come from {name}, for {share:.0%} of the main thread's ops")]


def _device(device: int, wall_ns: int, parts: pl.DataFrame) -> DeviceAccount:
    wall = max(wall_ns, 1)
    return DeviceAccount(device, wall_ns, [Part(state, cause, ns, ns / wall) for state, cause, ns in parts.iter_rows()])


def _host(s: Study) -> list[HostAccount]:
    order = sorted(
        range(s.raw.threads.height), key=lambda t: (s.states.roles[t] != "main", s.states.roles[t] != "autograd", t)
    )
    accounts = []
    names = codes(s.raw.calls["name"])
    start, dur = as_ns(s.raw.calls["start_ns"].to_numpy()), as_ns(s.raw.calls["dur_ns"].to_numpy())
    thread_of = as_ns(s.raw.calls["thread"].to_numpy())
    for thread in order[:MOST_HOST_THREADS]:
        rows = np.flatnonzero(s.blocking & (thread_of == thread))
        rows = rows[np.argsort(start[rows], kind="stable")]
        line: Line = _disjoint(start[rows], start[rows] + dur[rows], names[rows])
        parts = account_host(s.raw, s.states, s.steps, thread, line)
        name = s.raw.threads["name"][thread] or f"thread {s.raw.threads['tid'][thread]}"
        wall = int(parts["ns"].sum()) if parts.height else 0
        accounts.append(
            HostAccount(str(name), s.states.roles[thread], wall, [HostPart(*row) for row in parts.iter_rows()])
        )
    return accounts


def _disjoint(start: Any, end: Any, label: Any) -> Line:  # noqa: ANN401 - three int64 arrays
    """Calls of one thread do not overlap, but for clock noise: each begins no earlier than the one before ends."""
    begin = np.maximum(start, np.concatenate([start[:1], np.maximum.accumulate(end)[:-1]]))
    keep = end > begin
    return begin[keep], end[keep], label[keep]


def _sync(s: Study, site: SyncSite) -> SyncRow:
    ms = 1e6
    first = int(site.rows[0])
    return SyncRow(
        site.name, site.origin.label, site.place.op, site.place.module, site.place.file, site.place.line,  # type: ignore[arg-type]
        int(site.rows.size), site.wall / ms,
        Waited(site.gpu_work / ms, site.copy / ms, site.untraced / ms, site.overhead / ms),
        0.0 if site.origin is Origin.PROFILER else site.idle_after / ms, None, site.waited_for,
        int(s.raw.calls["start_ns"][int(s.syncs.call[first])]),
    )  # fmt: skip
