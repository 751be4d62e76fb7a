"""# host-stall: the host does something long that is not PyTorch

## What it does
Finds long stretches of every step in which the main thread runs neither an operator nor a CUDA call: sleeping, polling a
queue, NumPy or pandas work, logging, a lock held by another thread.

## Why it costs
The GPU runs out of queued work and idles until the host comes back.

## How the gain is computed
The stretches go; after very long ones (20 ms) the dispatch that follows runs slower, and recovers. Cautious: half of
each. If the GPU is the bound anyway, hiding them brings nothing, and the replay says
so.

## When it may be wrong
A stretch present in one recorded step of several is left out: it may be a one-off. With one recorded step nothing can be
said. Collections of garbage look the same where no stacks are recorded (see `gc-pause`); with a window with stacks beside
the trace the frame is named from there, and collections are left to `gc-pause`.
"""

from __future__ import annotations

import numpy as np

from gapless.analyses.causes import Cause, region_of_frame
from gapless.analyses.host import FRAME
from gapless.analyses.places import Place
from gapless.replay.engine import run
from gapless.replay.program import serial_line
from gapless.replay.whatif import cut_host
from gapless.rules._beside import Frame, frame_in_stretch
from gapless.rules._stalls import WARM_SHARE, WARMEST_SHARE, Stalls, by_place, half_of, stalls, warmed
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Found, Outcome, Unknown
from gapless.tables.segments import fill, split

CODE = KIND = "host-stall"

FIX = """\
# Find out what runs there (record once with stacks: gapless run --stacks train.py), then move it off the step:
#   time.sleep(...) or polling        -> a queue that a background thread fills
#   NumPy, pandas, metrics, logging   -> every N steps, or in a thread or process of their own
#   gc.collect()                      -> remove; or gc.freeze() after warm-up and collect every few hundred steps
import queue, threading
work = queue.Queue(maxsize=8)
threading.Thread(target=lambda: [handle(item) for item in iter(work.get, None)], daemon=True).start()
work.put(result)                      # the step goes on at once
"""


def check(c: Context) -> Outcome:
    """Are there long event-free stretches in every step?"""
    period = run(c.program, c.p.machine).period_ns
    found = stalls(c, max(float(c.thresholds.stall_ns), c.thresholds.stall_share * period))
    if found.start.size == 0:
        return Clean()
    if c.program.aligned_steps < 2 and c.step_count < 2:
        return Unknown(
            f"{int(found.ns[0]) / 1e6:.1f} ms pass without an event {_where(c, found, 0, _doing(c, found, 0))}, but one "
            "recorded step cannot show whether that recurs",
            "record three or more steps: schedule(wait=1, warmup=2, active=3)",
        )
    keep = np.array([_recurs(c, int(ns)) for ns in found.ns.tolist()], dtype=bool)
    if not keep.any():
        return Clean()
    found = found.only(keep)
    doing = [_doing(c, found, i) for i in range(found.ns.size)]
    other = np.array([frame is None or region_of_frame(frame.name) is not Cause.GC for frame in doing], dtype=bool)
    if not other.any():
        return Clean()
    found, doing = found.only(other), [frame for frame, kept in zip(doing, other, strict=True) if kept]
    total = float(found.ns.sum())
    names = {frame.name if frame is not None else None for frame in doing}
    what = next(iter(names)) if len(names) == 1 else None
    return Found(
        f"The host spends {total / 1e6:.1f} ms of each step in {what or 'something that is not PyTorch'}",
        by_place([_place(c, found, i, frame) for i, frame in enumerate(doing)], found),
        lambda program: warmed(c, cut_host(program, found.start, found.end), total, WARM_SHARE),
        [f"{int(ns) / 1e6:.2f} ms {_where(c, found, i, doing[i])}" for i, ns in enumerate(found.ns.tolist()[:5])],
        "A collection of garbage, a lock, or the operating system can look like this; stacks tell which.",
        FIX,
        cautious=lambda program: half_of(program, found),
        hopeful=lambda program: warmed(c, cut_host(program, found.start, found.end), total, WARMEST_SHARE),
        assumptions=["the work can leave the step or run while the GPU is busy",
                     "after a pause of 20 ms and more, what follows runs slower, and recovers too"],
    )  # fmt: skip


def _recurs(c: Context, ns: int) -> bool:
    """Do at least half of the counted steps hold an event-free stretch of half this length or more?"""
    line = serial_line(c.s)
    forest = c.s.links.forest
    hits = 0
    for step in c.counted_steps:
        low, high = int(c.s.steps.start[step]), int(c.s.steps.end[step])
        inside = fill(line, low, high, -1)
        piece, start, end = split(inside, np.array([low]), np.array([high]))
        row = inside[2][piece]
        free = (row < 0) | (forest.source[np.maximum(row, 0)] < 2)
        change = np.concatenate([[True], free[1:] != free[:-1]]) if free.size else np.zeros(0, dtype=bool)
        runs = np.bincount(np.cumsum(change) - 1, weights=(end - start) * free) if free.size else np.zeros(1)
        hits += bool(runs.max() >= 0.5 * ns)
    return hits * 2 >= len(c.counted_steps)


def _doing(c: Context, found: Stalls, i: int) -> Frame | None:
    """The frame that fills a stretch: this trace's own, or that of the window with stacks beside it."""
    row = int(found.row[i])
    if row >= 0 and c.s.links.forest.source[row] == FRAME:
        return Frame(c.name_of(row), c.places.place(row))
    if c.stacks is None:
        return None
    return frame_in_stretch(c.s, c.stacks, int(found.start[i]), int(found.end[i]))


def _place(c: Context, found: Stalls, i: int, frame: Frame | None) -> Place:
    return frame.place if frame is not None else c.places.place(max(int(found.row[i]), 0))


def _where(c: Context, found: Stalls, i: int, doing: Frame | None) -> str:
    if doing is not None:
        return f"in {doing.name}"
    before, after = int(found.before[i]), int(found.after[i])
    parts = []
    if before >= 0:
        parts.append(f"after {c.name_of(before)}")
    if after >= 0:
        parts.append(f"before {c.name_of(after)}")
    return " ".join(parts) or "with no event beside it"
