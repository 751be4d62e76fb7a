"""# exposed-communication: the GPU waits for collectives with nothing else to do

## What it does
Finds time in which only a collective runs on the GPU: an all-reduce, all-gather or reduce-scatter that no computation
hides.

## Why it costs
Computation could run meanwhile. Part of the time may be waiting for a rank that came late: one rank's trace cannot tell
(see the other ranks' traces).

## How the gain is computed
Expected: half of the exposed time is hidden behind computation. Hopeful: all of it. Cautious: nothing, if it is waiting.

## When it may be wrong
The last all-reduce of backward cannot be hidden behind backward; a late rank makes every other rank's collective long.
"""

from __future__ import annotations

import numpy as np

from gapless.analyses.accounting import COMMUNICATION
from gapless.replay.program import Program
from gapless.replay.whatif import set_activity_ns
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Found, Outcome
from gapless.tables.intervals import as_ns

CODE = KIND = "exposed-communication"
MIN_SHARE = 0.03

FIX = """\
# Let gradients travel while backward goes on, in buckets that fill early:
model = DistributedDataParallel(model, gradient_as_bucket_view=True, bucket_cap_mb=25, static_graph=True)
# FSDP: prefetch the next layer's weights
fully_shard(model, reshard_after_forward=False)      # if memory allows
# Accumulating gradients? Communicate only in the last micro-step:
with model.no_sync():
    loss.backward()
"""


def check(c: Context) -> Outcome:
    """Is a noticeable part of the step spent in collectives alone?"""
    device = c.s.busiest
    if device is None:
        return Clean()
    account = c.s.devices[device]
    alone = account.line[2] == COMMUNICATION
    exposed = int((account.line[1] - account.line[0])[alone].sum())
    if exposed < MIN_SHARE * max(account.wall_ns, 1):
        return Clean()
    collective = np.array([i.family == "collective" for i in c.identities] or [False])[c.activity_code]
    rows = np.flatnonzero(
        collective & np.isin(c.s.steps.step_of_activity, c.counted_steps) & (c.s.links.launch_of >= 0)
    )
    total = int(as_ns(c.s.raw.activities["dur_ns"].to_numpy())[rows].sum())
    share = min(
        exposed
        / max(account.wall_ns, 1)
        * account.wall_ns
        / max(total / c.step_count * max(len(account.pieces[0]), 1), 1),
        1.0,
    )
    forest_rows = c.s.links.forest.of_call[c.s.links.launch_of[rows]]

    def hidden(program: Program, part: float) -> Program:
        families = np.array(c.families(program) or [""])
        mine = families == "collective" if program.act_ns.size else np.zeros(0, dtype=bool)
        return set_activity_ns(program, mine, program.act_ns * (1 - part * share))

    return Found(
        f"{exposed / max(account.wall_ns, 1):.0%} of the step is communication that nothing hides",
        c.sites(forest_rows, as_ns(c.s.raw.activities["dur_ns"].to_numpy())[rows]),
        lambda program: hidden(program, 0.5),
        [
            f"{rows.size / c.step_count:.0f} collectives a step, {total / c.step_count / 1e6:.2f} ms, "
            f"{exposed / max(account.wall_ns, 1):.0%} of the window with nothing else running",
        ],
        "One rank cannot tell transfer from waiting for a late rank: compare the ranks' traces first.",
        FIX,
        cautious=lambda program: program,
        hopeful=lambda program: hidden(program, 1.0),
        assumptions=["half of the exposed time can be hidden"],
    )
