"""What happened in the window that a trace does not show: compilations, allocator retries, garbage collections?"""

from __future__ import annotations

import gc
import os
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from gapless.runtime.recorder import device

_ALLOCATOR = ("num_alloc_retries", "num_ooms", "num_device_alloc", "num_device_free", "num_sync_all_streams")


def snapshot() -> dict[str, int]:
    """Totals since the process began; reads counters that others keep, and imports nothing."""
    totals: dict[str, int] = {}
    dynamo: Any = sys.modules.get("torch._dynamo.utils")
    if dynamo is not None:
        counted = dynamo.counters
        totals["graph_breaks"] = sum(counted["graph_break"].values())
        totals["unique_graphs"] = counted["stats"]["unique_graphs"]
        totals["frames_compiled"] = counted["frames"]["ok"]
        totals["cudagraph_skips"] = counted["inductor"]["cudagraph_skips"]
    torch: Any = sys.modules.get("torch")
    if torch is not None and device.in_use() == "cuda":
        memory = torch.cuda.memory_stats()
        totals |= {key: int(memory[key]) for key in _ALLOCATOR if key in memory}
    return totals


def report(start: dict[str, int], end: dict[str, int]) -> dict[str, object]:
    """`counters` of the metadata: totals at the window's end, and what was added within the window.

    A recompilation in the window shows as `in_window.frames_compiled` above 0.
    """
    return {
        "total": end,
        "in_window": {key: value - start.get(key, 0) for key, value in end.items()},
        "graph_break_reasons": _reasons(),
    }


def _reasons(limit: int = 10, length: int = 300) -> list[dict[str, object]]:
    """The commonest graph breaks: the first line of each message and its count."""
    dynamo: Any = sys.modules.get("torch._dynamo.utils")
    if dynamo is None:
        return []
    common = sorted(dynamo.counters["graph_break"].items(), key=lambda item: (-item[1], str(item[0])))[:limit]
    return [{"reason": str(reason).split("\n", 1)[0][:length], "count": int(count)} for reason, count in common]


@dataclass(slots=True)
class GcWatch:
    """Python's own garbage collections while it is on: start (ns since the Unix epoch), duration, generation."""

    found: list[dict[str, int]] = field(default_factory=list)
    limit: int = 10_000
    _pid: int = field(default_factory=os.getpid)
    _start_ns: int = 0
    _clock_ns: int = 0

    def start(self) -> None:
        """Begin to listen."""
        gc.callbacks.append(self._heard)

    def stop(self) -> None:
        """Stop listening; calling it twice does no harm."""
        if self._heard in gc.callbacks:
            gc.callbacks.remove(self._heard)

    def _heard(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._start_ns, self._clock_ns = time.time_ns(), time.perf_counter_ns()
        elif self._clock_ns and len(self.found) < self.limit and os.getpid() == self._pid:
            duration = time.perf_counter_ns() - self._clock_ns
            self.found.append(
                {
                    "start_ns": self._start_ns,
                    "dur_ns": duration,
                    "generation": info["generation"],
                    "collected": info.get("collected", 0),
                }
            )
