"""# small-upload: little tensors are built on the host and sent over

## What it does
Finds uploads of at most 64 KiB from pageable memory in every step: `torch.tensor([...], device="cuda")`, a Python list
or number turned into a tensor, `.to("cuda")` of a small CPU tensor.

## Why it costs
Each takes a host allocation, the conversion of the Python values, a copy call and a wait for the stream: some 50 us for
a few bytes, and the host loses its lead each time.

## How the gain is computed
The upload, the conversion before it and the wait go; one operator that makes the values on the GPU takes its place.
Hopeful: nothing takes its place, because the tensor is made once before the loop. Cautious: only the wait goes.

## When it may be wrong
Values that only the host knows must travel; then send them together, pinned and asynchronous.
"""

from __future__ import annotations

import numpy as np

from gapless.replay.program import Program
from gapless.replay.whatif import add_activity, add_host, cut_host, inside_items, unblock
from gapless.rules._python import python_round
from gapless.rules._transfers import SMALL_BYTES, transfers
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Edit, Found, Outcome
from gapless.tables.intervals import Int

CODE = KIND = "small-upload"
COMPANIONS = ("aten::empty", "aten::lift_fresh", "aten::detach_", "detach_")
"""What `torch.tensor` runs round the copy on its way."""
SMALL_KERNEL_NS = 1_500.0
MOST_PYTHON_NS = 200_000
"""Converting a list of a few thousand numbers takes the host this long."""

FIX = """\
# Make it on the GPU instead of sending it:
p = torch.arange(n, n + 16, device="cuda")            # was torch.tensor(list(range(n, n + 16)), device="cuda")
m = torch.ones(16, dtype=torch.bool, device="cuda")   # was torch.tensor([True] * 16, device="cuda")
c = torch.full((), 0.5, device="cuda")                # was torch.tensor(0.5, device="cuda")

# or make it once, before the loop, and reuse it; or, for values that only the host knows, send one pinned tensor:
buffer = torch.empty(64, pin_memory=True)
buffer[:n].copy_(torch.as_tensor(values))
x = buffer.to("cuda", non_blocking=True)
"""


def check(c: Context) -> Outcome:
    """Are there small uploads in every step?"""
    found = transfers(c, "HtoD")
    found = found.where(found.pageable & (found.size <= SMALL_BYTES))
    if found.activity.size == 0:
        return Clean()
    base = c.in_base(np.unique(found.top_row))
    if base.size == 0:
        return Clean()
    count = found.activity.size / c.step_count
    start, end = _with_companions(c, base)
    forest = c.s.links.forest
    return Found(
        f"{count:.0f} small tensor{'s are' if count > 1.5 else ' is'} sent to the GPU in every step",
        c.sites(found.top_row),
        _made_there(c, start, end, replaced=True),
        [
            f"{count:.1f} uploads a step of {int(np.median(found.size))} bytes (median)",
            f"they and the conversions before them take the host {(end - start).sum() / 1e6:.3f} ms a step",
        ],
        "Values that only the host knows must travel; then one pinned, asynchronous copy for all of them is the fix.",
        FIX,
        cautious=lambda program: unblock(program, inside_items(program, forest.start[base], forest.end[base])),
        hopeful=_made_there(c, start, end, replaced=False),
        assumptions=["one operator on the GPU makes the same values; at best the tensor is made once, before the loop"],
    )


def _with_companions(c: Context, rows: Int) -> tuple[Int, Int]:
    """Each upload with the Python before it and the companion ops right before and after it."""
    forest = c.s.links.forest
    roots = np.flatnonzero(
        np.isin(c.places.op, np.arange(forest.source.size)) & (c.places.op == np.arange(forest.source.size))
    )
    order = c.in_base(roots[np.argsort(forest.start[roots], kind="stable")])
    place = {int(row): i for i, row in enumerate(order.tolist())}
    first, last = [], []
    for row in rows.tolist():
        i = j = place.get(row, -1)
        if i < 0:
            first.append(row)
            last.append(row)
            continue
        while i > 0 and c.name_of(int(order[i - 1])) == "aten::empty" and int(order[i - 1]) not in rows:
            i -= 1
        while j + 1 < order.size and c.name_of(int(order[j + 1])) in COMPANIONS[1:]:
            j += 1
        first.append(int(order[i]))
        last.append(int(order[j]))
    low, _ = python_round(c, np.array(first, dtype=np.int64), MOST_PYTHON_NS)
    return low, forest.end[np.array(last, dtype=np.int64)]


def _made_there(c: Context, start: Int, end: Int, *, replaced: bool) -> Edit:
    def edit(program: Program) -> Program:
        edited = cut_host(program, start, end)
        edited = add_host(edited, start, c.typical_gap_ns + (c.typical_op_ns if replaced else 0.0))
        return add_activity(edited, start, SMALL_KERNEL_NS) if replaced else edited

    return edit
