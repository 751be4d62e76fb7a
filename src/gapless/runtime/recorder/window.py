"""When does the recording start and stop? The plan of one recording as a state machine over step boundaries.

cold -> before (baseline) -> trial (one recorded step, counted and dropped) -> warm (GPU tracing on, nothing kept) ->
timing window -> stack window -> settle -> after (baseline) -> done. Every edge happens at a step boundary, except that
the guard may cut a window inside a step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from gapless.runtime.recorder.baseline import AFTER, BEFORE, Baseline, Segment, Wanted
from gapless.runtime.recorder.guard import resident_bytes
from gapless.runtime.recorder.options import Options

COLD_MIN, COLD_MAX, COLD_MAX_S = 3, 50, 60.0
STEADY_STEPS, STEADY_RATIO = 3, 1.15
LOCKSTEP_COLD, LOCKSTEP_SEGMENT = 10, 10
DEFAULT_STEPS, MAX_DEFAULT_STEPS, DEFAULT_WINDOW_MS = 5, 40, 20.0
STACK_STEPS, SETTLE_STEPS, AFTER_SEGMENTS = 2, 2, 2
STACK_MAX_STEP_S = 2.0
MIN_RUNAWAY_BYTES = 1 << 30


class SessionLike(Protocol):
    """What the window needs of a profiler session."""

    def prepare(self) -> None:
        """Turn GPU tracing on."""

    def begin(self, step: int) -> None:
        """Record from here: step number `step`."""

    def mark(self, step: int) -> None:
        """The next step begins."""

    def end(self) -> None:
        """Stop."""

    def export(self, folder: Path) -> Path:
        """Write the JSON to a new file."""


class Surroundings(Protocol):
    """What the window asks of the process round it."""

    def sync(self) -> None:
        """Drain the device."""

    def session(self, *, stacks: bool) -> SessionLike:
        """A new session."""

    def profiler_is_free(self) -> bool:
        """Whether the script runs no profiler."""

    def work_folder(self) -> Path:
        """Where raw exports go."""

    def trial_done(self, raw: Path) -> tuple[int, int]:
        """Events and bytes of the trial step's export."""

    def window_opens(self, max_s: float | None) -> None:
        """Recording begins; `max_s` ends it inside a step."""

    def window_closes(self) -> None:
        """Recording has ended."""

    def timing_done(self, raw: Path) -> None:
        """The timing window's export is there."""

    def stack_done(self, raw: Path) -> None:
        """The second window's export is there."""

    def finished(self) -> None:
        """Nothing more will be asked."""


@dataclass(slots=True)
class Facts:
    """`window` of the metadata: what was done to get this window."""

    cold_steps: int = 0
    steady: bool | None = None
    first_step: int | None = None
    recorded_steps: int = 0
    planned_steps: int | None = None
    trial_events: int | None = None
    trial_bytes: int | None = None
    cut: str | None = None
    stopped_by_budget: bool = False

    def to_json(self) -> dict[str, object]:
        """The fields by name."""
        return {name: getattr(self, name) for name in self.__slots__}


def is_steady(step_s: list[float]) -> bool:
    """Whether the last steps took nearly the same time: largest over smallest of three at most 1.15."""
    last = step_s[-STEADY_STEPS:]
    return len(last) == STEADY_STEPS and min(last) > 0 and max(last) / min(last) <= STEADY_RATIO


def default_steps(step_ms: float) -> int:
    """Used steps where the user names none: 5, or as many as fill 20 ms, at most 40."""
    return max(DEFAULT_STEPS, min(MAX_DEFAULT_STEPS, math.ceil(DEFAULT_WINDOW_MS / max(step_ms, 1e-6))))


@dataclass(slots=True)
class Window:
    """Feed it one `boundary()` at the start of each step."""

    options: Options
    around: Surroundings
    lockstep: bool = False
    """Several ranks: every edge by step count alone, so that all ranks record the same steps."""
    sliced: bool = False
    """Steps are slices of time: no baseline."""
    clock: Callable[[], int] = time.perf_counter_ns
    step: int = 0
    phase: str = "cold"
    phase_reached: str = "cold"
    """Once `phase` is 'done': 'done', or the phase in which the recording was ended early."""
    facts: Facts = field(default_factory=Facts)
    baseline: Baseline = field(default_factory=Baseline)
    step_ms: float = 0.0
    _step_s: list[float] = field(default_factory=list)
    _last: int | None = None
    _left: int = 0
    _session: SessionLike | None = None
    _segment: Segment | None = None
    _resident: int = 0

    def restart(self, *, sliced: bool) -> None:
        """Another kind of step was chosen before anything was measured: count from here."""
        self.sliced, self.step, self._last = sliced, 0, None
        self._step_s.clear()

    def boundary(self) -> None:
        """A step has ended and the next begins now."""
        if self.phase == "done":
            return
        now = self.clock()
        if self._last is not None:
            self.step += 1
            if len(self._step_s) < 1000:
                self._step_s.append((now - self._last) / 1e9)
        self._last = now
        getattr(self, f"_at_{self.phase}")()
        self._last = self.clock()

    # ---- before the window ----------------------------------------------------------------------------------

    def _at_cold(self) -> None:
        self.facts.cold_steps = self.step
        steady = is_steady(self._step_s)
        if self.options.skip is not None:
            ready = self.step >= self.options.skip
        elif self.lockstep:
            ready = self.step >= LOCKSTEP_COLD
        else:
            over = self.step >= COLD_MAX or sum(self._step_s) > COLD_MAX_S
            ready = self.step >= COLD_MIN and (steady or over)
        if not ready:
            return
        self.facts.steady = steady
        if self.sliced:
            self.step_ms = 1e3 * self._step_s[-1] if self._step_s else 0.0
            self._enter_trial()
            return
        self._segment = Segment(self.around.sync, self._wanted(BEFORE), self.clock)
        self._segment.start()
        self.phase = "before"

    def _at_before(self) -> None:
        if self._segment is not None and self._segment.tick():
            self.step_ms = self._segment.close() or 0.0
            self.baseline.before.append(self._segment)
            self._segment = None
            self._enter_trial()

    def _wanted(self, usual: Wanted) -> Wanted:
        return Wanted(LOCKSTEP_SEGMENT, 0.0, LOCKSTEP_SEGMENT) if self.lockstep else usual

    # ---- the trial step: warms the profiler up and says how much a step records ------------------------------

    def _enter_trial(self) -> None:
        if not self.around.profiler_is_free():
            self.phase = "waiting"
            return
        self._session = self.around.session(stacks=self.options.stacks == "always")
        self._session.prepare()
        self.around.window_opens(None)
        self.around.sync()
        self._session.begin(self.step)
        self.facts.first_step = self.step
        self.facts.recorded_steps = 0
        self.phase = "trial"

    def _at_waiting(self) -> None:
        self._enter_trial()

    def _at_trial(self) -> None:
        self.facts.recorded_steps = 1
        self._close_trial()
        if self._fits() == 0:
            self._enter_timing()
        else:
            self._session = self.around.session(stacks=self.options.stacks == "always")
            self._session.prepare()
            self.phase = "warm"

    def _close_trial(self) -> None:
        raw = self._ended()
        if raw is not None:
            self.facts.trial_events, self.facts.trial_bytes = self.around.trial_done(raw)

    def _fits(self) -> int:
        """How many steps the budget allows, by what the trial step recorded; the closing step counts too."""
        by_events = self.options.max_events // max(1, self.facts.trial_events or 0)
        by_bytes = int(self.options.max_mb * 1e6) // max(1, self.facts.trial_bytes or 0)
        return min(by_events, by_bytes)

    # ---- the timing window -----------------------------------------------------------------------------------

    def _at_warm(self) -> None:
        self._enter_timing()

    def _enter_timing(self) -> None:
        fits = self._fits()
        planned = (self.options.steps or default_steps(self.step_ms)) + 1
        self.facts.planned_steps = planned
        self.facts.stopped_by_budget = fits < planned
        self._left = max(1, min(planned, fits))
        max_s = None
        if fits == 0:
            share = min(
                self.options.max_events / max(1, self.facts.trial_events or 0),
                self.options.max_mb * 1e6 / max(1, self.facts.trial_bytes or 0),
            )
            max_s = max(0.05, share * self.step_ms / 1e3)
            self._session = self.around.session(stacks=self.options.stacks == "always")
            self._session.prepare()
        assert self._session is not None
        self.facts.first_step, self.facts.recorded_steps = self.step, 0
        self._resident = resident_bytes()
        self.around.window_opens(max_s)
        self.around.sync()
        self._session.begin(self.step)
        self.phase = "timing"

    def _at_timing(self) -> None:
        self.facts.recorded_steps += 1
        self._left -= 1
        grown = resident_bytes() - self._resident
        if self._left > 0 and grown > self.runaway_bytes:
            self.facts.stopped_by_budget, self._left = True, 0
        if self._left > 0 and self._session is not None:
            self._session.mark(self.step)
            return
        self._close_timing()
        self._enter_stack()

    def _close_timing(self) -> None:
        raw = self._ended()
        if raw is not None:
            self.around.timing_done(raw)

    @property
    def runaway_bytes(self) -> int:
        """Growth of the process' memory at which a window is cut: 1 GiB, or four times the budget of JSON."""
        return max(MIN_RUNAWAY_BYTES, int(4e6 * self.options.max_mb))

    # ---- the second, short window with stacks -----------------------------------------------------------------

    def _enter_stack(self) -> None:
        wanted = self.options.stacks == "window" and self.step_ms < STACK_MAX_STEP_S * 1e3
        if not wanted or self._fits() < STACK_STEPS or not self.around.profiler_is_free():
            self._enter_settle()
            return
        self._session = self.around.session(stacks=True)
        self._session.prepare()
        self.phase = "stack_warm"

    def _at_stack_warm(self) -> None:
        assert self._session is not None
        self._left = STACK_STEPS
        self.around.window_opens(None)
        self.around.sync()
        self._session.begin(self.step)
        self.phase = "stack"

    def _at_stack(self) -> None:
        self._left -= 1
        if self._left > 0 and self._session is not None:
            self._session.mark(self.step)
            return
        self._close_stack()
        self._enter_settle()

    def _close_stack(self) -> None:
        raw = self._ended()
        if raw is not None:
            self.around.stack_done(raw)

    # ---- after the window ---------------------------------------------------------------------------------------

    def _enter_settle(self) -> None:
        self._left = SETTLE_STEPS
        self.phase = "settle"
        if self.sliced:
            self._finish()

    def _at_settle(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self._enter_after()

    def _enter_after(self) -> None:
        self._segment = Segment(self.around.sync, self._wanted(AFTER), self.clock)
        self._segment.start()
        self.phase = "after"

    def _at_after(self) -> None:
        if self._segment is None or not self._segment.tick():
            return
        self._segment.close()
        self.baseline.after.append(self._segment)
        self._segment = None
        if len(self.baseline.after) < AFTER_SEGMENTS:
            self._enter_after()
        else:
            self._finish()

    def _finish(self) -> None:
        if self.phase_reached == "cold":
            self.phase_reached = "done"
        self.phase = "done"
        self.around.finished()

    # ---- early ends -----------------------------------------------------------------------------------------------

    def cut(self, reason: str) -> None:
        """Close what is open, inside a step or not, and keep what it recorded; the plan goes on after the window."""
        phase = self.phase
        if phase in ("trial", "timing"):
            self.facts.cut = reason
            self.phase = "settle"
            if phase == "trial":
                self._close_trial()
            else:
                self._close_timing()
            self._enter_settle()
        elif phase in ("warm", "stack_warm", "stack"):
            self._drop()
            self._enter_settle()

    def yield_profiler(self) -> None:
        """The script starts a profiler of its own now: end ours. A window without one whole step is tried again."""
        phase = self.phase
        if phase == "timing" and self.facts.recorded_steps > 0:
            self.cut("the script started its own profiler")
        elif phase in ("trial", "warm", "timing"):
            self._drop()
            self.phase = "waiting"
        elif phase in ("stack_warm", "stack"):
            self._drop()
            self._enter_settle()

    def stop(self, reason: str) -> None:
        """The script has ended: close everything."""
        if self.phase == "done":
            return
        self.phase_reached = self.phase
        self.cut(reason)
        # The script ran on after its last boundary, so an open segment's end is unknown: only whole ones count.
        self._segment = None
        if self.phase != "done":
            self._finish()

    def _ended(self) -> Path | None:
        """End the open session and export it."""
        if self._session is None:
            return None
        try:
            self._session.end()
        finally:
            self.around.window_closes()
        raw = self._session.export(self.around.work_folder())
        self._session = None
        return raw

    def _drop(self) -> None:
        """End the open session and forget it."""
        session, self._session = self._session, None
        if session is not None:
            try:
                session.end()
            finally:
                self.around.window_closes()
