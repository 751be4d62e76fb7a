"""What does one step amount to: times and counts, median over the steps that count?

Counts go by launch: an activity belongs to the step that launched it. GPU busy time is the union of activities of the
busiest device inside the step's interval (see `accounting`). Host work is time on the stepping threads in which nobody
blocks. With fewer than one complete step a number is None, never zero; so are kernels and copies of a file without GPU
records, whose launches are counted by their calls.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gapless.analyses.accounting import COMMUNICATION, COMPUTE, COPY
from gapless.analyses.blocking import Origin
from gapless.analyses.call_names import LAUNCHES, CallClass
from gapless.analyses.causes import Cause
from gapless.analyses.study import Study
from gapless.model.report import StepNumbers
from gapless.tables.coding import matches
from gapless.tables.intervals import Int, as_ns
from gapless.tables.segments import split_by


def step_numbers(s: Study) -> StepNumbers:
    """The recorded numbers; the replayed ones are filled in later."""
    chosen = s.steps.used_indices()
    wall = (s.steps.end - s.steps.start)[chosen]
    has_gpu = s.raw.activities.height > 0
    has_host = s.states.main >= 0
    counts = _counts(s, chosen)
    return StepNumbers(
        wall_ms=_median_ms(wall),
        gpu_busy_ms=_median_ms(_busy(s)) if has_gpu else None,
        host_work_ms=_median_ms(s.host_work[chosen]) if has_host else None,
        host_wait_ms=_median_ms(_host_wait(s, chosen)) if has_host else None,
        launches=counts.get("launches"),
        kernels=counts.get("kernels"),
        graph_launches=counts.get("graph_launches"),
        syncs=counts.get("syncs"),
        copies=counts.get("copies"),
        copy_bytes=counts.get("copy_bytes"),
    )


def _median_ms(values: Int) -> float | None:
    return float(np.median(values)) / 1e6 if values.size else None


def _busy(s: Study) -> Int:
    device = s.busiest
    if device is None:
        return as_ns([])
    account = s.devices[device]
    line, pieces = account.line, account.pieces
    busy = np.isin(line[2], (COMPUTE, COMMUNICATION, COPY))
    _, query, low, high = split_by((line[0][busy], line[1][busy], line[2][busy]), pieces[0], pieces[1])
    out = np.zeros(pieces[0].size, dtype=np.int64)
    np.add.at(out, query, high - low)
    return out


def _host_wait(s: Study, chosen: list[int]) -> Int:
    line = s.states.shared[s.states.main]
    piece, query, low, high = split_by(line, s.steps.start[chosen], s.steps.end[chosen])
    waits = np.isin(line[2][piece], (int(Cause.SYNC), int(Cause.QUEUE_FULL)))
    out = np.zeros(len(chosen), dtype=np.int64)
    np.add.at(out, query[waits], (high - low)[waits])
    return out


def _counts(s: Study, chosen: list[int]) -> dict[str, float | None]:
    step_a, step_c = s.steps.step_of_activity, s.steps.step_of_call
    kind = s.raw.activities["kind"]
    kernel, copy = matches(kind, lambda k: k == "kernel"), matches(kind, lambda k: k == "memcpy")
    has_gpu = s.raw.activities.height > 0
    launched = s.links.first_activity >= 0 if has_gpu else np.isin(s.links.call_class, [int(k) for k in LAUNCHES])
    graph = launched & (s.links.call_class == int(CallClass.GRAPH_LAUNCH))
    own = s.origin[s.syncs.call] == int(Origin.PROFILER)
    syncs = np.zeros(s.raw.calls.height, dtype=bool)
    syncs[s.syncs.call[~own]] = True
    size = as_ns(s.raw.activities["size_bytes"].fill_null(0).to_numpy())
    if not has_gpu and s.raw.calls.height == 0:
        return {}

    def per_step(step: Int, flag: NDArray[np.bool_], weight: Int | None = None) -> float | None:
        rows = flag & (step >= 0)
        total = np.bincount(step[rows], weights=None if weight is None else weight[rows], minlength=s.steps.count)
        return float(np.median(total[chosen])) if chosen else None

    calls = {
        "launches": per_step(step_c, launched),
        "graph_launches": per_step(step_c, graph),
        "syncs": per_step(step_c, syncs),
    }
    if not has_gpu:
        return calls
    return calls | {
        "kernels": per_step(step_a, kernel),
        "copies": per_step(step_a, copy),
        "copy_bytes": per_step(step_a, copy, size),
    }
