"""How is the GPU held back until the host has queued everything, without any chance of a deadlock?

A one-thread kernel spins on a flag in pinned host memory and gives up by its own clock; where it cannot be compiled,
a kernel that spins for a set number of cycles stands in. Both must outlive the queueing, which the caller checks.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import torch

from gapless.runtime.timing.backend import UnavailableError
from gapless.runtime.timing.clocks import now_ns
from gapless.runtime.timing.nvrtc import Kernel, compile_kernels

__all__ = ["HOLD_NAMES", "Blocker"]

HOLD_NAMES = ("gapless_hold", "gapless_clock", "spin_kernel")
"""Kernel names to leave out of what the profiler saw; spin_kernel is torch.cuda._sleep."""

SOURCE = """
__device__ __forceinline__ unsigned long long wall_ns() {
  unsigned long long t; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)); return t;
}
extern "C" __global__ void gapless_hold(volatile int* word, int ticket, int timeout_us) {
  unsigned long long begin = wall_ns();
  while (word[0] - ticket < 0)
    if (wall_ns() - begin > 1000ull * (unsigned)timeout_us) { word[1] = ticket; return; }
}
extern "C" __global__ void gapless_clock(volatile long long* out, int span_us) {
  unsigned long long first = wall_ns(), edge, last;
  do { edge = wall_ns(); } while (edge == first);
  long long cycles = clock64();
  do { last = wall_ns(); } while (last - edge < 1000ull * (unsigned)span_us);
  out[0] = clock64() - cycles;
  out[1] = (long long)(last - edge);
}
"""
METER_US = 30
SETTLE_NS = 15_000
MIN_TIMEOUT_US = 100_000
MAX_TIMEOUT_US = 2_000_000
MAX_TIMEOUTS = 2


class _FlagHold:
    def __init__(self, owner: Blocker, ticket: int, begun: torch.cuda.Event) -> None:
        self._owner = owner
        self._ticket = ticket
        self._begun = begun

    def holding(self) -> bool:
        return not self._begun.query()

    def release(self) -> None:
        # What was queued last needs a few microseconds to reach the device; opened sooner, it would arrive too late.
        until = now_ns() + SETTLE_NS
        while now_ns() < until:
            pass
        self._owner.open_gate(self._ticket)


class _SleepHold:
    def __init__(self, over: torch.cuda.Event) -> None:
        self._over = over

    def holding(self) -> bool:
        return not self._over.query()

    def release(self) -> None:
        """Ends by itself."""


class Blocker:
    """Holds the current stream of the current device. `kind`: flag | sleep; `note`: why it is not flag."""

    def __init__(self) -> None:
        self.kind = "sleep"
        self.note = ""
        self._ticket = 0
        self._timeouts = 0
        self._over = torch.cuda.Event()
        self._hold_kernel: Kernel | None = None
        self._clock_kernel: Kernel | None = None
        # Every run of the flag kernel has its own number, so a late release can never open a later gate.
        self._word = torch.zeros(16, dtype=torch.int32, pin_memory=True)
        self._gate = ctypes.c_int32.from_address(self._word.data_ptr())
        self._gave_up = ctypes.c_int32.from_address(self._word.data_ptr() + 4)
        self._reading = torch.zeros(2, dtype=torch.int64, pin_memory=True)
        self._cycles_per_us = self._calibrate()
        try:
            self._hold_kernel, self._clock_kernel = compile_kernels(SOURCE, ["gapless_hold", "gapless_clock"])
            self._try_flag()
            self.kind = "flag"
        except UnavailableError as error:
            self.note = str(error)

    def _calibrate(self) -> float:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(1_000_000)
        begin.record()
        torch.cuda._sleep(4_000_000)
        end.record()
        end.synchronize()
        return 4_000_000 / max(1.0, float(begin.elapsed_time(end)) * 1e3)

    def _try_flag(self) -> None:
        """One run that is released before it starts: loads the kernels, and shows that the flag is visible there."""
        try:
            self.open_gate(1)
            self._launch(1, MIN_TIMEOUT_US)
            self.meter()
            torch.cuda.synchronize()
        except (RuntimeError, ValueError, TypeError) as error:
            raise UnavailableError(f"the blocker kernel does not run: {error}") from error
        self._ticket = 1
        if self._gave_up.value == 1:
            raise UnavailableError("the blocker kernel does not see the host's flag")

    def _launch(self, ticket: int, timeout_us: int) -> None:
        assert self._hold_kernel is not None
        self._hold_kernel(grid=(1, 1, 1), block=(1, 1, 1), args=[self._word, ticket, timeout_us])

    def open_gate(self, ticket: int) -> None:
        """Let the kernel with this number, and all before it, pass."""
        self._gate.value = ticket

    def start(self, expected_us: float, *, self_ending: bool) -> _FlagHold | _SleepHold:
        """Hold the stream while about `expected_us` of queueing is done."""
        if self.kind == "flag" and self._gave_up.value == self._ticket > 1:
            self._timeouts += 1
            if self._timeouts >= MAX_TIMEOUTS:
                self.kind, self.note = "sleep", "the blocker kernel ran into its own timeout"
        if self_ending or self.kind == "sleep":
            torch.cuda._sleep(int((1.5 * expected_us + 100) * self._cycles_per_us))
            self._over.record()
            return _SleepHold(self._over)
        self._ticket += 1
        timeout_us = int(min(MAX_TIMEOUT_US, max(MIN_TIMEOUT_US, 20 * expected_us)))
        hold = _FlagHold(self, self._ticket, self._over)
        try:
            self._launch(self._ticket, timeout_us)
            self._over.record()
        except BaseException:
            hold.release()
            raise
        return hold

    def meter(self) -> Callable[[], float | None]:
        """Queue a reading of the SM clock over 30 us; the result, called after a sync, gives MHz."""
        if self._clock_kernel is None:
            return lambda: None
        self._clock_kernel(grid=(1, 1, 1), block=(1, 1, 1), args=[self._reading, METER_US])
        reading = self._reading

        def read() -> float | None:
            cycles, span_ns = reading.tolist()
            return 1e3 * cycles / span_ns if span_ns > 0 else None

        return read
