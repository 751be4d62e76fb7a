"""Where did every nanosecond of a device's and of a host thread's window go? Exact, with one owner an instant.

Device: each used step k owns `[b_k, b_{k+1})`, b_k being the start of the first activity that step k launched on the
device; so a steady loop is cut at the same phase of every step, and the host's running ahead distorts no share. The
last recorded step only closes the window of the step before it. With one step: from the marker's start to the later of
its end and the end of its last activity. State of an instant: compute > communication > copy > unrecorded > idle.
Host thread: each used step's marker start to the next marker's start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gapless.analyses.causes import Cause
from gapless.analyses.gaps import GAP_CAUSES, split_gaps
from gapless.analyses.host_states import AUTOGRAD, MAIN, HostStates
from gapless.analyses.kernel_names import decode
from gapless.analyses.launches import Launches
from gapless.analyses.links import Links
from gapless.analyses.steps import Steps
from gapless.analyses.syncs import Syncs
from gapless.ingest.raw import RawTrace
from gapless.tables.coding import categories, matches
from gapless.tables.intervals import Int, Set, as_ns, merge, subtract, total
from gapless.tables.segments import Line, fill, overlay, paint, split, stack

COMPUTE, COMMUNICATION, COPY, UNRECORDED, IDLE = range(5)
STATES = ("compute", "communication", "copy", "unrecorded", "idle")


@dataclass(frozen=True, slots=True)
class DeviceAccounting:
    """One device's window. `pieces` are the used steps' intervals (start, end, step); `line` labels every instant of
    them with a state; `gaps` are the rows of `split_gaps`; `parts` has rows state, cause (null unless idle), ns."""

    device: int
    pieces: Line
    line: Line
    gaps: pl.DataFrame
    parts: pl.DataFrame
    wall_ns: int


def device_pieces(raw: RawTrace, steps: Steps, device: int) -> Line:
    """The used steps' intervals on one device: (start, end, step)."""
    activities = raw.activities
    here = as_ns(activities["device"].to_numpy()) == device
    start = as_ns(activities["start_ns"].to_numpy())
    end = start + as_ns(activities["dur_ns"].to_numpy())
    step = steps.step_of_activity
    if steps.count == 1:
        mine = here & (step == 0)
        low = int(steps.start[0])
        if mine.any() and steps.thread is None:
            low = min(low, int(start[mine].min()))
        high = max(int(steps.end[0]), int(end[mine].max()) if mine.any() else low)
        return as_ns([low]), as_ns([high]), as_ns([0])
    bounds = np.full(steps.count, np.iinfo(np.int64).max, dtype=np.int64)
    rows = np.flatnonzero(here & (step >= 0))
    np.minimum.at(bounds, step[rows], start[rows])
    missing = bounds == np.iinfo(np.int64).max
    bounds[missing] = steps.start[missing]
    final = max(int(steps.end[-1]), int(end[here & (step == steps.count - 1)].max(initial=0)))
    bounds = np.maximum.accumulate(np.append(bounds, final))
    used = np.flatnonzero(steps.used)
    begin, finish = bounds[used], bounds[used + 1]
    keep = finish > begin
    return begin[keep], finish[keep], used[keep].astype(np.int64)


def collective_mask(raw: RawTrace) -> NDArray[np.bool_]:
    """Which activities are collectives' kernels, by name?"""
    return matches(raw.activities["name"], lambda name: decode(name).family == "collective")


def account_device(
    raw: RawTrace, links: Links, steps: Steps, states: HostStates, launches: Launches, syncs: Syncs, device: int,
    lost: Set,
) -> DeviceAccounting:  # fmt: skip
    """Account for one device; `lost` are stretches whose records are known to be missing."""
    pieces = device_pieces(raw, steps, device)
    activities = raw.activities
    here = as_ns(activities["device"].to_numpy()) == device
    start = as_ns(activities["start_ns"].to_numpy())
    end = start + as_ns(activities["dur_ns"].to_numpy())
    copy = matches(activities["kind"], lambda kind: kind == "memcpy")
    comm = collective_mask(raw)
    layers = [
        (merge(start[here & ~copy & ~comm], end[here & ~copy & ~comm]), COMPUTE),
        (merge(start[here & comm], end[here & comm]), COMMUNICATION),
        (merge(start[here & copy], end[here & copy]), COPY),
        (_unrecorded(syncs, device, lost), UNRECORDED),
    ]
    low = int(pieces[0].min()) if pieces[0].size else 0
    high = int(pieces[1].max()) if pieces[1].size else 0
    whole = (as_ns([low]), as_ns([high]))
    line = paint([*layers, (whole, IDLE)], low, high)
    piece, p_start, p_end = split(line, pieces[0], pieces[1])
    line = (p_start, p_end, line[2][piece])
    idle = line[2] == IDLE
    gaps = split_gaps(raw, links, states, launches, device, (line[0][idle], line[1][idle]))
    line, gaps = _reclaim_unrecorded(line, gaps)
    parts = _parts(line, gaps)
    return DeviceAccounting(device, pieces, line, gaps, parts, total((pieces[0], pieces[1])))


def _unrecorded(syncs: Syncs, device: int, lost: Set) -> Set:
    none = np.zeros(0, dtype=np.int64)
    untraced = syncs.untraced_sets.get(device, (none, none))
    return merge(np.concatenate([lost[0], untraced[0]]), np.concatenate([lost[1], untraced[1]]))


def _reclaim_unrecorded(line: Line, gaps: pl.DataFrame) -> tuple[Line, pl.DataFrame]:
    """Gap pieces of cause `unrecorded` are a state of the device, not idleness with a cause."""
    code = GAP_CAUSES.index("unrecorded")
    rows = gaps.filter(pl.col("cause") == code)
    if rows.height == 0:
        return line, gaps
    start, end = as_ns(rows["start_ns"].to_numpy()), as_ns(rows["end_ns"].to_numpy())
    order = np.argsort(start, kind="stable")
    top: Line = (start[order], end[order], np.full(start.size, UNRECORDED, dtype=np.int64))
    return overlay(top, line), gaps.filter(pl.col("cause") != code)


def _parts(line: Line, gaps: pl.DataFrame) -> pl.DataFrame:
    spent = np.zeros(len(STATES), dtype=np.int64)
    np.add.at(spent, line[2], line[1] - line[0])
    rows: list[tuple[str, str | None, int]] = [
        (STATES[state], None, int(spent[state])) for state in (COMPUTE, COMMUNICATION, COPY, UNRECORDED) if spent[state]
    ]
    by_cause = (
        gaps.group_by("cause")
        .agg(ns=(pl.col("end_ns") - pl.col("start_ns")).sum())
        .sort("ns", "cause", descending=[True, False])
    )
    rows += [("idle", GAP_CAUSES[cause], ns) for cause, ns in by_cause.iter_rows()]
    schema = {"state": pl.String, "cause": pl.String, "ns": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


HOST_STATES = ("work", "wait", "launch", "queue-full", "profiler", "outside")
_WAITING_FOR_AUTOGRAD = len(Cause)
_OUTSIDE = len(Cause) + 1


def host_pieces(steps: Steps) -> Line:
    """The used steps' intervals on the host: marker start to the next marker's start, (start, end, step)."""
    used = np.flatnonzero(steps.used)
    return steps.start[used], steps.until[used], used.astype(np.int64)


def host_line(states: HostStates, thread: int, low: int, high: int) -> Line:
    """What a thread did at each instant of `[low, high)`: causes, plus waiting for the autograd thread (main thread
    only) and being outside any recorded event (every other thread)."""
    line = states.causes[thread]
    if states.roles[thread] == MAIN:
        partners = [states.causes[t] for t, role in enumerate(states.roles) if role == AUTOGRAD]
        if partners:
            acts = line[2] != int(Cause.PYTHON)
            busy = merge(*(np.concatenate([one[side] for one in partners]) for side in (0, 1)))
            waiting: Line = (*busy, np.full(busy[0].size, _WAITING_FOR_AUTOGRAD, dtype=np.int64))
            line = stack([(line[0][acts], line[1][acts], line[2][acts]), waiting, line])
        return fill(line, low, high, int(Cause.PYTHON))
    return fill(line, low, high, _OUTSIDE)


def account_host(raw: RawTrace, states: HostStates, steps: Steps, thread: int, sync_names: Line) -> pl.DataFrame:
    """One thread's window as rows state, detail, ns; they sum to the wall exactly.

    `sync_names` is a line labelling this thread's blocking calls with codes of `raw.calls['name']`.
    """
    pieces = host_pieces(steps)
    if pieces[0].size == 0:
        return pl.DataFrame(schema={"state": pl.String, "detail": pl.String, "ns": pl.Int64})
    low, high = int(pieces[0].min()), int(pieces[1].max())
    line = host_line(states, thread, low, high)
    piece, start, end = split(line, pieces[0], pieces[1])
    line = (start, end, line[2][piece])
    spent: dict[tuple[str, str], int] = {}
    names = categories(raw.calls["name"]) if raw.calls.height else []
    for code in np.unique(line[2]).tolist():
        rows = line[2] == code
        ns = int((line[1][rows] - line[0][rows]).sum())
        if code == int(Cause.SYNC):
            for name, part in _by_call(line, rows, sync_names, names).items():
                spent["wait", name] = part
            continue
        spent[_host_state(code)] = ns
    table = [(state, detail, ns) for (state, detail), ns in spent.items() if ns]
    frame = pl.DataFrame(table, schema={"state": pl.String, "detail": pl.String, "ns": pl.Int64}, orient="row")
    return frame.sort("ns", "state", "detail", descending=[True, False, False])


def _host_state(code: int) -> tuple[str, str]:
    if code == _WAITING_FOR_AUTOGRAD:
        return "wait", "autograd thread"
    if code == _OUTSIDE:
        return "outside", ""
    cause = Cause(code)
    if cause in (Cause.LAUNCH, Cause.GRAPH_LAUNCH):
        return "launch", cause.label
    if cause is Cause.QUEUE_FULL:
        return "queue-full", "launch queue"
    if cause is Cause.PROFILER:
        return "profiler", "recorder"
    return "work", cause.label


def _by_call(line: Line, rows: NDArray[np.bool_], sync_names: Line, names: list[str]) -> dict[str, int]:
    waits: Set = (line[0][rows], line[1][rows])
    piece, start, end = split(sync_names, *waits)
    out: dict[str, int] = {}
    label: Int = sync_names[2][piece]
    for code in np.unique(label).tolist():
        mine = label == code
        out[names[code]] = int((end[mine] - start[mine]).sum())
    rest = total(subtract(waits, merge(start, end)))
    if rest:
        out["blocking call"] = rest
    return out


def usual_step_ns(pieces: Line) -> int:
    """Median length of the used steps' intervals."""
    return int(np.median(pieces[1] - pieces[0])) if pieces[0].size else 0
