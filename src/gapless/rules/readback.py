"""# readback: results go to the host in the middle of the step

## What it does
Finds copies of more than 64 KiB from the GPU to the host in every step.

## Why it costs
The host waits for all GPU work queued before and for the copy itself (a fifth of the link's speed into pageable memory),
then works on the data while the GPU idles.

## How the gain is computed
Expected: the copy and the host work that follows it (up to the next launch) go, because the reduction happens on the
GPU: one pass over the data at this trace's memory bandwidth. Cautious: the data still travel, asynchronously into pinned
memory, and the host work stays.

## When it may be wrong
If the data really are needed on the host (to be saved or shown), only the cautious figure holds.
"""

from __future__ import annotations

import numpy as np

from gapless.replay.program import Program
from gapless.replay.whatif import (
    add_activity,
    add_host,
    cut_host,
    inside_items,
    move_to_own_stream,
    set_activity_ns,
    unblock,
)
from gapless.rules._python import until_next_item
from gapless.rules._stalls import WARM_SHARE, WARMEST_SHARE, warmed
from gapless.rules._transfers import SMALL_BYTES, transfers
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Found, Outcome
from gapless.rules.pageable_copy import pinned_speed
from gapless.tables.intervals import as_ns

CODE = KIND = "readback"

FIX = """\
# Reduce on the GPU and move only the result, rarely:
mean = features.mean()                     # stays on the GPU; features.cpu().numpy().mean() moved everything
if step % 50 == 0:
    print(mean.item())

# If the data must leave: pinned, asynchronous, read one step later
handle = gapless.streams.to_host(features) # returns at once
...                                        # the next step's work
array = handle.result().numpy()            # waits for this copy only
"""


def check(c: Context) -> Outcome:
    """Are there large copies to the host in every step?"""
    found = transfers(c, "DtoH")
    found = found.where(found.blocks & (found.size > SMALL_BYTES))
    if found.activity.size == 0:
        return Clean()
    tops = np.unique(found.top_row)
    base = c.in_base(tops)
    if base.size == 0:
        return Clean()
    forest = c.s.links.forest
    start, end = forest.start[base], until_next_item(c, base)
    size = as_ns(c.s.raw.activities["size_bytes"].fill_null(0).to_numpy())
    dur = as_ns(c.s.raw.activities["dur_ns"].to_numpy())[found.activity]
    total, speed = int(found.size.sum()), pinned_speed(c)
    host_after = int((end - forest.end[base]).sum())

    paused = float((end - start).sum())

    def reduced(program: Program, share: float = WARM_SHARE) -> Program:
        moved = total / c.step_count / base.size
        edited = add_host(cut_host(program, start, end), start, c.typical_op_ns)
        return warmed(c, add_activity(edited, start, moved / c.bandwidth), paused, share)

    def pinned(program: Program) -> Program:
        items = inside_items(program, start, end)
        rows = np.isin(program.act_row, found.activity)
        ns = np.where(program.act_row >= 0, size[np.maximum(program.act_row, 0)] / speed, program.act_ns)
        return move_to_own_stream(set_activity_ns(unblock(program, items), rows, np.minimum(ns, program.act_ns)), rows)

    return Found(
        f"{total / c.step_count / 1e6:.1f} MB a step go back to the host while the GPU waits",
        c.sites(tops),
        reduced,
        [
            f"{found.activity.size / c.step_count:.1f} copies a step, {dur.sum() / c.step_count / 1e6:.2f} ms, "
            f"{total / max(int(dur.sum()), 1):.1f} GB/s",
            f"the host then works {host_after / 1e6:.2f} ms without launching anything",
        ],
        "If the host needs all of the data, only the lower bound holds: pinned and asynchronous, read one step later.",
        FIX,
        cautious=pinned,
        hopeful=lambda program: reduced(program, WARMEST_SHARE),
        assumptions=[
            "the host work right after the copy consumes the copied data",
            f"{speed:.0f} GB/s for pinned copies",
        ],
    )
