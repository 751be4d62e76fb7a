"""Where does this code wait for the GPU without saying so? `watch_syncs()`, and everything put back afterwards."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ContextDecorator, ExitStack, contextmanager
from types import TracebackType

import torch

from gapless.model.errors import UsageError
from gapless.runtime.gputrace import Dispatcher, dispatcher
from gapless.runtime.syncs.backend import AcceleratorBackend, Backend, find_backend
from gapless.runtime.syncs.compiled import CompileWatcher, compile_in_use
from gapless.runtime.syncs.debug_mode import DebugModeLayer
from gapless.runtime.syncs.explicit import ExplicitCalls
from gapless.runtime.syncs.findings import Overhead, SyncReport
from gapless.runtime.syncs.fixes import is_explicit
from gapless.runtime.syncs.gate import SWITCH, Action, Gate, switched
from gapless.runtime.syncs.layers import OpLayer, SourceLayer
from gapless.runtime.syncs.merge import merge
from gapless.runtime.syncs.overhead import cost_per_call_ns
from gapless.runtime.syncs.races import RaceGuard
from gapless.runtime.syncs.record import Recorder
from gapless.runtime.syncs.steps import OptimizerSteps

SLOWED = 0.2
"""Share of the watched time from which the watch's own cost is worth a note."""


class SyncWatch(ContextDecorator):
    """A watch over every wait of the host for the GPU; see `watch_syncs`. Each `with` starts afresh."""

    def __init__(
        self,
        *,
        allow: Iterable[str] = (),
        budget: int | None = None,
        on: Action = "report",
        warmup: int = 2,
        layers: str = "ABCD",
        races: bool = True,
        deps: bool = False,
        backend: Backend | None = None,
        trace: Dispatcher | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        if not set(layers) <= set("ABCD"):
            raise UsageError(
                f"layers={layers!r}: only A, B, C and D exist (torch function, op, trace hook, debug mode)"
            )
        Gate(allow, budget, on, warmup)
        self._settings = (tuple(allow), budget, on, warmup)
        self._wanted, self._races, self._deps = layers, races, deps
        self._given = (backend, trace)
        self._environ = environ
        self._lock = threading.Lock()
        self._stack: ExitStack | None = None
        self._clear()

    def _clear(self, on: Action | None = None) -> None:
        allow, budget, written, warmup = self._settings
        self._recorder = Recorder(deps=self._deps)
        self._gate = Gate(allow, budget, on or written, warmup)
        self._recorder.on_wait = self._gate.on_wait
        self._guard: RaceGuard | None = None
        self._source: SourceLayer | None = None
        self._backend: Backend | None = None
        self._trace: Dispatcher | None = None
        self._manual = False
        self._active = ""
        self._notes: list[str] = []
        self._begin_ns = self._end_ns = 0
        self._per_call_ns = 0.0

    def __enter__(self) -> SyncWatch:
        if self._stack is not None:
            raise UsageError("this watch is already running: use one watch for each `with`")
        on = switched(self._settings[2], self._environ)
        self._clear(None if on == "off" else on)
        with ExitStack() as stack:
            if on == "off":
                self._notes.append(f"{SWITCH}=off: nothing was watched")
            else:
                self._start(stack)
            self._stack = stack.pop_all()
        self._begin_ns = time.perf_counter_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end_ns = time.perf_counter_ns()
        stack, self._stack = self._stack, None
        self._recorder.close(self._recorder.local.state)
        if stack is not None:
            stack.close()
        self._per_call_ns = self._measure_cost() if self._active else 0.0
        if kind is not None:
            return
        if self._gate.on == "raise":
            self._gate.raise_breach()
        if self._gate.on == "warn" and self._gate.over:
            warnings.warn(self._summary(), RuntimeWarning, stacklevel=2)

    def step(self) -> None:
        """A step ends here; once called, optimizers no longer end steps."""
        self._manual = True
        self._recorder.mark_step()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Labels the waits inside with `name` (data, forward, logging)."""
        previous, self._recorder.phase = self._recorder.phase, name
        try:
            yield
        finally:
            self._recorder.phase = previous

    def report(self) -> SyncReport:
        """What was seen so far, or in the last `with`."""
        recorder, gate = self._recorder, self._gate
        complete = len(recorder.boundaries_ns)
        warmup = gate.warmup if complete > gate.warmup else 0
        steps = range(warmup, complete) if complete else range(1)
        begin_ns = recorder.boundaries_ns[warmup - 1] if warmup else self._begin_ns
        end_ns = recorder.boundaries_ns[-1] if complete else self._end_ns or time.perf_counter_ns()
        everything = list(recorder.waits)
        measured = [wait for wait in everything if wait.step in steps]
        explicit = [wait for wait in measured if is_explicit(wait)]
        hidden = [wait for wait in measured if not is_explicit(wait)]
        allowed = [wait for wait in hidden if gate.allowed(wait)]
        return SyncReport(
            layers=self._active,
            steps=len(steps),
            warmup=warmup,
            step_source=self._step_source(complete),
            wall_ms=(end_ns - begin_ns) / 1e6,
            hidden=merge((wait for wait in hidden if not gate.allowed(wait)), steps),
            explicit=merge(explicit, steps),
            allowed=merge(allowed, steps, "allow"),
            races=list(self._guard.races.values()) if self._guard is not None else [],
            outside=len(everything) - len(measured),
            over_budget=dict(gate.over),
            budget=gate.budget,
            overhead=Overhead(recorder.calls, self._per_call_ns, recorder.own_ns / 1e6),
            notes=self._all_notes(len(everything) - len(measured), complete),
        )

    def _start(self, stack: ExitStack) -> None:
        backend = self._backend = self._given[0] or find_backend()
        trace = self._given[1] or (dispatcher() if backend is not None else None)
        if backend is None:
            self._notes.append(
                "no GPU here, so nothing can wait for one; gapless.preview_syncs(fn, *args) predicts waits"
            )
        recorder, gate = self._recorder, self._gate
        if "C" not in self._wanted:
            trace = None
        self._trace = trace
        if trace is not None:
            self._listen(trace, stack)
        if "D" in self._wanted:
            debug = DebugModeLayer(recorder.on_debug_warning)
            if debug.start():
                stack.callback(debug.stop)
                self._active += "D"
        steps = OptimizerSteps(self._on_optimizer_step)
        steps.start()
        stack.callback(steps.stop)
        if self._races and "B" in self._wanted and backend is not None:
            self._guard = RaceGuard(backend, deps=self._deps, strict=gate.on == "raise")
        if "A" in self._wanted:
            if compile_in_use():
                self._note_compile()
            else:
                self._source = SourceLayer(recorder, gate, self._guard, trace)
                _push(self._source)
                stack.callback(self._drop_source)
                watcher = CompileWatcher(self._on_compile)
                watcher.start()
                stack.callback(watcher.stop)
                self._active = "A" + self._active
        if "B" in self._wanted:
            stack.enter_context(OpLayer(recorder, gate, self._guard, trace, backend))
            self._active = "".join(sorted(self._active + "B"))

    def _listen(self, trace: Dispatcher, stack: ExitStack) -> None:
        trace.subscribe(self._recorder.on_sync)
        stack.callback(trace.unsubscribe, self._recorder.on_sync)
        self._active += "C"
        if not trace.switchable:
            self._notes.append(
                "this torch cannot turn its trace hooks off again: about 1 us an allocation until the process ends"
            )
        if set(self._wanted) & set("AB"):
            # The layers hold torch's hooks while an op runs; outside, only calls that ask to wait need them.
            calls = ExplicitCalls(trace)
            calls.start()
            stack.callback(calls.stop)
        else:
            trace.hold()
            stack.callback(trace.release)

    def _on_optimizer_step(self) -> None:
        if not self._manual:
            self._recorder.mark_step()

    def _on_compile(self) -> None:
        if self._source is not None:
            self._drop_source()
            self._note_compile()

    def _note_compile(self) -> None:
        self._notes.append(
            "torch.compile is in use: layer A is off (it would be traced and guarded on), idioms are guesses"
        )
        self._active = self._active.replace("A", "")

    def _drop_source(self) -> None:
        source, self._source = self._source, None
        if source is not None:
            _remove(source)

    def _measure_cost(self) -> float:
        recorder, gate = Recorder(), Gate((), None, "report", 0)
        layers: list[AbstractContextManager[object]] = []
        if "A" in self._active:
            layers.append(SourceLayer(recorder, gate, None, self._trace))
        if "B" in self._active:
            layers.append(OpLayer(recorder, gate, None, self._trace, self._backend))
        device = self._backend.name if isinstance(self._backend, AcceleratorBackend) else "cpu"
        return cost_per_call_ns(layers, len(layers), device)

    def _step_source(self, complete: int) -> str:
        if not complete:
            return "no step seen: the whole watch is one"
        return "steps marked by step()" if self._manual else "steps end with the optimizer's step"

    def _all_notes(self, outside: int, complete: int) -> list[str]:
        notes = list(self._notes)
        if self._recorder.dropped:
            notes.append(f"{self._recorder.dropped} early waits were dropped: only the last ones are kept")
        if complete and complete <= self._gate.warmup:
            notes.append(f"only {complete} steps, so the {self._gate.warmup} of the warm-up are counted too")
        if outside:
            notes.append(f"{outside} waits in warm-up steps or after the last full step are not counted")
        if self._recorder.waits and self._recorder.calls * self._per_call_ns > SLOWED * self._watched_ns():
            notes.append(
                'watching slowed the host, so the GPU was idle more often than unwatched (`layers="CD"` does not)'
            )
        if "C" in self._active:
            notes.append("libraries that call the GPU's runtime by themselves are not observed")
        return notes

    def _watched_ns(self) -> int:
        return (self._end_ns or time.perf_counter_ns()) - self._begin_ns

    def _summary(self) -> str:
        worst = max(self._gate.over, key=lambda step: self._gate.over[step])
        report = self.report()
        where = f"; first place: {report.hidden[0].head()}" if report.hidden else ""
        return (
            f"{len(self._gate.over)} steps waited for the GPU more often than the budget of {self._gate.budget} "
            f"(step {worst}: {self._gate.over[worst]} times){where}"
        )


def watch_syncs(
    *,
    allow: Iterable[str] = (),
    budget: int | None = None,
    on: Action = "report",
    warmup: int = 2,
    layers: str = "ABCD",
    races: bool = True,
    deps: bool = False,
) -> SyncWatch:
    """Watches where the host waits for the GPU: `with gapless.watch_syncs() as w: ...; print(w.report())`.

    Hidden waits (`.item()`, `x[mask]`, blocking and pageable copies) are findings with file and line, count and time
    per step, reason and fix; calls of synchronize are listed apart. Reads and writes that race with asynchronous copies
    are reported too (`races`).

    allow: `train.py:88`, `train.py`, `package.module.*`, `kind:stream`, `fix:readback`. budget: hidden waits a step may
    have. on: report, warn (at the end) or raise (`HiddenSyncError`, at the op). warmup: steps left out; steps end with
    the optimizer's step, or with `w.step()`. deps: installed packages count as the user's code.

    layers: A torch functions, B ops, C torch's trace hooks, D its debug mode. A and B see the thread that starts the
    watch and autograd's threads; elsewhere D alone reports waits, without their time. `"CD"` times them in every
    thread and costs nothing per op, but knows neither the op, nor pageable `non_blocking` copies, nor races; and while
    it runs, torch may turn an exception into a SystemError if a GPU tensor is freed on the exception's way.
    """
    return SyncWatch(allow=allow, budget=budget, on=on, warmup=warmup, layers=layers, races=races, deps=deps)


def _push(mode: SourceLayer) -> None:
    mode.__enter__()  # type: ignore[no-untyped-call]


def _remove(mode: SourceLayer) -> None:
    """Takes the mode off this thread's stack, wherever it lies there."""
    above: list[object] = []
    while torch._C._len_torch_function_stack() > 0:
        top = torch.overrides._pop_mode()
        if top is mode:
            break
        above.append(top)
    for other in reversed(above):
        torch.overrides._push_mode(other)
