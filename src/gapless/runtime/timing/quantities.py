"""How long does one call take, by each definition that the device allows? One function a quantity or pair."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from gapless.runtime.timing.backend import Backend, Run, UnavailableError
from gapless.runtime.timing.result import Quantity
from gapless.runtime.timing.sampling import Series, StopRule, collect

__all__ = [
    "Fit",
    "Stray",
    "cold",
    "empty_pair",
    "fit",
    "latency",
    "once",
    "queued",
    "stray_work",
    "throughput",
    "unheld",
]

INTERVAL_US = 400.0
"""An event interval this long makes the events' own 2-3 us less than a percent."""
MAX_CALLS = 256
MAX_FITS = 8
LOOP_US = 20_000.0
NOT_HELD = "the blocker never outlived the queueing"


def once(run: Run, backend: Backend) -> Quantity:
    """t_first: one call and a device sync."""
    backend.synchronize()
    start = backend.now_ns()
    run()
    backend.synchronize()
    return Quantity("t_first", ((backend.now_ns() - start) / 1e3,), stop="single")


def latency(run: Run, backend: Backend, rule: StopRule) -> tuple[Quantity, Quantity]:
    """t_naive and t_lat from the same calls: idle GPU, clock, call, clock, device sync, clock."""

    def sample() -> tuple[float, ...]:
        backend.synchronize()
        start = backend.now_ns()
        run()
        returned = backend.now_ns()
        backend.synchronize()
        done = backend.now_ns()
        return (done - start) / 1e3, (returned - start) / 1e3

    series = collect(sample, rule, backend.now_ns)
    return _quantity("t_naive", series, 1, column=1), _quantity("t_lat", series, 1)


def throughput(run: Run, backend: Backend, rule: StopRule, per_call_us: float) -> Quantity:
    """t_tput: a loop of calls that lasts 20 ms or more, one device sync, divided by the calls."""
    calls = max(1, math.ceil(LOOP_US / max(per_call_us, 0.01)))
    calls = min(calls, 200_000)

    def sample() -> tuple[float, ...]:
        backend.synchronize()
        start = backend.now_ns()
        for _ in range(calls):
            run()
        backend.synchronize()
        return ((backend.now_ns() - start) / 1e3 / calls,)

    return _quantity("t_tput", collect(sample, rule, backend.now_ns), calls)


@dataclass(frozen=True)
class Fit:
    """How many calls can be queued behind a blocker, what queueing one costs, and about how long the GPU runs it."""

    calls: int
    enqueue_us: float
    gpu_us: float


def fit(run: Run, backend: Backend, enqueue_us: float) -> Fit:
    """Find how many calls fit behind a blocker, using only blockers that end by themselves.

    UnavailableError if not even one does: the call then waits for the GPU inside, or fills the launch queue.
    """
    gpu_us, one_enqueue = _held_once(run, backend, 1, enqueue_us, (1, 4, 16))
    found, most = Fit(1, one_enqueue, gpu_us), MAX_CALLS
    for _ in range(MAX_FITS):
        # A short call looks longer alone than in a row, so what a batch shows may ask for a larger one.
        wanted = min(most, math.ceil(INTERVAL_US / max(found.gpu_us, 0.1)))
        if wanted <= found.calls:
            break
        try:
            total_us, each = _held_once(run, backend, wanted, found.enqueue_us, (1, 4))
            found = Fit(wanted, each, total_us / wanted)
        except UnavailableError:
            most = max(1, wanted // 4)
    return found


def _held_once(
    run: Run, backend: Backend, calls: int, enqueue_us: float, stretches: tuple[int, ...]
) -> tuple[float, float]:
    begin, end = backend.mark(), backend.mark()
    for stretch in stretches:
        backend.synchronize()
        hold = backend.hold(enqueue_us * calls * stretch, self_ending=True)
        try:
            begin.record()
            start = backend.now_ns()
            for _ in range(calls):
                run()
            spent = (backend.now_ns() - start) / 1e3
            end.record()
            held = hold.holding()
        finally:
            hold.release()
        backend.synchronize()
        if held:
            return begin.us_until(end), spent / calls
    raise UnavailableError("a call does not return while the GPU is held: it waits inside, or fills the launch queue")


def held_sampler(run: Run, backend: Backend, found: Fit) -> Callable[[], tuple[float, float, float] | None]:
    """One sample: hold the GPU, event, calls, event, let go; GPU and host us per call, core MHz (0 if unknown).

    None where the blocker did not outlive the queueing: the interval would hold gaps.
    """
    begin, end = backend.mark(), backend.mark()
    calls = found.calls

    def sample() -> tuple[float, float, float] | None:
        backend.synchronize()
        hold = backend.hold(found.enqueue_us * calls, self_ending=False)
        try:
            begin.record()
            start = backend.now_ns()
            for _ in range(calls):
                run()
            spent = (backend.now_ns() - start) / 1e3
            end.record()
            read = backend.meter()
            held = hold.holding()
        finally:
            hold.release()
        backend.synchronize()
        return (begin.us_until(end) / calls, spent / calls, read() or 0.0) if held else None

    return sample


def queued(run: Run, backend: Backend, rule: StopRule, found: Fit) -> tuple[Quantity, Quantity]:
    """t_gpu and t_enq, from the same calls queued behind a blocker."""
    series = collect(held_sampler(run, backend, found), rule, backend.now_ns)
    clocks = series.columns[2] if series.columns and all(series.columns[2]) else ()
    gpu = _quantity("t_gpu", series, found.calls, mhz=clocks, why=NOT_HELD)
    return gpu, _quantity("t_enq", series, found.calls, column=1, why=NOT_HELD)


def cold(run: Run, backend: Backend, rule: StopRule, found: Fit) -> tuple[Quantity, Quantity]:
    """t_gpu_cold and t_gpu_again: behind a blocker flush L2, event, call, event, the same call, event."""
    first, second, third = backend.mark(), backend.mark(), backend.mark()
    backend.flush_l2()

    def sample() -> tuple[float, ...] | None:
        backend.synchronize()
        hold = backend.hold(2 * found.enqueue_us + 100, self_ending=False)
        try:
            backend.flush_l2()
            first.record()
            run()
            second.record()
            run()
            third.record()
            held = hold.holding()
        finally:
            hold.release()
        backend.synchronize()
        return (first.us_until(second), second.us_until(third)) if held else None

    series = collect(sample, rule, backend.now_ns)
    return (
        _quantity("t_gpu_cold", series, 1, why=NOT_HELD),
        _quantity("t_gpu_again", series, 1, column=1, why=NOT_HELD),
    )


def unheld(run: Run, backend: Backend, rule: StopRule) -> Quantity:
    """t_pair: an event pair round one call on an idle GPU, the usual way to time, launch gap included."""
    begin, end = backend.mark(), backend.mark()

    def sample() -> tuple[float, ...]:
        backend.synchronize()
        begin.record()
        run()
        end.record()
        backend.synchronize()
        return (begin.us_until(end),)

    return _quantity("t_pair", collect(sample, rule, backend.now_ns), 1)


def empty_pair(backend: Backend, rule: StopRule) -> Quantity:
    """t_floor: an event pair round nothing behind a blocker; shown beside the numbers, never subtracted."""
    begin, end = backend.mark(), backend.mark()

    def sample() -> tuple[float, ...] | None:
        backend.synchronize()
        hold = backend.hold(50.0, self_ending=False)
        try:
            begin.record()
            end.record()
            held = hold.holding()
        finally:
            hold.release()
        backend.synchronize()
        return (begin.us_until(end),) if held else None

    return _quantity("t_floor", collect(sample, rule, backend.now_ns), 1, why=NOT_HELD)


@dataclass(frozen=True)
class Stray:
    """Work outside the measured stream: device sync after the end event, over its idle baseline; threads gained."""

    extra_us: float
    idle_us: float
    call_us: float
    threads_gained: int

    @property
    def counts(self) -> bool:
        """Whether there is enough of it to make the measured stream's times wrong."""
        return self.extra_us > 20 and self.extra_us > 0.05 * self.call_us


def stray_work(run: Run, backend: Backend, repeats: int = 10) -> Stray:
    """After the end event has passed, how long does the whole device still take?"""
    end = backend.mark()
    threads = threading.active_count()
    idle, after, whole = [], [], []
    for _ in range(repeats):
        backend.synchronize()
        start = backend.now_ns()
        backend.synchronize()
        idle.append((backend.now_ns() - start) / 1e3)
        begin = backend.now_ns()
        run()
        end.record()
        end.wait()
        start = backend.now_ns()
        backend.synchronize()
        done = backend.now_ns()
        after.append((done - start) / 1e3)
        whole.append((done - begin) / 1e3)
    gained = max(0, threading.active_count() - threads)
    return Stray(max(0.0, median(after) - median(idle)), median(idle), median(whole), gained)


def _quantity(
    name: str, series: Series, calls: int, *, column: int = 0, mhz: tuple[float, ...] = (), why: str = ""
) -> Quantity:
    if not series.columns:
        return Quantity(name, calls_per_sample=calls, stop=series.stop, invalid=series.invalid, why=why)
    return Quantity(name, series.columns[column], calls, series.stop, series.invalid, mhz=mhz)
