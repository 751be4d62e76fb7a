"""What does the profiler say about waits? (Layer F: a second run, because the profiler counts ops twice under layer B.)

It sees what no hook of torch's reports: libraries that call the runtime themselves, and copies from or to pageable
memory; and it knows how long the GPU had nothing to do after each wait.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gapless.model.sync_fixes import fix_for

SYNC_CALLS = frozenset({
    "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cuCtxSynchronize", "cuStreamSynchronize",
    "cuEventSynchronize", "cudaMemcpy", "cudaFree", "cudaMalloc", "cudaHostAlloc", "cudaFreeHost",
    "hipDeviceSynchronize", "hipStreamSynchronize", "hipEventSynchronize", "hipMemcpyWithStream", "hipMemcpy",
    "hipFree", "hipMalloc", "hipHostMalloc", "hipHostFree",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One record of the profiler. kind: op (host op), call (runtime call), gpu (kernel, copy, memset)."""

    name: str
    kind: str
    start_ns: int
    end_ns: int
    thread: int = 0
    correlation: int = 0


@dataclass(frozen=True, slots=True)
class TraceRow:
    """All waits of one call under one op. idle_after_ms: time the GPU had nothing to do once these had returned."""

    call: str
    op: str
    count: int
    wall_ms: float
    idle_after_ms: float
    why: str

    def text(self) -> str:
        """One line."""
        under = f" under {self.op}" if self.op else ""
        idle = f", GPU idle {self.idle_after_ms:.3g} ms after" if self.idle_after_ms >= 0.001 else ""
        return f"{self.count}x {self.call}{under}: {self.wall_ms:.3g} ms{idle}. {self.why}".rstrip()


def rows(events: Iterable[TraceEvent]) -> list[TraceRow]:
    """Waiting calls and pageable copies by op, dearest first."""
    ordered = sorted(events, key=lambda event: (event.start_ns, -event.end_ns))
    ops: dict[int, list[TraceEvent]] = {}
    for event in ordered:
        if event.kind == "op":
            ops.setdefault(event.thread, []).append(event)
    calls = [event for event in ordered if event.kind == "call"]
    gpu = [event for event in ordered if event.kind == "gpu"]
    copies = {event.correlation: event for event in gpu if "Pageable" in event.name}
    busy = _union(gpu)
    waits = [call for call in calls if call.name in SYNC_CALLS or (call.correlation in copies and call.correlation)]
    groups: dict[tuple[str, str], list[TraceEvent]] = {}
    chains: dict[tuple[str, str], list[str]] = {}
    for call in waits:
        chain = _enclosing(ops.get(call.thread, []), call)
        name = call.name if call.name in SYNC_CALLS else f"{call.name} ({copies[call.correlation].name})"
        key = (name, chain[0] if chain else "")
        groups.setdefault(key, []).append(call)
        chains.setdefault(key, chain)
    found = []
    for (name, op), group in groups.items():
        copy = next((copies[call.correlation].name for call in group if call.correlation in copies), "")
        direction = ["copy:DtoH"] if "DtoH" in copy else ["copy:HtoD"] if "HtoD" in copy else []
        fix = fix_for([*chains[name, op], *direction, name.partition(" ")[0]])
        found.append(
            TraceRow(
                name, op, len(group), sum(call.end_ns - call.start_ns for call in group) / 1e6,
                sum(_idle_after(busy, call.end_ns) for call in group) / 1e6, fix.reason if fix is not None else "",
            )
        )  # fmt: skip
    return sorted(found, key=lambda row: (-row.wall_ms, row.call, row.op))


class TracePass:
    """Records a window of the program under torch's profiler, without stacks, shapes or memory."""

    def __init__(self) -> None:
        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        self._profile = torch.profiler.profile(activities=activities)
        self.steps = 0
        self.running = False

    def start(self) -> None:
        """Records from now on, with nothing left over on the GPU."""
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self._profile.start()
        self.running = True

    def stop(self) -> list[TraceRow]:
        """Ends the recording and says what it shows."""
        self.running = False
        self._profile.stop()
        results: Any = getattr(self._profile.profiler, "kineto_results", None)
        events = [_convert(event) for event in results.events()] if results is not None else []
        return rows(_without_own(events))


def _convert(event: Any) -> TraceEvent:  # noqa: ANN401 - a Kineto event has no public type
    start_ns = int(event.start_ns())
    on_host = event.device_type() == torch._C._autograd.DeviceType.CPU
    name = str(event.name())
    is_call = name.startswith(("cuda", "cu", "hip")) and "::" not in name
    kind = "gpu" if not on_host else "call" if is_call else "op"
    correlation = int(event.linked_correlation_id() or event.correlation_id()) if kind == "op" else 0
    if kind != "op":
        correlation = int(event.correlation_id())
    end_ns = start_ns + int(event.duration_ns())
    return TraceEvent(name, kind, start_ns, end_ns, int(event.start_thread_id()), correlation)


def _without_own(events: Sequence[TraceEvent]) -> list[TraceEvent]:
    """Without the device synchronisation with which the profiler itself ends the window."""
    calls = [event for event in events if event.kind == "call"]
    last = max(calls, key=lambda event: event.start_ns, default=None)
    if last is None or not last.name.endswith("DeviceSynchronize"):
        return list(events)
    return [event for event in events if event is not last]


def _enclosing(ops: Sequence[TraceEvent], call: TraceEvent) -> list[str]:
    """Names of the ops that contain the call, outermost first."""
    last = bisect_right(ops, call.start_ns, key=lambda op: op.start_ns)
    return [op.name for op in ops[max(0, last - 2000) : last] if op.end_ns >= call.end_ns and "::" in op.name]


def _union(gpu: Sequence[TraceEvent]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for event in gpu:
        if merged and event.start_ns <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], event.end_ns))
        else:
            merged.append((event.start_ns, event.end_ns))
    return merged


def _idle_after(busy: Sequence[tuple[int, int]], moment_ns: int) -> int:
    """Nanoseconds from the moment to the next GPU activity; 0 while one runs, or where none follows."""
    position = bisect_right(busy, moment_ns, key=lambda interval: interval[1])
    return max(0, busy[position][0] - moment_ns) if position < len(busy) else 0
