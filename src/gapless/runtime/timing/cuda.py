"""How is a CUDA (or HIP) device timed? The backend that owns events, blocker, flush, graphs and profiler pass."""

from __future__ import annotations

from collections.abc import Callable

import torch

from gapless.runtime.timing import clocks, hidden, kernels
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
from gapless.runtime.timing.blocker import Blocker
from gapless.runtime.timing.cache import Flusher
from gapless.runtime.timing.counters import allocation_counts, compile_counts
from gapless.runtime.timing.graph import CudaGraphCalls
from gapless.runtime.timing.nvml import Nvml

__all__ = ["CudaBackend", "current_backend"]


class CudaMark:
    """A timing event on the stream that is current when it is recorded."""

    __slots__ = ("event",)

    def __init__(self) -> None:
        self.event = torch.cuda.Event(enable_timing=True)

    def record(self) -> None:
        """Put the mark into the current stream."""
        self.event.record()

    def wait(self) -> None:
        """Block the host until the device has passed the mark."""
        self.event.synchronize()

    def us_until(self, end: Mark) -> float:
        """Microseconds from this mark to another; both must have been passed."""
        assert isinstance(end, CudaMark)
        return float(self.event.elapsed_time(end.event)) * 1e3


class CudaBackend:
    """The current CUDA device and its current stream."""

    name = "cuda"

    def __init__(self) -> None:
        torch.cuda.init()
        self.device = torch.device("cuda", torch.cuda.current_device())
        self.properties = torch.cuda.get_device_properties(self.device)
        self.nvml = Nvml.open(str(getattr(self.properties, "uuid", "")))
        self._blocker = Blocker()
        self._flusher: Flusher | None = None
        self._scratch = torch.zeros(1, device=self.device)
        self._scratch.add_(1)
        l2 = getattr(self.properties, "L2_cache_size", None)
        notes = {}
        if self._blocker.note:
            notes["blocker"] = self._blocker.note
        if self.nvml is None:
            notes["nvml"] = "NVML does not answer"
        self.caps = Capabilities(
            marks="device",
            blocker=self._blocker.kind,
            graphs=True,
            kernel_times=True,
            sync_detector=True,
            l2_bytes=int(l2) if l2 else None,
            notes=notes,
        )
        clocks.wait_for_device(self.device)

    def now_ns(self) -> int:
        """Host clock."""
        return clocks.now_ns()

    def synchronize(self) -> None:
        """Wait for everything on the device."""
        clocks.wait_for_device(self.device)

    def mark(self) -> CudaMark:
        """A new mark, ready to be recorded."""
        made = CudaMark()
        # An event comes into being at its first record, which can take long; not inside a measurement.
        made.record()
        return made

    def hold(self, expected_us: float, *, self_ending: bool) -> Hold:
        """Hold the stream while about this much queueing is done; self_ending: never by the flag kernel."""
        return self._blocker.start(expected_us, self_ending=self_ending)

    def flush_l2(self) -> None:
        """Queue a flush of the L2 cache."""
        if self._flusher is None:
            if not self.caps.l2_bytes:
                raise UnavailableError("the size of the L2 cache is not known")
            self._flusher = Flusher(self.device, self.caps.l2_bytes)
        self._flusher.flush()

    def meter(self) -> Callable[[], float | None]:
        """Queue a reading of the core clock; call the result after a sync for MHz, None where unknown."""
        return self._blocker.meter()

    def clock_mhz(self) -> float | None:
        """Core clock now, by the driver."""
        return None if self.nvml is None else self.nvml.sm_mhz()

    def counters(self) -> dict[str, int]:
        """Counts that only grow: device and host allocations, compiled frames."""
        return {**allocation_counts(), **compile_counts()}

    def find_syncs(self, run: Run) -> tuple[SyncSite, ...]:
        """Run once and list where the call waits for the device."""
        return hidden.find_syncs(run)

    def capture(self, runs: list[Run]) -> Captured:
        """Capture these calls, one after the other, in one graph; UnavailableError says why it cannot be done."""
        return CudaGraphCalls(runs)

    def close(self) -> None:
        """Give back the flush buffer."""
        self._flusher = None

    def one_kernel(self) -> Run:
        """A callable that launches one smallest kernel."""
        scratch = self._scratch
        return lambda: scratch.add_(1)

    def kernel_times(self, run: Run, calls: int, *, held: bool) -> list[KernelTime]:
        """What the device did in `calls` calls, from the profiler; blockers left out."""

        def work() -> None:
            hold = self.hold(200.0 + 60.0 * calls, self_ending=False) if held else None
            try:
                for _ in range(calls):
                    run()
            finally:
                if hold is not None:
                    hold.release()
            self.synchronize()

        return kernels.record_kernels(work)


_backends: dict[int, CudaBackend] = {}


def current_backend() -> CudaBackend:
    """The backend of the current device; made once, since compiling the blocker takes a while."""
    index = torch.cuda.current_device()
    if index not in _backends:
        _backends[index] = CudaBackend()
    return _backends[index]
