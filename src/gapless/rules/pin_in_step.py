"""# pin-in-step: host memory is pinned inside the step

## What it does
Finds `cudaHostAlloc`, `cudaHostRegister` and `cudaFreeHost` in steady steps, mostly from `tensor.pin_memory()`.

## Why it costs
Pinning asks the operating system to fix every page: milliseconds per 100 MB, with a lock that other threads need, and a
copy into the new buffer. It costs more than the faster transfer saves.

## How the gain is computed
The pinning operator goes, with its allocation, its host copy and the frees, as if the buffer had been pinned once before
the loop. Cautious: the host copy into the pinned buffer stays.

## When it may be wrong
The caching host allocator reuses buffers of one size; a step that needs a new size each time pins again.
"""

from __future__ import annotations

import numpy as np

from gapless.analyses.call_names import CallClass
from gapless.replay.program import Program
from gapless.replay.whatif import cut_host
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Found, Outcome
from gapless.tables.intervals import Int, as_ns

CODE = KIND = "pin-in-step"

FIX = """\
# Pin once, before the loop, and reuse the buffer:
buffer = torch.empty(shape, dtype=dtype, pin_memory=True)
for batch in loader:
    buffer.copy_(batch)                              # a plain host copy
    x = buffer.to("cuda", non_blocking=True)
    # do not write to `buffer` again before this copy is done: use two buffers in turn, or gapless.streams.prefetch

# or let the DataLoader do it: DataLoader(..., pin_memory=True)
"""


def check(c: Context) -> Outcome:
    """Is memory pinned in steady steps?"""
    s = c.s
    calls = np.flatnonzero((s.links.call_class == int(CallClass.PIN)) & np.isin(s.steps.step_of_call, c.counted_steps))
    thread = as_ns(s.raw.calls["thread"].to_numpy())[calls]
    calls = calls[np.array([s.states.roles[t] in ("main", "autograd") for t in thread.tolist()], dtype=bool)]
    if calls.size == 0 or np.unique(s.steps.step_of_call[calls]).size * 2 <= len(c.counted_steps) - 1:
        return Clean()
    rows = s.links.forest.of_call[calls]
    base = c.in_base(rows)
    if base.size == 0:
        return Clean()
    spent = int(as_ns(s.raw.calls["dur_ns"].to_numpy())[calls].sum())
    start, end = _whole(c, base)
    forest = s.links.forest
    return Found(
        f"Host memory is pinned {calls.size / c.step_count:.0f} time{'s' if calls.size > 1.5 * c.step_count else ''} a step",
        c.sites(rows),
        lambda program: cut_host(program, start, end),
        [f"{spent / c.step_count / 1e6:.2f} ms a step in {', '.join(sorted({c.name_of(int(r)) for r in rows}))}"],
        "If a new size is needed each time, the buffer must be as large as the largest.",
        FIX,
        cautious=lambda program: _calls_only(program, forest.start[base], forest.end[base]),
        assumptions=["a buffer pinned before the loop holds the data already"],
    )


def _calls_only(program: Program, start: Int, end: Int) -> Program:
    return cut_host(program, start, end)


def _whole(c: Context, rows: Int) -> tuple[Int, Int]:
    """The outermost pinning operator round each call, else the call."""
    top = c.places.op[rows]
    named = np.array([t >= 0 and "pin" in c.name_of(int(t)) for t in top.tolist()], dtype=bool)
    chosen = np.where(named, top, rows)
    return c.s.links.forest.start[chosen], c.s.links.forest.end[chosen]
