"""# pageable-copy: data go to the GPU from ordinary memory

## What it does
Finds copies of more than 64 KiB from pageable host memory to the GPU in every step.

## Why it costs
The driver must stage such data through a buffer of its own, at a quarter of the link's speed, and the host waits
meanwhile. `non_blocking=True` does not help: only pinned memory can be copied while both sides work.

## How the gain is computed
The copy is replayed on a stream of its own at the speed of pinned copies (the best this trace shows, else 50 GB/s), one
batch ahead, and the call returns at once. The step then takes the longer of the copy and the rest.
Cautious: pinned and asynchronous, but on the same stream.

## When it may be wrong
Pinning inside the step costs more than it saves; batches must come pinned (`pin_memory=True` of the DataLoader). If the
batch is made by the step before, it cannot be copied ahead.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gapless.analyses.copies import copy_traits
from gapless.replay.program import Program
from gapless.replay.whatif import inside_items, move_to_own_stream, set_activity_ns, unblock
from gapless.rules._transfers import SMALL_BYTES, Transfers, transfers
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Found, Outcome
from gapless.tables.coding import categories
from gapless.tables.intervals import Int, as_ns

CODE = KIND = "pageable-copy"
PINNED_GB_S = 50.0
"""Pinned copies reach 50 to 55 GB/s on PCIe 5 (H200)."""
CALL_NS = 5_000.0

FIX = """\
# Let the DataLoader pin its batches, copy one batch ahead on a side stream:
loader = torch.utils.data.DataLoader(dataset, batch_size=..., num_workers=8, pin_memory=True)

for batch in gapless.streams.prefetch(loader, "cuda"):     # asynchronous, in order, one batch ahead
    loss = model(batch)

# or, for one tensor that is reused: pin it once, outside the loop
buffer = torch.empty(shape, pin_memory=True)
x = buffer.to("cuda", non_blocking=True)
"""


def check(c: Context) -> Outcome:
    """Are there large copies from pageable memory in every step?"""
    found = transfers(c, "HtoD")
    found = found.where(found.pageable & (found.size > SMALL_BYTES))
    if found.activity.size == 0:
        return Clean()
    base = c.in_base(found.top_row)
    if base.size == 0:
        return Clean()
    start, end = c.s.links.forest.start[base], c.s.links.forest.end[base]
    total = int(found.size.sum())
    dur = as_ns(c.s.raw.activities["dur_ns"].to_numpy())[found.activity]
    speed = pinned_speed(c)

    def ahead(program: Program) -> Program:
        copied, mine = _asynchronous(c, program, start, end, speed, found)
        return move_to_own_stream(copied, mine)

    def same_stream(program: Program) -> Program:
        return _asynchronous(c, program, start, end, speed, found)[0]

    return Found(
        f"{total / c.step_count / 1e6:.1f} MB a step go to the GPU from pageable memory",
        c.sites(found.top_row),
        ahead,
        [
            f"{found.activity.size / c.step_count:.1f} copies a step, {dur.sum() / c.step_count / 1e6:.2f} ms, "
            f"{total / max(int(dur.sum()), 1):.1f} GB/s",
            f"pinned copies reach {speed:.0f} GB/s on this link and leave the host free",
        ],
        "If the data are produced by the step itself, they cannot be copied ahead. Pinning memory inside the step is slower "
        "than this copy.",
        FIX,
        cautious=same_stream,
        assumptions=[f"{speed:.0f} GB/s for pinned copies", "the batch of the next step is known one step ahead"],
    )


def pinned_speed(c: Context) -> float:
    """GB/s of pinned copies: the best of this trace for copies of 1 MB and more, else the link's peak share."""
    names = categories(c.s.raw.activities["name"])
    pinned = np.array([copy_traits(n).host_memory == "pinned" for n in names] or [False])[c.activity_code]
    size = as_ns(c.s.raw.activities["size_bytes"].fill_null(0).to_numpy())
    dur = as_ns(c.s.raw.activities["dur_ns"].to_numpy())
    rows = pinned & (size >= 1_000_000) & (dur > 0)
    if rows.any():
        return float((size[rows] / dur[rows]).max())
    return 0.8 * c.peaks.host_link_gbs if c.peaks else PINNED_GB_S


def _asynchronous(
    c: Context,
    program: Program,
    start: Int,
    end: Int,
    speed: float,
    found: Transfers,
) -> tuple[Program, NDArray[np.bool_]]:
    """The copies at pinned speed, their calls returning at once; and which activities they are."""
    items = inside_items(program, start, end)
    rows = np.isin(program.act_row, found.activity)
    size = as_ns(c.s.raw.activities["size_bytes"].fill_null(0).to_numpy())
    ns = np.where(program.act_row >= 0, size[np.maximum(program.act_row, 0)] / speed, program.act_ns)
    faster = set_activity_ns(unblock(program, items), rows, np.minimum(ns, program.act_ns))
    return replace(faster, item_ns=np.where(items, np.minimum(faster.item_ns, CALL_NS), faster.item_ns)), rows
