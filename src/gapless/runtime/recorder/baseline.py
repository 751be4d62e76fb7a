"""How long does a step take without the profiler?

A segment is a run of whole steps: the device is drained at its start and at its end, and nowhere between, so the job
runs ahead as it always does. Its step time is (end - start) / steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

MAX_HOST_STEPS = 50


@dataclass(frozen=True, slots=True)
class Wanted:
    """When a segment is long enough: at least `steps`, and `seconds` or `max_steps`, whichever comes first."""

    steps: int
    seconds: float
    max_steps: int


BEFORE = Wanted(steps=4, seconds=0.1, max_steps=2_000)
"""On a GPU all there is: its tracer slows launches down from the first recording to the process' end."""
FIRST = Wanted(steps=3, seconds=0.15, max_steps=3)
"""Elsewhere so few that a script of a dozen steps still gets to its trial; more follow after that."""
AGAIN = Wanted(steps=3, seconds=0.15, max_steps=50)
AFTER = Wanted(steps=3, seconds=0.15, max_steps=100)
LONG_STEP_S = 5.0
"""With steps longer than this a single one makes a segment."""


@dataclass(slots=True)
class Segment:
    """One run of unprofiled steps, being measured."""

    sync: Callable[[], None]
    wanted: Wanted
    clock: Callable[[], int] = time.perf_counter_ns
    steps: int = 0
    host_step_ms: list[float] = field(default_factory=list)
    ms: float | None = None
    _start: int = 0
    _last: int = 0

    def start(self) -> None:
        """Drain the device and start the clock."""
        self.sync()
        self._start = self._last = self.clock()

    def tick(self) -> bool:
        """A step has ended; True once the segment is long enough."""
        now = self.clock()
        self.steps += 1
        if len(self.host_step_ms) < MAX_HOST_STEPS:
            self.host_step_ms.append((now - self._last) / 1e6)
        self._last = now
        elapsed = (now - self._start) / 1e9
        if self.steps >= self.wanted.max_steps:
            return True
        enough = self.steps >= self.wanted.steps or elapsed / self.steps > LONG_STEP_S
        return enough and elapsed >= self.wanted.seconds

    def close(self) -> float | None:
        """Drain the device, stop the clock at the last step's end and return ms per step; None without a whole step.

        Call it at a step boundary: the time since the last tick is then the drain alone.
        """
        if self.steps == 0:
            return None
        self.sync()
        self.ms = (self.clock() - self._start) / 1e6 / self.steps
        return self.ms


@dataclass(slots=True)
class Baseline:
    """The segments before and after the window.

    `lasting`: the recorder's tracer stays in the process, so what was timed after the first recording is no baseline.
    """

    lasting: bool = False
    before: list[Segment] = field(default_factory=list)
    after: list[Segment] = field(default_factory=list)

    def to_json(self) -> dict[str, object] | None:
        """`baseline` of the trace's metadata; None where no segment was closed."""
        before = [s for s in self.before if s.ms is not None]
        after = [s for s in self.after if s.ms is not None]
        if not before and not after:
            return None
        return {
            "before_ms": [s.ms for s in before],
            "after_ms": [s.ms for s in after],
            "clean": ["before_ms"] if self.lasting and before else ["before_ms", "after_ms"],
            "steps": sum(s.steps for s in [*before, *after]),
            "before_steps": [s.steps for s in before],
            "after_steps": [s.steps for s in after],
            "host_step_ms": [round(v, 6) for s in [*before, *after] for v in s.host_step_ms],
            "method": "device drained at each segment's ends only; (end - start) / steps",
        }
