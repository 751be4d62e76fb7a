"""# gc-pause: Python collects garbage inside the step

## What it does
Finds garbage collections that the trace proves: `gc.collect` or `Python GC` frames (`with_stack`, also in a window with
stacks beside the trace), or the collections that `gapless run` writes into the metadata. One in many steps is a finding
too, because it will come again.

## Why it costs
A collection walks all live containers while nothing is launched: 1 to 400 ms in jobs with many objects, at other times
on each rank, so that ranks also wait for each other.

## How the gain is computed
The collections go; if only some steps hold one, their mean per step is added to the step and saved. Cautious: half.

## When it may be wrong
Without stacks and without our recorder a collection cannot be told from other host time (see `host-stall`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gapless.analyses.borrowed import Borrowed
from gapless.analyses.causes import Cause, region_of_frame
from gapless.replay.engine import run
from gapless.replay.program import Program
from gapless.replay.whatif import cut_host
from gapless.rules._beside import frame_in_stretch
from gapless.rules._stalls import WARM_SHARE, WARMEST_SHARE, by_place, half_of, stalls, warmed
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Found, Outcome, Unknown
from gapless.tables.segments import Line, split_by

CODE = KIND = "gc-pause"
MIN_SHARE = 0.005

FIX = """\
import gc
gc.collect(); gc.freeze()          # once after warm-up: what lives now is never walked again
gc.disable()                       # no collection at a random moment
for step, batch in enumerate(loader):
    ...
    if step % 500 == 0:
        gc.collect()               # all ranks at the same step
# and remove gc.collect() from the step itself
"""


DOUBT = (
    "If objects are created faster than reference counting frees them (cycles), collections are needed now and then."
)
ASSUMED = ["collections can be moved to rare, chosen moments"]


def check(c: Context) -> Outcome:
    """Are there collections in the counted steps?"""
    s = c.s
    if s.states.main < 0:
        return Clean()
    steps = np.array(c.counted_steps)
    _, query, low, high = split_by(_collections(c), s.steps.start[steps], s.steps.end[steps])
    per_step = np.zeros(steps.size, dtype=np.int64)
    np.add.at(per_step, query, high - low)
    total = int(per_step.sum())
    if total == 0:
        if s.raw.frames.height or (s.raw.meta.recorder or {}).get("gc"):
            return Clean()
        if c.stacks is not None:
            return _beside(c, c.stacks)
        return Unknown(
            "collections show only in stacks or in our recorder's metadata",
            "record with `gapless run`, or with with_stack=True",
        )
    wall = float((s.steps.end - s.steps.start)[steps].sum())
    if total < MIN_SHARE * wall:
        return Clean()
    in_base = _gc_pieces(c, c.program)
    held = float(c.program.piece_ns[in_base].sum())
    mean = total / steps.size
    rows = _gc_rows(c)
    return Found(
        f"Python collects garbage for {mean / 1e6:.1f} ms a step",
        c.sites(rows),
        lambda program: warmed(c, _without(c, program, 0.0), held, WARM_SHARE),
        [
            f"{total / 1e6:.1f} ms in {int((per_step > 0).sum())} of {steps.size} steps, the longest "
            f"{int(per_step.max()) / 1e6:.1f} ms",
        ],
        DOUBT,
        FIX,
        cautious=lambda program: _without(c, program, 0.5),
        hopeful=lambda program: warmed(c, _without(c, program, 0.0), held, WARMEST_SHARE),
        outside_ns=max(mean - held, 0.0),
        assumptions=ASSUMED,
    )


def _beside(c: Context, beside: Borrowed) -> Outcome:
    """Pauses of the trace that a collection fills in the window with stacks."""
    found = stalls(c, MIN_SHARE * run(c.program, c.p.machine).period_ns)
    spans = zip(found.start.tolist(), found.end.tolist(), strict=True)
    frames = [frame_in_stretch(c.s, beside, start, end) for start, end in spans]
    here = np.array([f is not None and region_of_frame(f.name) is Cause.GC for f in frames], dtype=bool)
    if not here.any():
        return Clean()
    found, total = found.only(here), float(found.ns[here].sum())
    sites = by_place([f.place for f in frames if f is not None and region_of_frame(f.name) is Cause.GC], found)
    return Found(
        f"Python collects garbage for {total / 1e6:.1f} ms a step",
        sites,
        lambda program: warmed(c, cut_host(program, found.start, found.end), total, WARM_SHARE),
        [f"{ns / 1e6:.1f} ms without an event, where the window with stacks shows a collection" for ns in found.ns.tolist()[:5]],
        DOUBT,
        FIX,
        cautious=lambda program: half_of(program, found),
        hopeful=lambda program: warmed(c, cut_host(program, found.start, found.end), total, WARMEST_SHARE),
        assumptions=ASSUMED,
    )  # fmt: skip


def _collections(c: Context) -> Line:
    """When the main thread collected."""
    start, end, cause = c.s.states.causes[c.s.states.main]
    keep = cause == int(Cause.GC)
    return start[keep], end[keep], cause[keep]


def _gc_pieces(c: Context, program: Program) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    s = c.s
    rows = program.piece_row
    by_row = np.where(rows >= 0, s.states.cause_of_row[np.maximum(rows, 0)] == int(Cause.GC), False)
    _, query, low, high = split_by(_collections(c), program.piece_start, program.piece_end)
    inside = np.zeros(rows.size, dtype=np.int64)
    np.add.at(inside, query, high - low)
    return np.asarray(by_row | (inside * 2 > program.piece_end - program.piece_start))


def _without(c: Context, program: Program, share: float) -> Program:
    pieces = _gc_pieces(c, program)
    return replace(program, piece_ns=np.where(pieces, program.piece_ns * share, program.piece_ns))


def _gc_rows(c: Context) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    forest = c.s.links.forest
    rows = np.flatnonzero((c.s.states.cause_of_row == int(Cause.GC)) & c.counted_rows & (forest.source == 1))
    return c.outermost(rows) if rows.size else rows
