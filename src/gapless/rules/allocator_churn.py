"""# allocator-churn: GPU memory is allocated and freed in steady steps

## What it does
Finds `cudaMalloc`, `cudaFree` (and the calls of expandable segments) in every steady step: the caching allocator is being
emptied, runs out of memory, or meets a new size each time.

## Why it costs
`cudaFree` waits until the device is idle; both calls take 10 us to milliseconds. After `empty_cache()` every later
allocation goes to the driver again.

## How the gain is computed
The calls go, with the host work between consecutive ones; the waits that `cudaFree` implies go with them.
Cautious: only the allocations stay free, frees keep half of their cost.

## When it may be wrong
Near the memory limit the allocator must free to go on; then less memory per step is the fix.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gapless.analyses.call_names import CallClass
from gapless.replay.program import Program
from gapless.replay.whatif import cut_host
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Found, Outcome
from gapless.tables.intervals import Int, as_ns

CODE = KIND = "allocator-churn"
RUN_GAP_NS = 100_000
MANY_FREES = 8
LONG_CALLS = 3

FIX = """\
# Remove torch.cuda.empty_cache() (and gc.collect()) from the loop: the caching allocator reuses freed memory by itself.
for batch in loader:
    y = model(batch)
    del y
    # torch.cuda.empty_cache()      <- delete

# If nobody calls it, the allocator retries near the memory limit, or sizes change every step:
#   PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py
#   print(torch.cuda.memory_stats()["num_alloc_retries"])      # above zero: lower the peak
"""


def check(c: Context) -> Outcome:
    """Do steady steps allocate or free device memory?"""
    s = c.s
    kinds = (int(CallClass.ALLOC), int(CallClass.FREE))
    calls = np.flatnonzero(np.isin(s.links.call_class, kinds) & np.isin(s.steps.step_of_call, c.counted_steps))
    if calls.size == 0:
        return Clean()
    dur = as_ns(s.raw.calls["dur_ns"].to_numpy())[calls]
    steps = np.unique(s.steps.step_of_call[calls])
    if len(c.counted_steps) > 1 and steps.size * 2 <= len(c.counted_steps):
        return Clean()
    one_window = s.steps.thread is None or len(c.counted_steps) == 1
    # One window cannot show that allocations recur; in it few frees, or few long calls, are first use.
    if one_window and ((s.links.call_class[calls] == int(CallClass.FREE)).sum() < MANY_FREES or _first_use(dur)):
        return Clean()
    rows = s.links.forest.of_call[calls]
    base = c.in_base(rows)
    if base.size == 0:
        return Clean()
    frees = int((s.links.call_class[calls] == int(CallClass.FREE)).sum())
    start, end = _runs(c, base)
    return Found(
        f"GPU memory is allocated and freed {calls.size / c.step_count:.0f} times a step",
        c.sites(rows),
        lambda program: cut_host(program, start, end, keep_work=True),
        [
            f"{(calls.size - frees) / c.step_count:.1f} allocations and {frees / c.step_count:.1f} frees a step, "
            f"{dur.sum() / c.step_count / 1e6:.3f} ms in the calls",
            "a free waits until the device has finished",
        ],
        "Near the memory limit the allocator has to free; look at num_alloc_retries in torch.cuda.memory_stats().",
        FIX,
        cautious=lambda program: _half(program, start, end),
        assumptions=["the host work between consecutive frees is the emptying of the cache"],
    )


def _first_use(dur: Int) -> bool:
    """Do the longest `LONG_CALLS` calls hold more than half of the time? What recurs is spread evenly."""
    return bool(np.sort(dur)[-LONG_CALLS:].sum() * 2 > dur.sum())


def _runs(c: Context, rows: Int) -> tuple[Int, Int]:
    """Intervals of the calls, consecutive frees joined where no op lies between them."""
    forest = c.s.links.forest
    order = rows[np.argsort(forest.start[rows], kind="stable")]
    start, end = forest.start[order], forest.end[order].copy()
    free = c.s.links.call_class[forest.row[order]] == int(CallClass.FREE)
    close = free[1:] & free[:-1] & (start[1:] - end[:-1] < RUN_GAP_NS)
    end[:-1][close] = start[1:][close]
    return start, end


def _half(program: Program, start: Int, end: Int) -> Program:
    cut = cut_host(program, start, end, keep_work=True)
    return replace(cut, piece_ns=(cut.piece_ns + program.piece_ns) / 2, item_ns=(cut.item_ns + program.item_ns) / 2)
