"""Everything that is known about one trace before anybody judges it: the analyses, run once, in order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gapless.analyses.accounting import DeviceAccounting, account_device, host_pieces
from gapless.analyses.blocking import Origin, blocking_calls, origins
from gapless.analyses.causes import Cause
from gapless.analyses.host_states import AUTOGRAD, MAIN, HostStates, call_causes, host_states
from gapless.analyses.launches import Launches, launch_figures
from gapless.analyses.links import Links, link
from gapless.analyses.lost import LostRecords, find_lost, leave_out_lossy
from gapless.analyses.steps import Steps, find_steps, mark_cold, pick_step
from gapless.analyses.syncs import Syncs, explain_syncs
from gapless.ingest.raw import RawTrace
from gapless.model.errors import UsageError
from gapless.tables.intervals import Int, as_ns
from gapless.tables.segments import split_by


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """What a reader of the trace may choose: the step marker's pattern, one step only, one device only."""

    step_marker: str | None = None
    step: int | None = None
    device: int | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """A trace with its analyses. `origin` runs over `calls`; `devices` by device index; `host_work` is nanoseconds of
    work per step (waits, queue-full and recorder's own time taken out) on the main and autograd threads together."""

    raw: RawTrace
    options: StudyOptions
    links: Links
    steps: Steps
    states: HostStates
    launches: Launches
    blocking: NDArray[np.bool_]
    origin: Int
    syncs: Syncs
    lost: LostRecords
    devices: dict[int, DeviceAccounting] = field(default_factory=dict)
    host_work: Int = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def busiest(self) -> int | None:
        """The device with the most compute, communication and copies in the window; None without GPU work."""
        if not self.devices:
            return None
        busy = {
            d: int(a.parts.filter(~a.parts["state"].is_in(["idle", "unrecorded"]))["ns"].sum())
            for d, a in self.devices.items()
        }
        return max(busy, key=lambda d: (busy[d], -d))


def study(raw: RawTrace, options: StudyOptions | None = None) -> Study:
    """Run all analyses of one trace. Raises UsageError for a step marker, step or device that is not there."""
    chosen = options or StudyOptions()
    links = link(raw)
    steps = find_steps(raw, links, chosen.step_marker)
    launches = launch_figures(raw, links)
    blocking = blocking_calls(raw, links)
    origin = origins(raw, links, steps)
    causes = call_causes(links, blocking, launches.queue_full, origin == int(Origin.PROFILER))
    states = host_states(raw, links, steps.thread, gc_pauses(raw), causes)
    work, compiling, loading = _work_per_step(states, steps)
    lost = find_lost(raw, links)
    steps = leave_out_lossy(mark_cold(steps, work, compiling, loading), lost, raw)
    if chosen.step is not None:
        steps = pick_step(steps, chosen.step)
    syncs = explain_syncs(raw, links, blocking)
    result = Study(raw, chosen, links, steps, states, launches, blocking, origin, syncs, lost, {}, work)
    return replace(result, devices=_devices(result))


def _devices(s: Study) -> dict[int, DeviceAccounting]:
    found = np.unique(as_ns(s.raw.activities["device"].to_numpy())).tolist()
    if s.options.device is not None:
        if s.options.device not in found:
            raise UsageError(
                f"--device {s.options.device}: no activity ran there; this trace has devices {found or 'none'}"
            )
        found = [s.options.device]
    return {
        device: account_device(s.raw, s.links, s.steps, s.states, s.launches, s.syncs, device, s.lost.intervals(device))
        for device in found
    }


def gc_pauses(raw: RawTrace) -> tuple[Int, Int]:
    """Garbage collections that the recorder wrote into the file's metadata, ns since the origin: (start, end)."""
    recorder: dict[str, Any] = raw.meta.recorder or {}
    listed = recorder.get("gc")
    rows = [r for r in listed if isinstance(r, dict)] if isinstance(listed, list) else []
    times = [(r.get("start_ns"), r.get("dur_ns")) for r in rows]
    sound = [(start, dur) for start, dur in times if type(start) is int and type(dur) is int and _fits(start, dur)]
    start = as_ns([start - raw.meta.origin_ns for start, _ in sound])
    return start, start + as_ns([max(dur, 0) for _, dur in sound])


def _fits(*values: int) -> bool:
    """May these be times? Sums of a few must not leave int64."""
    return all(abs(value) < 2**61 for value in values)


_NOT_WORK = (int(Cause.SYNC), int(Cause.QUEUE_FULL), int(Cause.PROFILER))


def _work_per_step(states: HostStates, steps: Steps) -> tuple[Int, Int, Int]:
    """Per step: host work, compilation (autotuning included) and module loading, ns on main and autograd threads.

    The main thread works wherever it is inside its marker and neither it nor the autograd thread it waits for blocks.
    """
    count = steps.count
    work, compiling, loading = (np.zeros(count, dtype=np.int64) for _ in range(3))
    if states.main < 0:
        return work, compiling, loading
    line = states.shared[states.main]
    piece, query, low, high = split_by(line, steps.start, steps.end)
    label, length = line[2][piece], high - low
    idle = np.isin(label, _NOT_WORK)
    np.add.at(work, query, np.where(idle, -length, 0))
    work += steps.end - steps.start
    for thread, role in enumerate(states.roles):
        if role in (MAIN, AUTOGRAD):
            piece, query, low, high = split_by(states.causes[thread], steps.start, steps.end)
            label = states.causes[thread][2][piece]
            compiles = np.isin(label, (int(Cause.COMPILE), int(Cause.AUTOTUNE)))
            np.add.at(compiling, query[compiles], (high - low)[compiles])
            loads = label == int(Cause.MODULE_LOAD)
            np.add.at(loading, query[loads], (high - low)[loads])
    return work, compiling, loading


def stepping_pieces(s: Study) -> tuple[Int, Int]:
    """The used steps' host intervals (start, end)."""
    start, end, _ = host_pieces(s.steps)
    return start, end
