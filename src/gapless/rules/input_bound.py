"""# input-bound: the step waits for the next batch

## What it does
Finds steps that spend a noticeable share of their time in the DataLoader: making the batch themselves (no workers), or
waiting for workers that cannot keep up.

## Why it costs
While the main thread makes or awaits a batch it launches nothing, and the GPU idles as soon as its queue is empty.

## How the gain is computed
Without workers: loading leaves the main thread and w workers share it, so the step is the longer of the rest and the
load divided by w; expected w = 8, cautious 4, hopeful 16. With workers: how fast they could deliver is in no trace;
expected is twice as fast, cautious a third faster, hopeful never waited for.

## When it may be wrong
Workers share the machine's cores and disk; if those are full, more workers bring nothing.
"""

from __future__ import annotations

import numpy as np

from gapless.analyses.host import ANNOTATION
from gapless.replay.engine import run
from gapless.replay.whatif import cut_host, host_ns
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Found, Outcome

CODE = KIND = "input-bound"
MIN_SHARE = 0.03
"""Loading below 3 % of the step is inside the noise of host-bound steps."""

SINGLE_FIX = """\
# Let worker processes make the batches while the GPU works:
loader = torch.utils.data.DataLoader(
    dataset, batch_size=..., num_workers=8, pin_memory=True, persistent_workers=True, prefetch_factor=4,
)
for batch in loader:
    x = batch.to("cuda", non_blocking=True)
"""
MULTI_FIX = """\
# The workers cannot keep up: more of them, deeper prefetch, or cheaper samples (decode and augment less per sample,
# store data decoded, move augmentation to the GPU):
loader = torch.utils.data.DataLoader(
    dataset, batch_size=..., num_workers=2 * old_workers, prefetch_factor=4, persistent_workers=True, pin_memory=True,
)
"""


def check(c: Context) -> Outcome:
    """Does the step wait for data?"""
    forest = c.s.links.forest
    annotations = np.flatnonzero((forest.source == ANNOTATION) & c.counted_rows)
    rows = np.array(
        [r for r in annotations.tolist() if c.name_of(r).startswith("enumerate(DataLoader)")], dtype=np.int64
    )
    if rows.size == 0:
        return Clean()
    rows = c.outermost(rows)
    base = c.in_base(rows)
    if base.size == 0:
        return Clean()
    start, end = forest.start[base], forest.end[base]
    load = host_ns(c.program, start, end)
    period = run(c.program, c.p.machine).period_ns
    if load < MIN_SHARE * period:
        return Clean()
    workers = any("MultiProcessing" in c.name_of(int(row)) for row in base.tolist())
    floors = (period / 2, period / 1.3, 0.0) if workers else (load / 8, load / 4, load / 16)
    measured = float((forest.end[rows] - forest.start[rows]).sum()) / c.step_count
    return Found(
        "The step waits for its data" if workers else "The step makes its own batch: no loader workers",
        c.sites(rows),
        lambda program: cut_host(program, start, end),
        [
            f"{measured / 1e6:.2f} ms of each step ({measured / max(period, 1):.0%}) pass in the DataLoader's __next__",
            "batches come from worker processes, which do not keep up"
            if workers
            else "num_workers is 0: the batch is made on the main thread",
        ],
        "How fast workers can deliver is not in the trace: cores, disk and decoding decide it.",
        MULTI_FIX if workers else SINGLE_FIX,
        floor_ns=floors,
        assumptions=[
            "twice the delivery (a third more; never late)" if workers else "8 workers (4 to 16) share the load evenly"
        ],
    )
