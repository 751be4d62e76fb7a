"""# explicit-sync: the program stops for the GPU

## What it does
Finds `torch.cuda.synchronize()`, `stream.synchronize()` and `event.synchronize()` that the program itself calls in
every step. The recorder's own device synchronisation at the end of the window is left out.

## Why it costs
The time the host is blocked is only part of it. While the host waits it prepares nothing, so the GPU runs dry and idles
until the next kernel has been dispatched: the call also costs the code round it and the lead that the host had.

## How the gain is computed
The calls are taken out of the replayed program together with the Python round them beyond the usual gap between two
ops. Cautious: only the calls. What follows is replayed, so a wait that merely moves to the next blocking call brings
nothing.

## When it may be wrong
Timing code needs the call; a call that protects a buffer which another thread or library reads must become an event
wait instead of vanishing.
"""

from __future__ import annotations

import numpy as np

from gapless.analyses.blocking import Origin
from gapless.analyses.call_names import CallClass
from gapless.replay.program import Program
from gapless.replay.whatif import add_host, cut_host
from gapless.rules._python import python_round
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Edit, Found, Outcome
from gapless.tables.intervals import Int, as_ns

CODE = KIND = "explicit-sync"
MOST_PYTHON_NS = 60_000
"""Python on either side of a call that can be due to it (torch's wrapper takes 10 to 20 us while recorded)."""

FIX = """\
# Remove the call. Work on one stream is ordered anyway, and .item(), .cpu() and saving wait by themselves:
#   y = layer(x)
#   torch.cuda.synchronize()      <- delete

# For timing, record events and read them after the loop (nothing waits inside it):
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
start.record()
y = layer(x)
end.record()
...                                # the rest of the step, the rest of the loop
end.synchronize()                  # once, at the end
print(start.elapsed_time(end), "ms")

# To order two streams, let the stream wait, not the host:
torch.cuda.current_stream().wait_stream(side_stream)
"""


def check(c: Context) -> Outcome:
    """Are there synchronisations that the program calls itself?"""
    s = c.s
    kinds = (int(CallClass.SYNC_DEVICE), int(CallClass.SYNC_STREAM), int(CallClass.SYNC_EVENT))
    calls = s.syncs.call[c.user_syncs]
    calls = calls[(s.origin[calls] == int(Origin.EXPLICIT)) & np.isin(s.links.call_class[calls], kinds)]
    if calls.size == 0:
        return Clean()
    rows = s.links.forest.of_call[calls]
    dur = as_ns(s.raw.calls["dur_ns"].to_numpy())[calls]
    base = c.in_base(rows)
    if base.size == 0:
        return Clean()
    count = calls.size / c.step_count
    idle = int(s.syncs.idle_after[c.user_syncs][np.isin(s.syncs.call[c.user_syncs], calls)].sum())
    names = sorted({c.name_of(int(r)) for r in rows})
    evidence = [
        f"{count:.1f} calls of {', '.join(names)} a step, {dur.sum() / c.step_count / 1e6:.3f} ms blocked in them",
        f"the GPU idles {idle / c.step_count / 1e6:.3f} ms a step between the end of the awaited work and the next kernel",
    ]
    return Found(
        f"The program stops for the GPU {count:.0f} time{'s' if count > 1.5 else ''} a step",
        c.sites(rows),
        _without(c, base),
        evidence,
        "If the call times something or guards a buffer that another thread or library reads, it must become an event "
        "wait; if the host needs a value at once, the wait moves to where the value is read.",
        FIX,
        cautious=lambda program: cut_host(program, s.links.forest.start[base], s.links.forest.end[base]),
        assumptions=["the Python round a call is there because of it, beyond the usual gap between two ops"],
    )


def _without(c: Context, rows: Int) -> Edit:
    """Cut each call and the Python next to it, and give back one usual gap."""
    start, end = python_round(c, rows, MOST_PYTHON_NS)

    def edit(program: Program) -> Program:
        return add_host(cut_host(program, start, end), start, c.typical_gap_ns)

    return edit
