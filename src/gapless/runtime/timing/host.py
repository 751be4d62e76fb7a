"""How is code timed where no CUDA device is used: on the CPU, or an accelerator of which only a sync is known?"""

# ruff: noqa: ARG002 - the protocol names the arguments; a host has no use for them
from __future__ import annotations

from collections.abc import Callable

import torch

from gapless.runtime.timing import clocks
from gapless.runtime.timing.backend import (
    Capabilities,
    Captured,
    Hold,
    KernelTime,
    Mark,
    Run,
    SyncSite,
    UnavailableError,
)
from gapless.runtime.timing.counters import compile_counts

__all__ = ["HostBackend"]


class HostBackend:
    """Host timing; on another accelerator the device sync is real and everything on the device is unknown."""

    def __init__(self, device_type: str = "cpu") -> None:
        self.name = device_type
        self._accelerated = device_type != "cpu"
        self._reason = (
            f"gapless has no blocker for {device_type}" if self._accelerated else "there is no GPU in this measurement"
        )
        self.caps = Capabilities(
            marks="none",
            blocker="none",
            graphs=False,
            kernel_times=False,
            sync_detector=False,
            l2_bytes=None,
            notes={"device": self._reason},
        )

    def now_ns(self) -> int:
        """Host clock."""
        return clocks.now_ns()

    def synchronize(self) -> None:
        """Wait for everything on the device."""
        if self._accelerated:
            torch.accelerator.synchronize()

    def mark(self) -> Mark:
        """A new mark, ready to be recorded."""
        raise UnavailableError(self._reason)

    def hold(self, expected_us: float, *, self_ending: bool) -> Hold:
        """Hold the stream while about this much queueing is done; self_ending: never by the flag kernel."""
        raise UnavailableError(self._reason)

    def flush_l2(self) -> None:
        """Queue a flush of the L2 cache."""
        raise UnavailableError(self._reason)

    def meter(self) -> Callable[[], float | None]:
        """Queue a reading of the core clock; call the result after a sync for MHz, None where unknown."""
        return lambda: None

    def clock_mhz(self) -> float | None:
        """Core clock now, by the driver."""
        return None

    def counters(self) -> dict[str, int]:
        """Counts that only grow: device and host allocations, compiled frames."""
        return compile_counts()

    def find_syncs(self, run: Run) -> tuple[SyncSite, ...]:
        """Run once and list where the call waits for the device."""
        raise UnavailableError(self._reason)

    def capture(self, runs: list[Run]) -> Captured:
        """Capture these calls, one after the other, in one graph; UnavailableError says why it cannot be done."""
        raise UnavailableError(self._reason)

    def close(self) -> None:
        """Nothing is held."""

    def one_kernel(self) -> Run:
        """A callable that launches one smallest kernel."""
        raise UnavailableError(self._reason)

    def kernel_times(self, run: Run, calls: int, *, held: bool) -> list[KernelTime]:
        """What the device did in `calls` calls, from the profiler; blockers left out."""
        raise UnavailableError(self._reason)
