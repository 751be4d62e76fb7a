"""Where do steps begin and end, which ones count, and to which does each launch belong?

A step is a `ProfilerStep#N` annotation, else an annotation or op that the user's pattern names, else the whole window.
A call belongs to the last step whose marker starts at or before it (on any thread); GPU work belongs to the step that
launched it. What the host does after the last marker ends belongs to no step.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from gapless.analyses.links import Links
from gapless.ingest.raw import RawTrace
from gapless.model.errors import UsageError
from gapless.tables.coding import categories, codes, matches
from gapless.tables.intervals import Int, as_ns

WHOLE_WINDOW = "whole window"
COLD_RATIO = 1.5
"""A first step whose host work exceeds the median of the others by this factor is cold (H200: 1.0 to 1.2 when warm)."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps in time order. `end` is the marker's end, `until` the next marker's start (the last step: its end).

    `used` marks the steps whose numbers count; `why` says why a step does not. `step_of_call` and `step_of_activity`
    are step indices, -1 for none. `marker` says what a step is; `thread` is the marker's thread, None without markers.
    """

    marker: str
    thread: int | None
    names: list[str]
    start: Int
    end: Int
    until: Int
    step_of_call: Int
    step_of_activity: Int
    used: np.ndarray[tuple[int], np.dtype[np.bool_]]
    why: list[str]

    @property
    def count(self) -> int:
        """How many steps there are."""
        return len(self.names)

    def used_indices(self) -> list[int]:
        """Indices of the steps that count."""
        return np.flatnonzero(self.used).tolist()


def find_steps(raw: RawTrace, links: Links, pattern: str | None = None) -> Steps:
    """Find the steps; all are marked used until `mark_cold` says otherwise.

    Raises UsageError if `pattern` is no regular expression or matches nothing.
    """
    rows = _marker_rows(raw, pattern)
    start_all, dur_all = as_ns(raw.ops["start_ns"].to_numpy()), as_ns(raw.ops["dur_ns"].to_numpy())
    thread: int | None = None
    if rows.size:
        threads = as_ns(raw.ops["thread"].to_numpy())[rows]
        thread = int(np.bincount(threads).argmax())
        rows = rows[threads == thread]
        rows = rows[np.argsort(start_all[rows], kind="stable")]
        rows = _outermost(rows, start_all, start_all + dur_all)
        texts = categories(raw.ops["name"])
        names = [texts[c] for c in codes(raw.ops["name"])[rows].tolist()]
        start, end = start_all[rows], start_all[rows] + dur_all[rows]
        marker = "ProfilerStep" if pattern is None else f"/{pattern}/"
    else:
        low, high = window_of(raw)
        names, marker = [WHOLE_WINDOW], WHOLE_WINDOW
        start, end = as_ns([low]), as_ns([high])
    until = np.append(start[1:], end[-1:])
    call_start = as_ns(raw.calls["start_ns"].to_numpy())
    step_of_call = np.searchsorted(start, call_start, side="right") - 1
    if thread is not None:
        step_of_call = np.where(call_start >= end[-1], -1, step_of_call)
    launch = links.launch_of
    step_of_activity = np.append(step_of_call, -1)[launch]  # row -1, no launch, is the one appended
    if thread is None:
        # Without markers everything recorded is the one step, backlog included.
        step_of_activity = np.zeros_like(step_of_activity)
    used = np.ones(len(names), dtype=bool)
    return Steps(marker, thread, names, start, end, until, step_of_call, step_of_activity, used, [""] * len(names))


def _marker_rows(raw: RawTrace, pattern: str | None) -> Int:
    if pattern is None:
        return np.flatnonzero(matches(raw.ops["name"], lambda name: name.startswith("ProfilerStep#")))
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise UsageError(
            f"--step-marker {pattern!r}: not a regular expression ({error}); quote special characters"
        ) from error
    rows = np.flatnonzero(matches(raw.ops["name"], lambda name: compiled.search(name) is not None))
    if rows.size == 0:
        raise UsageError(
            f"--step-marker {pattern!r}: no annotation or op of this trace matches, so no step can be found; "
            "`gapless query TRACE \"select distinct name from ops where kind = 'annotation'\"` lists the names"
        )
    return rows


def _outermost(rows: Int, start: Int, end: Int) -> Int:
    """Drop markers that begin inside an earlier one (nested matches of a pattern)."""
    kept, reach = [], None
    for row in rows.tolist():
        if reach is None or start[row] >= reach:
            kept.append(row)
            reach = end[row]
    return as_ns(kept)


def window_of(raw: RawTrace) -> tuple[int, int]:
    """First start and last end of everything that ran (host and GPU); (0, 0) for an empty trace."""
    low, high = [], []
    for frame in (raw.ops, raw.calls, raw.activities, raw.frames):
        if frame.height:
            low.append(int(frame["start_ns"].min()))  # type: ignore[arg-type]
            high.append(int((frame["start_ns"] + frame["dur_ns"]).max()))  # type: ignore[arg-type]
    return (min(low), max(high)) if low else (0, 0)


def mark_cold(steps: Steps, host_work: Int, compile_ns: Int, loading_ns: Int) -> Steps:
    """Which steps are not steady, and why?

    `host_work`, `compile_ns` and `loading_ns` are nanoseconds per step on the stepping threads. A step is cold if it
    compiles or autotunes while most others do not, loads modules while others do not, or is the first and its host work
    exceeds `COLD_RATIO` times the median of the others. One step, or all cold: all stay used, the reason is kept.
    """
    count = steps.count
    why = [""] * count
    if count >= 2:
        most_compile = np.count_nonzero(compile_ns > 0) > count / 2
        one_loads = np.count_nonzero(loading_ns) == 1
        for index in range(count):
            loads, first = one_loads and loading_ns[index] > 0, index == 0
            # Medians are for the one or two steps that need them: a pattern may name a hundred thousand steps.
            others = float(np.median(np.delete(host_work, index))) if loads or first else 0.0
            if compile_ns[index] > 0 and not most_compile:
                why[index] = f"compiles or autotunes for {compile_ns[index] / 1e6:.1f} ms"
            elif loads and loading_ns[index] > 0.1 * max(int(others), 1):
                why[index] = f"loads kernels or modules for {loading_ns[index] / 1e6:.1f} ms"
            elif first and host_work[0] > COLD_RATIO * others:
                why[index] = f"first step: host work {host_work[0] / 1e6:.2f} ms, others {others / 1e6:.2f} ms"
    used = np.array([not reason for reason in why], dtype=bool)
    if not used[: max(count - 1, 1)].any():
        used[:] = True
    if count >= 2:
        used[-1] = False
        why[-1] = why[-1] or "closes the window of the step before it"
    return replace(steps, used=used, why=why)


def pick_step(steps: Steps, number: int) -> Steps:
    """The steps with only one of them used: the one whose name ends in `#number`, else the number-th, counted from 0.

    Raises UsageError if there is none.
    """
    by_name = [i for i, name in enumerate(steps.names) if name.rpartition("#")[2] == str(number)]
    index = by_name[0] if by_name else number
    if not 0 <= index < steps.count:
        raise UsageError(f"--step {number}: no such step; this trace has {', '.join(steps.names)}")
    used = np.arange(steps.count) == index
    return replace(steps, used=used, why=["" if here else f"--step {number} was asked for" for here in used])


def steps_table(steps: Steps) -> pl.DataFrame:
    """The steps as a table: step, name, start_ns, end_ns, until_ns, used, why."""
    return pl.DataFrame(
        {
            "step": np.arange(steps.count),
            "name": steps.names,
            "start_ns": steps.start,
            "end_ns": steps.end,
            "until_ns": steps.until,
            "used": steps.used,
            "why": steps.why,
        }
    )
