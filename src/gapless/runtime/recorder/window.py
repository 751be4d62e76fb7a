"""When does the recording start and stop? The plan of one recording as a state machine over step boundaries.

cold -> before (unprofiled steps) -> trial (few recorded steps: counted, kept for a script that ends soon) -> stack (two
steps with stacks) -> again (more unprofiled steps, where recording left nothing behind) -> timing window -> settle ->
after (unprofiled) -> done. Before a recording one step runs with the GPU's tracing on and nothing kept. Every edge
happens at a step boundary, except that the guard may cut a window inside a step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from gapless.runtime.recorder.baseline import AFTER, AGAIN, BEFORE, FIRST, Baseline, Segment, Wanted
from gapless.runtime.recorder.guard import resident_bytes
from gapless.runtime.recorder.options import Options
from gapless.runtime.recorder.pace import (
    FAST_STEP_MS,
    LOCKSTEP_COLD,
    LOCKSTEP_SEGMENT,
    SLOW_STEP_MS,
    STEADY_STEPS,
    WARM_S,
    default_steps,
    is_steady,
    is_warm,
    steps_before_trial,
    trial_steps,
)
from gapless.runtime.recorder.surroundings import Facts, Surroundings
from gapless.runtime.recorder.tape import Tape

STACK_STEPS, SETTLE_STEPS, AFTER_SEGMENTS = 2, 2, 2


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
    phase_reached: str = ""
    """Once `phase` is 'done': 'done', or the phase in which the recording was ended early."""
    facts: Facts = field(default_factory=Facts)
    baseline: Baseline = field(default_factory=Baseline)
    step_ms: float | None = None
    _step_s: list[float] = field(default_factory=list)
    _stepping_s: float = 0.0
    _last: int | None = None
    _left: int = 0
    _segment: Segment | None = None
    _resident: int = 0
    _tape: Tape = field(init=False)

    def __post_init__(self) -> None:
        self._tape = Tape(self.around)

    def restart(self, *, sliced: bool, past_ns: Sequence[int] = ()) -> None:
        """Another kind of step was chosen before anything was measured: count from here.

        `past_ns` are the times of the boundaries of this kind that passed already, on this plan's clock.
        """
        self.sliced, self.step, self._last = sliced, max(0, len(past_ns) - 1), past_ns[-1] if past_ns else None
        self._step_s = [(late - early) / 1e9 for early, late in pairwise(past_ns)]
        self._stepping_s = sum(self._step_s[1:])

    @property
    def steps_needed(self) -> int:
        """Steps after which a script may end and still leaves a trace with one whole recorded step."""
        return steps_before_trial(self.options.skip, lockstep=self.lockstep, timed=self._times_first) + 3

    @property
    def _times_first(self) -> bool:
        """Whether steps are timed before the first recording: `--skip 0` asks to record from the first step on."""
        return not self.sliced and self.options.skip != 0

    @property
    def _always_stacks(self) -> bool:
        # A slice begins inside the interpreter's own call-back, where torch's tracer of Python never returns.
        return self.options.stacks == "always" and not self.sliced

    def boundary(self) -> None:
        """A step has ended and the next begins now."""
        if self.phase == "done":
            return
        now = self.clock()
        if self._last is not None:
            self.step += 1
            # The first step is none of the program's pace: it loads and initialises.
            self._stepping_s += (now - self._last) / 1e9 if self._step_s else 0.0
            self._step_s = [*self._step_s[-STEADY_STEPS:], (now - self._last) / 1e9]
        self._last = now
        getattr(self, f"_at_{self.phase}")()
        self._last = self.clock()

    # ---- before the first recording -------------------------------------------------------------------------

    def _at_cold(self) -> None:
        self.facts.cold_steps = self.step
        if self.options.skip is not None:
            ready = self.step >= self.options.skip
        elif self.lockstep:
            ready = self.step >= LOCKSTEP_COLD
        else:
            # Where only what comes before the first recording counts, short steps are given time to settle.
            least_s = WARM_S if self.around.tracer_lasts() else 0.0
            ready = is_warm(self.step, self._step_s, self._stepping_s, least_s)
        if not ready:
            return
        self.facts.steady = is_steady(self._step_s)
        if self._times_first:
            self.baseline.lasting = self.around.tracer_lasts()
            self._segment = self._started(BEFORE if self.baseline.lasting else FIRST)
            self.phase = "before"
            return
        self.step_ms = 1e3 * self._step_s[-1] if self._step_s and not self.lockstep else None
        self._enter_trial()

    def _at_before(self) -> None:
        if self._segment is not None and self._segment.tick():
            self.step_ms = self._segment.close()
            self.baseline.before.append(self._segment)
            self._segment = None
            self._enter_trial()

    def _started(self, usual: Wanted) -> Segment:
        wanted = Wanted(LOCKSTEP_SEGMENT, 0.0, LOCKSTEP_SEGMENT) if self.lockstep else usual
        segment = Segment(self.around.sync, wanted, self.clock)
        segment.start()
        return segment

    # ---- the trial: warms the profiler up, says how much a step records, and is all there is of a short script ----

    def _enter_trial(self) -> None:
        if not self.around.profiler_is_free():
            self.phase = "waiting"
            return
        self._tape.prepare(stacks=self._always_stacks)
        fast = self.step_ms is not None and self.step_ms < FAST_STEP_MS
        if fast and not self.sliced and not self.lockstep:
            self.phase = "trial_warm"
        else:
            self._at_trial_warm()

    def _at_trial_warm(self) -> None:
        steps = trial_steps(None if self.lockstep else self.step_ms)
        self._left = 1 if self.sliced else min(steps, (self.options.steps or steps) + 1)
        self._begin(None)
        self.phase = "trial"

    def _at_waiting(self) -> None:
        if self.facts.trial_events is None:
            self._enter_trial()
        else:
            self._enter_warm()

    def _at_trial(self) -> None:
        self.facts.recorded_steps += 1
        if self._goes_on():
            return
        self._close_trial()
        self._enter_stack()

    def _close_trial(self) -> None:
        raw = self._tape.end()
        if raw is not None:
            events, size = self.around.trial_done(raw)
            steps = max(1, self.facts.recorded_steps)
            self.facts.trial_events, self.facts.trial_bytes = -(-events // steps), -(-size // steps)

    def _fits(self) -> float:
        """How many steps, or which part of one, the budget allows; the closing step counts too."""
        events, size = self.facts.trial_events or 0, self.facts.trial_bytes or 0
        return min(self.options.max_events / max(1, events), self.options.max_mb * 1e6 / max(1, size))

    # ---- the short window with stacks -------------------------------------------------------------------------

    def _enter_stack(self) -> None:
        slow = not self.lockstep and (self.step_ms or 0.0) >= SLOW_STEP_MS
        wanted = self.options.stacks == "window" and not slow and not self.sliced
        if not wanted or self._fits() < STACK_STEPS or not self.around.profiler_is_free():
            self._enter_again()
            return
        self._tape.prepare(stacks=True)
        self.phase = "stack_warm"

    def _at_stack_warm(self) -> None:
        self._left = STACK_STEPS
        self._tape.begin(self.step, None)
        self.phase = "stack"

    def _at_stack(self) -> None:
        if self._goes_on():
            return
        self._close_stack()
        self._enter_again()

    def _close_stack(self) -> None:
        raw = self._tape.end()
        if raw is not None:
            self.around.stack_done(raw)

    # ---- short steps are timed once more, longer ----------------------------------------------------------------

    def _enter_again(self) -> None:
        fast = self.step_ms is not None and self.step_ms < FAST_STEP_MS
        if self.lockstep or self.baseline.lasting or not self._times_first or not fast:
            self._enter_warm()
            return
        self._segment = self._started(AGAIN)
        self.phase = "again"

    def _at_again(self) -> None:
        if self._segment is not None and self._segment.tick():
            self.step_ms = self._segment.close()
            self.baseline.before = [self._segment]
            self._segment = None
            self._enter_warm()

    # ---- the timing window -----------------------------------------------------------------------------------

    def _enter_warm(self) -> None:
        if not self.around.profiler_is_free():
            self.phase = "waiting"
        elif self._fits() < 1:
            self._tape.prepare(stacks=self._always_stacks)
            self._at_warm()
        else:
            self._tape.prepare(stacks=self._always_stacks)
            self.phase = "warm"

    def _at_warm(self) -> None:
        fits = self._fits()
        step_ms = self.step_ms if self.step_ms is not None else 1e3 * (self._step_s[-1] if self._step_s else 1.0)
        # All ranks must record the same steps, and their clocks differ.
        planned = (self.options.steps or default_steps(1e3 if self.lockstep else step_ms)) + 1
        self.facts.planned_steps = planned
        self.facts.stopped_by_budget = fits < planned
        self._left = max(1, min(planned, int(fits)))
        max_s = max(0.05, fits * step_ms / 1e3) if fits < 1 else None
        self._resident = resident_bytes()
        self._begin(max_s)
        self.phase = "timing"

    def _at_timing(self) -> None:
        self.facts.recorded_steps += 1
        if resident_bytes() - self._resident > self.options.runaway_bytes and self._left > 1:
            self.facts.stopped_by_budget, self._left = True, 1
        if self._goes_on():
            return
        self._close_timing()
        self._enter_settle()

    def _close_timing(self) -> None:
        raw = self._tape.end()
        if raw is not None:
            self.around.timing_done(raw)

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
        self._segment = self._started(AFTER)
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
        self.phase_reached = self.phase_reached or "done"
        self.phase = "done"
        self.around.finished()

    # ---- early ends -----------------------------------------------------------------------------------------------

    def cut(self, reason: str) -> None:
        """Close what is open, inside a step or not, and keep what it recorded; the plan goes on after the window."""
        phase = self.phase
        if phase in ("trial", "timing", "stack"):
            self.facts.cut = reason
            self.phase = "settle"
            {"trial": self._close_trial, "timing": self._close_timing, "stack": self._close_stack}[phase]()
            self._enter_settle()
        elif phase in ("trial_warm", "warm", "stack_warm"):
            self._tape.drop()
            self._enter_settle()

    def yield_profiler(self) -> None:
        """The script starts a profiler of its own now: end ours. A window without one whole step is tried again."""
        phase = self.phase
        if phase == "timing" and self.facts.recorded_steps > 0:
            self.cut("the script started its own profiler")
        elif phase in ("trial_warm", "trial", "stack_warm", "stack", "warm", "timing"):
            self._tape.drop()
            self.phase = "waiting"

    def stop(self, reason: str) -> None:
        """The script has ended: close everything."""
        if self.phase == "done":
            return
        self.phase_reached = self.phase
        if self.phase not in ("settle", "after"):
            self.facts.cut = reason
        self.cut(reason)
        # The script ran on after its last boundary, so an open segment's end is unknown: only whole ones count.
        self._segment = None
        if self.phase != "done":
            self._finish()

    # ---- the session ----------------------------------------------------------------------------------------------

    def _begin(self, max_s: float | None) -> None:
        """Record from here on what may become the file that is reported on."""
        self.facts.first_step, self.facts.recorded_steps = self.step, 0
        self._tape.begin(self.step, max_s)

    def _goes_on(self) -> bool:
        """A recorded step has ended: whether another one follows."""
        self._left -= 1
        if self._left > 0:
            self._tape.mark(self.step)
            return True
        return False
