"""Does t_gpu agree with the profiler's kernel times, and with the wall clock, whatever the host does meanwhile?

Blocks with and without the profiler take turns in one process, after the same warm-up, so that clock, power and L2 are
the same for both. Three comparisons for each function: t_gpu against the profiler's span (first kernel start to last
kernel end) of the neighbouring block; a pair of events against the span of the very same calls, which leaves out what
the profiler costs the GPU; and t_gpu against the slope of wall time over the number of calls, which needs neither
events nor profiler. Prints two tables, writes $OUT/agreement_h200.json; about ninety seconds.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

import torch
from measure_h200 import Case, cases, spin

from gapless.runtime.timing import quantities as q
from gapless.runtime.timing.backend import KernelTime, UnavailableError
from gapless.runtime.timing.cuda import CudaBackend, current_backend
from gapless.runtime.timing.explain import busy_ns
from gapless.runtime.timing.kernels import record_device
from gapless.runtime.timing.sampling import StopRule

OUT = Path(os.environ.get("OUT", "."))
TOLERANCE = 0.03
ROUNDS = 2 if "brief" in sys.argv[1:] else 6
DELAYS_US = (0, 50, 500)
DELAYED = ("add_ 4 MB", "mul 16 MB", "mm 1024 bf16", "mm 4096 bf16", "conv 3x3 64>128", "80 launches in a graph")
START = time.perf_counter()

Run = Callable[[], object]
Sample = tuple[float, float, float]


def busy(run: Run, seconds: float) -> None:
    """Call in a loop, so that the block behind it finds the GPU as a running program has it."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(4):
            run()
        torch.cuda.current_stream().synchronize()


class Subject:
    """One function: how many calls an interval holds, and blocks of samples with or without the profiler."""

    def __init__(self, run: Run, backend: CudaBackend) -> None:
        self.run, self.backend = run, backend
        busy(run, 0.05)
        naive, _ = q.latency(run, backend, StopRule(6, 0.5, 0.05))
        self.found = q.fit(run, backend, naive.us or 10.0)
        per_sample_us = self.found.calls * (self.found.gpu_us + self.found.enqueue_us)
        self.samples = int(min(20, max(4, 60_000 / per_sample_us)))
        self.warm_s = 0.3 if self.found.gpu_us > 100 else 0.05

    def block(self) -> list[Sample | None]:
        busy(self.run, self.warm_s)
        sample = q.held_sampler(self.run, self.backend, self.found)
        return [sample() for _ in range(self.samples)]

    def plain(self) -> list[Sample]:
        return [row for row in self.block() if row is not None]

    def recorded(self) -> list[dict[str, float]]:
        """Per sample: the events' and the profiler's times of the same calls."""
        rows: list[Sample | None] = []
        records = record_device(lambda: rows.extend(self.block()))
        made = []
        for row, group in zip(rows, batches(records), strict=True):
            if row is not None and group:
                calls = self.found.calls * 1e3
                made.append(
                    {
                        "events_us": row[0], "mhz": row[2], "records": len(group) / self.found.calls,
                        "span_us": (max(r.start_ns + r.dur_ns for r in group) - group[0].start_ns) / calls,
                        "sum_us": sum(r.dur_ns for r in group) / calls, "busy_us": busy_ns(group) / calls,
                    }
                )  # fmt: skip
        return made


def batches(records: list[KernelTime]) -> Iterator[list[KernelTime]]:
    """What ran between each blocker and the clock reading behind it."""
    current: list[KernelTime] | None = None
    for record in records:
        if record.name.startswith("gapless_hold"):
            current = []
        elif record.name.startswith("gapless_clock"):
            if current is not None:
                yield current
            current = None
        elif current is not None:
            current.append(record)


def middle(rows: list[dict[str, float]], key: str) -> float:
    return median(row[key] for row in rows)


def agreement(subject: Subject) -> dict[str, object]:
    """Blocks in turn, ABBA; the ratio of neighbours in each round, then the median of rounds."""
    plain, seen, apart = [], [], []
    for turn in range(ROUNDS):
        if turn % 2:
            recorded, rows = subject.recorded(), subject.plain()
        else:
            rows, recorded = subject.plain(), subject.recorded()
        plain += rows
        seen += recorded
        apart.append(median(row[0] for row in rows) / middle(recorded, "span_us"))
    gpu = median(row[0] for row in plain)
    return {
        "calls": subject.found.calls, "samples": [len(plain), len(seen)], "t_gpu_us": gpu,
        "enqueue_us": subject.found.enqueue_us,
        **{key: middle(seen, key) for key in ("span_us", "sum_us", "busy_us", "events_us", "records")},
        "gpu_over_span": median(apart), "rounds": apart,
        "same_calls": median(row["events_us"] / row["span_us"] for row in seen),
        "profiler_slows": middle(seen, "events_us") / gpu,
        "mhz": [median(row[2] for row in plain), middle(seen, "mhz")],
    }  # fmt: skip


def wall(subject: Subject, launches: float) -> dict[str, float | None]:
    """Wall time that one more held call adds, from opening the gate to the end of a device sync, beside t_gpu.

    In time, and in cycles of the core clock as it was read behind each batch: long products lower the clock.
    """
    backend, run, found = subject.backend, subject.run, subject.found
    most = max(2, min(int(30_000 / found.gpu_us), int(700 / max(launches, 1)), 400))
    sample = q.held_sampler(run, backend, found)

    def once(calls: int) -> tuple[float, float] | None:
        backend.synchronize()
        hold = backend.hold(found.enqueue_us * calls, self_ending=False)
        try:
            for _ in range(calls):
                run()
            read = backend.meter()
            held = hold.holding()
        finally:
            hold.release()
        opened = backend.now_ns()
        backend.synchronize()
        return ((backend.now_ns() - opened) / 1e3, read() or 0.0) if held else None

    rows = []
    for _ in range(6 if found.gpu_us > 5_000 else 15):
        seen = []
        for take in (lambda: once(most), lambda: once(most // 2), sample):
            busy(run, subject.warm_s / 3)
            seen.append(take())
        whole, half, near = seen
        if whole is not None and half is not None and near is not None:
            added = most - most // 2
            slope, cycles = (whole[0] - half[0]) / added, (whole[0] * whole[1] - half[0] * half[1]) / added
            rows.append({"wall_us": slope, "cycles": cycles, "near_us": near[0], "near_cycles": near[0] * near[2]})
    if not rows:
        return {"wall_us": None, "gpu_over_wall": None, "gpu_over_wall_cycles": None}
    return {
        "wall_us": middle(rows, "wall_us"), "gpu_over_wall": middle(rows, "near_us") / middle(rows, "wall_us"),
        "gpu_over_wall_cycles": middle(rows, "near_cycles") / middle(rows, "cycles"),
    }  # fmt: skip


def delayed(case: Case, backend: CudaBackend) -> list[dict[str, object]]:
    rows = []
    for delay in DELAYS_US:

        def run(delay: int = delay) -> object:
            spin(delay)
            return case.fn(*case.args)

        subject = Subject(run, backend)
        rows.append({"delay_us": delay, "t_pair_us": q.unheld(run, backend, StopRule(20, 0.02, 0.2)).us}
                    | agreement(subject))  # fmt: skip
    base = rows[0]["span_us"]
    for row in rows:
        row["gpu_over_undelayed_span"] = row["t_gpu_us"] / base
    return rows


def verdict(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:9.3f}{' ' if abs(ratio - 1) <= TOLERANCE else '*'}"


def main() -> None:
    result: dict[str, object] = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "rows": [],
        "delays": {},
    }
    try:
        everything(result)
    finally:
        (OUT / "agreement_h200.json").write_text(json.dumps(result, default=str, indent=1), encoding="utf-8")


def everything(result: dict[str, object]) -> None:
    backend = current_backend()
    assert backend.caps.blocker == "flag", backend.caps.notes
    result["floor_us"] = q.empty_pair(backend, StopRule(30, 0.01, 0.3)).us
    chosen = [case for case in cases() if case.regime not in ("host-serialised", "H03")]
    subjects = {}
    for case in chosen:
        run = (lambda case=case: case.fn(*case.args)) if case.args else case.fn
        try:
            subjects[case.name] = Subject(run, backend)
        except UnavailableError as error:
            print(f"{case.name}: {error}", flush=True)
    clean = {name: median(row[0] for row in subject.plain()) for name, subject in subjects.items()}
    print(f"[{time.perf_counter() - START:.0f} s] before any profiler pass: {clean}", flush=True)
    print(f"{'function':<24}{'calls':>6}{'t_gpu':>11}{'span':>11}{'sum':>11}{'gpu/span':>10}{'same':>10}{'wall':>10}{'cycles':>10}"
          f"{'slows':>8}{'clean':>8}  MHz")  # fmt: skip
    for name, subject in subjects.items():
        row = {"name": name, **agreement(subject), "clean_us": clean[name]}
        row |= wall(subject, float(row["records"]))
        result["rows"].append(row)
        print(
            f"{name:<24}{row['calls']:>6}{row['t_gpu_us']:>11.2f}{row['span_us']:>11.2f}{row['sum_us']:>11.2f}"
            f"{verdict(row['gpu_over_span'])}{verdict(row['same_calls'])}{verdict(row['gpu_over_wall'])}"
            f"{verdict(row['gpu_over_wall_cycles'])}"
            f"{row['profiler_slows']:>8.3f}{row['clean_us'] / row['t_gpu_us']:>8.3f}  {row['mhz'][0]:.0f} {row['mhz'][1]:.0f}",
            flush=True,
        )
    if "brief" in sys.argv[1:]:
        return
    print(f"[{time.perf_counter() - START:.0f} s] added host time: t_gpu / span of neighbours, / undelayed span, pair")
    for case in chosen:
        if case.name in DELAYED:
            rows = result["delays"][case.name] = delayed(case, backend)
            cells = [f"{r['delay_us']}: {r['t_gpu_us']:.2f} {r['gpu_over_span']:.3f} {r['gpu_over_undelayed_span']:.3f}"
                     f" pair {r['t_pair_us']:.1f}" for r in rows]  # fmt: skip
            print(f"{case.name:<24}" + "   ".join(cells), flush=True)
    for key in ("gpu_over_span", "same_calls", "gpu_over_wall", "gpu_over_wall_cycles"):
        near = [r for r in result["rows"] if r[key] and abs(r[key] - 1) <= TOLERANCE]
        print(f"{key}: {len(near)} of {len(result['rows'])} within 3 %")
    print(f"[{time.perf_counter() - START:.0f} s] done")


if __name__ == "__main__":
    main()
