"""How long did the GPU take between here and there, without stopping anything? `timer(name)`, read later."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from gapless.runtime.streams.device import accelerator_of, current_stream, resolve

KEPT = 1000
"""Laps kept a name; older ones are forgotten."""


@dataclass(slots=True)
class _Lap:
    start: Any
    end: Any
    ms: float | None


class Timer:
    """Laps of one name. On a GPU a lap is the time between two events on the current stream; on the CPU, host time.

    A GPU lap includes time in which the stream had nothing to do, because the host had not launched it yet.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._laps: deque[_Lap] = deque(maxlen=KEPT)
        self._lock = threading.Lock()

    @contextmanager
    def lap(self, device: torch.device | str | int | None = None) -> Iterator[Timer]:
        """Times the body; nothing waits."""
        where = resolve(device)
        module = accelerator_of(where)
        if module is None:
            begin_ns = time.perf_counter_ns()
            try:
                yield self
            finally:
                self._keep(_Lap(None, None, (time.perf_counter_ns() - begin_ns) / 1e6))
            return
        start, end = module.Event(enable_timing=True), module.Event(enable_timing=True)
        stream = current_stream(where)
        start.record(stream)
        try:
            yield self
        finally:
            end.record(stream)
            self._keep(_Lap(start, end, None))

    def ready_ms(self) -> list[float]:
        """The laps that the GPU has finished, in order, in milliseconds; never waits."""
        return [ms for ms in (self._read(lap) for lap in self._snapshot()) if ms is not None]

    def wait_ms(self) -> list[float]:
        """All laps, in order, in milliseconds; waits for the last event of each."""
        laps = self._snapshot()
        for lap in laps:
            if lap.end is not None:
                lap.end.synchronize()
        return [ms for ms in (self._read(lap) for lap in laps) if ms is not None]

    def reset(self) -> None:
        """Forgets every lap."""
        with self._lock:
            self._laps.clear()

    def _keep(self, lap: _Lap) -> None:
        with self._lock:
            self._laps.append(lap)

    def _snapshot(self) -> list[_Lap]:
        with self._lock:
            return list(self._laps)

    @staticmethod
    def _read(lap: _Lap) -> float | None:
        if lap.ms is None and lap.end.query():
            lap.ms = float(lap.start.elapsed_time(lap.end))
            lap.start = lap.end = None
        return lap.ms


_timers: dict[str, Timer] = {}
_timers_lock = threading.Lock()


def timers() -> dict[str, Timer]:
    """Every timer of the process by name."""
    with _timers_lock:
        return dict(_timers)


@contextmanager
def timer(name: str, device: torch.device | str | int | None = None) -> Iterator[Timer]:
    """Times the body under `name`: `with timer("forward"): ...`, later `timers()["forward"].ready_ms()`."""
    with _timers_lock:
        found = _timers.setdefault(name, Timer(name))
    with found.lap(device):
        yield found
