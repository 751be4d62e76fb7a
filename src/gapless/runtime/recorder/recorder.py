"""How do the parts of a recording work together in one process, and what keeps them from harming it?

Every entry from the job's side catches what goes wrong here, takes all hooks away and says one line; the job runs on.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import torch

from gapless import __version__
from gapless.model import calibration
from gapless.runtime.recorder import counters, device, environment, fork, metadata, names
from gapless.runtime.recorder.guard import Guard
from gapless.runtime.recorder.interrupt import interrupts_wait
from gapless.runtime.recorder.options import Options
from gapless.runtime.recorder.outcome import Outcome
from gapless.runtime.recorder.owner import ProfilerOwner
from gapless.runtime.recorder.profiler import Session
from gapless.runtime.recorder.steps import StepFinder
from gapless.runtime.recorder.window import Window

Say = Callable[[str], None]

RECORDING = ("trial_warm", "trial", "stack_warm", "stack", "warm", "timing")
"""Phases at whose end files are written: a Ctrl-C that arrives meanwhile is delivered when they are complete."""


class Recorder:
    """One recording of one process: `start()`, beats from the finder or `step()`, `stop()`."""

    def __init__(self, options: Options, *, base: str, say: Say, problem: Say | None = None) -> None:
        self.options = options
        self._say = say
        self._problem = problem or say
        self._pid = os.getpid()
        self._busy = False
        self._started = False
        self._stopped = False
        self._environ = dict(os.environ)
        self._owner = ProfilerOwner(self._step_aside)
        self._finder = StepFinder(options.step_on, self._beat, self._chose)
        self._guard: Guard | None = None
        self._gc = counters.GcWatch()
        self._gc_found: list[dict[str, int]] = []
        self._counts: dict[str, int] = {}
        self._counted: dict[str, object] = {}
        self._environment: dict[str, object] = {}
        self._gpu_seen: bool | None = None
        self._kind: str | None = None
        self._stacks = False
        self._notes: list[str] = []
        self.window = Window(options, self, lockstep=names.world_size(self._environ) > 1)
        self.outcome = Outcome(Path(options.folder), base, names.rank(self._environ), self._record)

    # ---- the job's side ---------------------------------------------------------------------------------------

    def start(self) -> None:
        """Install the hooks; torch must have been imported."""
        if self._started:
            return
        self._started = True
        self._safely(self._install)

    def step(self) -> None:
        """The program says that a step begins here."""
        if self._mine():
            self._finder.manual()

    def stop(self, reason: str = "the script ended") -> None:
        """The program has ended, well or not: write what was recorded and take every hook away."""
        if self._mine() and self._started and not self._stopped:
            self._safely(lambda: self.window.stop(reason))
            self._leave()

    def why_empty(self) -> str:
        """One sentence for a recording that left no file."""
        kind, seen = self._finder.kind, self.window.step
        if kind is None:
            return self._finder.unheard()
        phase = {"cold": "warming up", "before": "being timed without the profiler"}.get(self.window.phase_reached)
        if phase is None:
            return f"{seen} steps were seen and the profiler could not record"
        how = "call step() on" if kind == "manual" else "let the script run"
        first = f"{self._first_flag()} --skip 0 records from the first step on, warm-up included"
        return (
            f"{seen} steps were seen, still {phase}, and a trace needs about {self.window.steps_needed}; "
            f"{how} that many, or {first}"
        )

    def _first_flag(self) -> str:
        kind = self._finder.kind
        named = self.options.step_on if kind == "function" else kind
        return "" if kind in (None, "manual") else f"--step-on {named}"

    def _install(self) -> None:
        self._owner.install()
        self._finder.install()

    def _mine(self) -> bool:
        return os.getpid() == self._pid

    def _beat(self) -> None:
        if self._busy or self._stopped or device.is_capturing(self._kind):
            return
        self._safely(self.window.boundary)
        if self.window.phase not in ("cold", "done"):
            self._finder.lock()
            if self._kind is None:
                self._kind = device.in_use()

    def _chose(self, kind: str, definition: str, past_ns: list[int]) -> None:
        self.window.restart(sliced=kind == "time", past_ns=past_ns)
        self._say(f"a step is {definition} (--step-on chooses another)")
        if kind == "time" and self.options.stacks != "never":
            self._notes.append("slices of time are recorded without stacks")

    def _step_aside(self) -> None:
        if not self._busy:
            self._safely(self.window.yield_profiler)

    def _cut(self, reason: str) -> None:
        """Called by the guard on the main thread, perhaps in the middle of a step."""
        if self._busy or self._stopped:
            return
        why = {"time": "one step records more than the budget", "memory": "the process' memory grew too fast"}[reason]
        self.window.facts.stopped_by_budget = True
        self._safely(lambda: self.window.cut(why))
        self._say(f"the window was cut inside a step: {why}")

    def _safely(self, call: Callable[[], None]) -> None:
        """Run our own code; whatever it raises ends the recording, never the job."""
        self._busy = True
        try:
            with interrupts_wait() if self.window.phase in RECORDING else nullcontext():
                call()
        except Exception as error:
            self._problem(f"recording stopped, the script runs on: {_one_line(error)}")
            self._leave()
        finally:
            self._busy = False

    def _leave(self) -> None:
        if self._stopped:
            return
        self._stopped = True
        if self.window.phase != "done":
            self.window.phase_reached, self.window.phase = self.window.phase, "done"
        self.window_closes()
        for leave in (self._finder.remove, self._owner.remove, self._complete):
            try:
                leave()
            except Exception as error:
                self._problem(f"could not finish cleanly: {_one_line(error)}")

    def _complete(self) -> None:
        if self.outcome.promote_spare():
            self._notes.append("the script ended before the timing window: these are the few steps recorded first")
        self.outcome.complete()

    # ---- what the window asks for -------------------------------------------------------------------------------

    def sync(self) -> None:
        """Drain the device this process uses."""
        device.synchronize(device.in_use())

    def session(self, *, stacks: bool) -> Session:
        """A new profiler session with the user's switches."""
        self._kind, self._stacks = device.in_use(), stacks
        return Session(
            self._owner,
            stacks=stacks,
            memory=self.options.memory,
            sync_events=self.options.sync_events,
            markers=not self.window.sliced,
        )

    def tracer_lasts(self) -> bool:
        """CUPTI and its likes stay attached once they have traced; the CPU's recorder leaves nothing behind."""
        return device.in_use() not in (None, "mps")

    def profiler_is_free(self) -> bool:
        """Whether the script runs no profiler of its own."""
        return not self._owner.foreign

    def work_folder(self) -> Path:
        """Where raw exports go."""
        return self.outcome.work_folder()

    def trial_done(self, raw: Path) -> tuple[int, int]:
        """Count the trial step; keep its file in case the script ends soon."""
        self._note_counts()
        events, gpu = metadata.count_events(raw)
        size = raw.stat().st_size
        self.outcome.keep(raw)
        self._gpu_seen = gpu > 0
        if self._kind in ("cuda", "xpu") and not gpu:
            note = (
                "the profiler saw no GPU work in one step: the step uses none, or another tool "
                "(nsys, ncu, dcgm) holds the GPU's tracing"
            )
            self._notes.append(note)
            self._problem(note)
        for limit in device.limits(self._kind):
            self._notes.append(limit)
            self._say(limit)
        return events, size

    def window_opens(self, max_s: float | None) -> None:
        """Recording begins: watch memory, forks and garbage collections."""
        fork.recording(True)
        self._counts = counters.snapshot()
        self._gc = counters.GcWatch()
        self._gc.start()
        # torch's tracer of Python frames must not be ended inside a call-back, which is where the guard acts.
        if not self._stacks and threading.current_thread() is threading.main_thread():
            self._guard = Guard(self._cut, max_growth_bytes=self.options.runaway_bytes, max_s=max_s)
            self._guard.start()

    def window_closes(self) -> None:
        """Recording has ended."""
        fork.recording(False)
        self._gc.stop()
        if self._guard is not None:
            self._guard.stop()
            self._guard = None

    def timing_done(self, raw: Path) -> None:
        """Write the timing window."""
        self._note_counts()
        self._environment = environment.gather(self._environ)
        self.outcome.write_timing(raw)

    def stack_done(self, raw: Path) -> None:
        """Keep the window with stacks for the timing window."""
        self.outcome.keep_stack(raw)

    def _note_counts(self) -> None:
        self._counted = counters.report(self._counts, counters.snapshot())
        self._gc_found = list(self._gc.found)

    def finished(self) -> None:
        """The plan is complete."""
        self._leave()

    # ---- the metadata ---------------------------------------------------------------------------------------------

    def _record(self, role: str) -> dict[str, object]:
        """The value of the key `gapless` (docs/run.md describes it)."""
        timing, stack = self.outcome.timing, self.outcome.stack
        return {
            "schema": "gapless.recording/1",
            "version": __version__,
            "role": role,
            "step": {"on": self._finder.kind, "definition": self._finder.definition},
            "baseline": self.window.baseline.to_json(),
            "environment": self._environment or environment.gather(self._environ),
            "counters": self._counted,
            "gc": self._gc_found if role == "timing" else [],
            "window": self.window.facts.to_json(),
            "timing_file": timing.path.name if role == "stack" and timing is not None else None,
            "stack_file": stack.path.name if role == "timing" and stack is not None else None,
            "calibration": self._calibration(),
            "notes": self._notes,
        }

    def _calibration(self) -> dict[str, object] | None:
        where, machine = calibration.folder(self._environ), environment.machine(device.in_use())
        found = calibration.load(where, machine, str(torch.__version__))
        return None if found is None else found.to_json()


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300]
