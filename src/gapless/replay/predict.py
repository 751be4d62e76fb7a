"""How long is a step really: steadily as recorded, and without the profiler; and may predictions be made at all?

The replay is checked against the recording first: the recorded steps are replayed in order from their recorded
beginning, and the ends of their GPU work compared with the recorded ones. Where that fails, where launches block or too
many records are lost, predictions are withheld and the reason is kept; an impossible order is not replayed at all. A
baseline that the recorder measured replaces the estimate, and every predicted step time is scaled by the same factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gapless.analyses.study import Study
from gapless.analyses.trust import launches_block
from gapless.model.calibration import Calibration
from gapless.replay.engine import Machine, Run, run
from gapless.replay.order import impossible_order
from gapless.replay.overhead import (
    Costs,
    Counts,
    costs_for,
    count_events,
    host_scale,
    machine_of,
    recording_scale,
    without_profiler,
)
from gapless.replay.program import Program, build_program
from gapless.replay.selfcheck import self_check

SELF_CHECK_LIMIT = 0.02
HOST_RANGE, GPU_RANGE = 0.20, 0.03
"""How far true step times of host-bound and GPU-bound programs move between runs (H200 labels: 10-20 % and 1-3 %)."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the replay says before any edit. `withheld` is the reason why nothing may be predicted, '' if it may.

    `program` is the representative step as recorded, `clean` the same without the recorder's cost; `factor` scales a
    replayed period of `clean` to the unprofiled step time (1 unless a baseline was measured). `self_check` is the
    largest error of replayed against recorded ends, relative to the time replayed; None where it could not be done.
    """

    withheld: str
    program: Program | None
    clean: Program | None
    counts: Counts | None
    costs: Costs
    scale: float
    machine: Machine
    recorded: Run | None
    unprofiled: Run | None
    factor: float
    measured_ms: float | None
    self_check: float | None

    def step_ms(self, changed: Run) -> float:
        """Unprofiled step time, ms, of an edited program's run."""
        return changed.period_ns * self.factor / 1e6

    @property
    def unprofiled_ms(self) -> float | None:
        """Unprofiled step time, ms: measured where the file carries a baseline, whatever can be replayed; else replayed,
        and None where that is withheld."""
        if self.measured_ms is not None:
            return self.measured_ms
        return None if self.withheld or self.unprofiled is None else self.step_ms(self.unprofiled)

    @property
    def range_ms(self) -> tuple[float, float] | None:
        """Bounds of the unprofiled step time: the noise of such truths, and a slow or odd host on top."""
        if self.measured_ms is not None:
            return self.measured_ms * 0.97, self.measured_ms * 1.03
        if self.unprofiled_ms is None or self.unprofiled is None:
            return None
        bound = self.unprofiled.host_ns >= 0.9 * self.unprofiled.period_ns
        spread = HOST_RANGE if bound else GPU_RANGE
        spread += 0.25 * abs(float(np.log(self.scale))) if bound else 0.0
        return self.unprofiled_ms / (1 + spread), self.unprofiled_ms * (1 + spread)


def predict(s: Study, calibration: Calibration | None = None) -> Prediction:
    """Build, check and run the program of a studied trace. `calibration`: what recording costs on its machine, for a
    trace that does not carry it."""
    machine = machine_of(s)
    measured = measured_baseline(s)
    impossible = impossible_order(s)
    if impossible:
        return _nothing(impossible, machine, measured)
    program = build_program(s)
    if program is None:
        return _nothing("no host thread is recorded, so there is no program to replay", machine, measured)
    counts, scale = count_events(s, program), host_scale(s, program)
    costs = costs_for(s, calibration)
    clean = without_profiler(program, counts, costs, recording_scale(scale))
    check = self_check(s, machine)
    recorded, unprofiled = run(program, machine), run(clean, machine)
    factor = 1.0 if measured is None or unprofiled.period_ns <= 0 else measured * 1e6 / unprofiled.period_ns
    return Prediction(
        _withheld(s, check, unprofiled),
        program,
        clean,
        counts,
        costs,
        scale,
        machine,
        recorded,
        unprofiled,
        factor,
        measured,
        check,
    )


def _nothing(why: str, machine: Machine, measured_ms: float | None) -> Prediction:
    return Prediction(why, None, None, None, Costs(), 1.0, machine, None, None, 1.0, measured_ms, None)


def _withheld(s: Study, check: float | None, unprofiled: Run) -> str:
    if s.raw.activities.height == 0:
        return "no GPU work is recorded, so nothing can be replayed"
    if launches_block(s):
        return "CUDA_LAUNCH_BLOCKING=1 was set while recording"
    if unprofiled.period_ns < 1.0:
        return "the step to be replayed did nothing that takes time"
    if s.lost.launches and s.lost.without_record.size > 0.1 * s.lost.launches:
        return f"{s.lost.without_record.size} of {s.lost.launches} launches have no GPU record"
    device = s.busiest
    if device is not None:
        account = s.devices[device]
        unrecorded = int(account.parts.filter(account.parts["state"] == "unrecorded")["ns"].sum())
        if unrecorded > 0.2 * max(account.wall_ns, 1):
            return f"{unrecorded / max(account.wall_ns, 1):.0%} of the GPU's time is unrecorded"
    if check is not None and check > SELF_CHECK_LIMIT:
        return f"the replay misses the recorded ends of GPU work by {check:.1%} (limit {SELF_CHECK_LIMIT:.0%})"
    return ""


def measured_baseline(s: Study) -> float | None:
    """Unprofiled step time that the recorder measured round its window, ms; None if the file carries none.

    `clean` in the file says which measurements no earlier recording of the process had slowed down.
    """
    recorder: dict[str, Any] = s.raw.meta.recorder or {}
    baseline = recorder.get("baseline")
    if not isinstance(baseline, dict):
        return None
    clean = _listed(baseline.get("clean")) or ["before_ms", "after_ms"]
    values = [
        float(v)
        for key in ("before_ms", "after_ms")
        if key in clean
        for v in _listed(baseline.get(key))
        if isinstance(v, (int, float)) and 0 < v < 1e7
    ]
    return float(np.median(values)) if values else None


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []
