"""What must a device offer to be timed, and what can this one not do? The protocol between measuring and hardware."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["Backend", "Capabilities", "Captured", "Hold", "KernelTime", "Mark", "Run", "SyncSite", "UnavailableError"]

Run = Callable[[], object]


class UnavailableError(Exception):
    """This quantity cannot be had here; the message says why and becomes the quantity's reason."""


@dataclass(frozen=True)
class Capabilities:
    """What the backend can do; a reason stands where it cannot.

    `blocker`: flag (a kernel that spins until told) | sleep (a kernel of set length) | none.
    `marks`: device (events timed on the device) | none.
    """

    marks: str
    blocker: str
    graphs: bool
    kernel_times: bool
    sync_detector: bool
    l2_bytes: int | None
    notes: Mapping[str, str] = field(default_factory=dict)


class Mark(Protocol):
    """A point in the measured stream that the device stamps when it gets there."""

    def record(self) -> None:
        """Put the mark into the current stream."""
        ...

    def wait(self) -> None:
        """Block the host until the device has passed the mark."""
        ...

    def us_until(self, end: Mark) -> float:
        """Microseconds from this mark to another; both must have been passed."""
        ...


class Hold(Protocol):
    """A device kept busy so that what is queued next starts only after the host has queued all of it."""

    def holding(self) -> bool:
        """Whether the device is still held."""
        ...

    def release(self) -> None:
        """Let the device go on; harmless if it already does."""
        ...


@dataclass(frozen=True)
class SyncSite:
    """Where the subject waits for the GPU: kind (device | stream | event | operation), site, times per call."""

    kind: str
    file: str
    line: int
    count: int
    declared: bool

    def __str__(self) -> str:
        return f"{self.file}:{self.line} ({self.kind}, {self.count}x)"


@dataclass(frozen=True)
class KernelTime:
    """One kernel, copy or memset as the profiler recorded it."""

    name: str
    start_ns: int
    dur_ns: int


class Captured(Protocol):
    """Calls captured in a graph. `kernel_nodes`: kernels in it, None where they cannot be counted."""

    calls: int
    kernel_nodes: int | None
    output: object

    def replay(self) -> None:
        """Queue all captured calls on the current stream."""
        ...


class Backend(Protocol):
    """One device as the measuring code sees it; every duration in microseconds, every clock reading in ns."""

    name: str
    caps: Capabilities

    def now_ns(self) -> int:
        """Host clock."""
        ...

    def synchronize(self) -> None:
        """Wait for everything on the device."""
        ...

    def mark(self) -> Mark:
        """A new mark, ready to be recorded."""
        ...

    def hold(self, expected_us: float, *, self_ending: bool) -> Hold:
        """Hold the stream while about this much queueing is done; self_ending: never by the flag kernel."""
        ...

    def flush_l2(self) -> None:
        """Queue a flush of the L2 cache."""
        ...

    def meter(self) -> Callable[[], float | None]:
        """Queue a reading of the core clock; call the result after a sync for MHz, None where unknown."""
        ...

    def clock_mhz(self) -> float | None:
        """Core clock now, by the driver."""
        ...

    def counters(self) -> dict[str, int]:
        """Counts that only grow: device and host allocations, compiled frames."""
        ...

    def find_syncs(self, run: Run) -> tuple[SyncSite, ...]:
        """Run once and list where the call waits for the device."""
        ...

    def capture(self, runs: list[Run]) -> Captured:
        """Capture these calls, one after the other, in one graph; UnavailableError says why it cannot be done."""
        ...

    def close(self) -> None:
        """Give back the memory that only measuring needs."""
        ...

    def one_kernel(self) -> Run:
        """A callable that launches one smallest kernel."""
        ...

    def kernel_times(self, run: Run, calls: int, *, held: bool) -> list[KernelTime]:
        """What the device did in `calls` calls, from the profiler; blockers left out."""
        ...
