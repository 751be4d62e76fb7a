"""# small-collectives: many little collectives

## What it does
Finds steps with many collectives of little data.

## Why it costs
A collective takes 10 to 30 us whatever its size, and a call on every rank; fifty small ones cost more than one of the
same bytes.

## How the gain is computed
They are replayed as one collective: the calls after the first go, and so does the time of their kernels beyond what their
bytes need. Cautious: only the host calls go.

## When it may be wrong
Collectives that depend on one another cannot be joined.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from gapless.replay.program import Program
from gapless.replay.whatif import drop_calls, set_activity_ns
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Found, Outcome
from gapless.tables.intervals import as_ns

CODE = KIND = "small-collectives"
SMALL_ELEMENTS = 1 << 18
MIN_COUNT = 8
LEAST_NS = 12_000.0

FIX = """\
# One collective for many tensors:
flat = torch.cat([t.flatten() for t in tensors])
torch.distributed.all_reduce(flat)
# metrics: keep them in one tensor and reduce it once a step; DDP: bucket_cap_mb=25 or more
"""


def check(c: Context) -> Outcome:
    """Are there many small collectives a step?"""
    table = c.s.raw.collectives
    if table.height == 0:
        return Clean()
    elements = as_ns(
        table.select(pl.max_horizontal("in_elements", "out_elements").fill_null(1 << 40)).to_series().to_numpy()
    )
    ops = as_ns(table["op"].to_numpy())[elements <= SMALL_ELEMENTS]
    collective = np.array([i.family == "collective" for i in c.identities] or [False])[c.activity_code]
    launch = c.s.links.launch_of
    op = np.where(launch >= 0, c.s.links.op_of_call[np.maximum(launch, 0)], -1) if c.s.links.op_of_call.size else launch
    rows = np.flatnonzero(collective & np.isin(op, ops) & np.isin(c.s.steps.step_of_activity, c.counted_steps))
    if rows.size < MIN_COUNT * c.step_count:
        return Clean()
    mine = np.isin(c.program.act_row, rows)
    if mine.sum() < MIN_COUNT:
        return Clean()
    items = np.zeros(c.program.item_ns.size, dtype=bool)
    items[c.program.act_item[mine]] = True
    items[int(c.program.act_item[mine][0])] = False

    def joined(program: Program) -> Program:
        return drop_calls(program, items)

    def calls_only(program: Program) -> Program:
        return set_activity_ns(program, np.isin(program.act_row, rows), np.minimum(program.act_ns, LEAST_NS))

    return Found(
        f"{rows.size / c.step_count:.0f} small collectives a step",
        c.sites(c.s.links.forest.of_call[launch[rows]], as_ns(c.s.raw.activities["dur_ns"].to_numpy())[rows]),
        joined,
        [f"{rows.size / c.step_count:.0f} collectives of at most {SMALL_ELEMENTS} elements a step"],
        "Collectives that need one another's result cannot be joined; waiting for a late rank moves to the joined one.",
        FIX,
        cautious=calls_only,
        assumptions=["the collectives do not depend on one another"],
    )
