"""Which kernels make up a call, by the profiler's own clock? An explanation of the times, never the headline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from gapless.runtime.timing.backend import Backend, KernelTime, Run, UnavailableError
from gapless.runtime.timing.kernels import is_kernel
from gapless.runtime.timing.result import Quantity

__all__ = ["Explained", "busy_ns", "explain"]

REPEATS = 3
MAX_CALLS = 64


@dataclass(frozen=True)
class Explained:
    """t_kern_sum and t_kern_span, and kernels per call, copies and memsets not counted; None where nothing was seen."""

    quantities: tuple[Quantity, Quantity]
    kernels_per_call: float | None


def busy_ns(records: Iterable[KernelTime]) -> int:
    """Length of the union of the records' intervals."""
    total, edge = 0, None
    for record in sorted(records, key=lambda r: r.start_ns):
        end = record.start_ns + record.dur_ns
        begin = record.start_ns if edge is None else max(record.start_ns, edge)
        total += max(0, end - begin)
        edge = end if edge is None else max(edge, end)
    return total


def explain(run: Run, backend: Backend, calls: int, *, held: bool) -> Explained:
    """Three profiler passes of some calls each, queued behind a blocker where the call allows it."""
    calls = min(calls, MAX_CALLS)
    sums, spans, counts = [], [], []
    try:
        for _ in range(REPEATS):
            records = backend.kernel_times(run, calls, held=held)
            if not records:
                continue
            first, last = min(r.start_ns for r in records), max(r.start_ns + r.dur_ns for r in records)
            sums.append(sum(r.dur_ns for r in records) / 1e3 / calls)
            spans.append((last - first) / 1e3 / calls)
            counts.append(sum(is_kernel(r.name) for r in records) / calls)
    except (UnavailableError, RuntimeError) as error:
        return Explained(_unknown(f"the profiler pass failed: {error}"), None)
    if not sums:
        return Explained(_unknown("the profiler recorded no GPU work"), None)
    pair = (
        Quantity("t_kern_sum", tuple(sums), calls, stop="fixed"),
        Quantity(
            "t_kern_span",
            tuple(spans),
            calls,
            stop="fixed",
            note="" if held else "calls not queued ahead: gaps included",
        ),
    )
    return Explained(pair, median(counts))


def _unknown(why: str) -> tuple[Quantity, Quantity]:
    return Quantity("t_kern_sum", why=why), Quantity("t_kern_span", why=why)
