"""What was each host thread doing at each instant?

Every thread's forest is flattened to a line of innermost events; each piece has a cause (see `causes`). Overhead rows
of the recorder are laid over the thread whose call they overlap. The main thread and the autograd threads take turns
(`loss.backward()` is an empty stretch on the main thread while the autograd thread works), so a *shared* line exists
for each of them: its own ops, calls and overheads first, then the other's, then its own Python.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gapless.analyses.call_names import CallClass
from gapless.analyses.causes import (
    LOADING_OVERHEADS,
    PROFILER_OVERHEADS,
    QUEUE_OVERHEADS,
    Cause,
    cause_of_call,
    region_of_frame,
    region_of_op,
)
from gapless.analyses.host import CALL, FRAME, OP
from gapless.analyses.links import Links
from gapless.ingest.raw import RawTrace
from gapless.tables.coding import matches, per_category
from gapless.tables.intervals import Int, as_ns, merge
from gapless.tables.nesting import flatten, inherit
from gapless.tables.segments import Line, overlay, split_by, stack

MAIN, AUTOGRAD, LOADER, OTHER = "main", "autograd", "loader", "other"


@dataclass(frozen=True, slots=True)
class HostStates:
    """Lines of every thread.

    `cause_of_row`: `Cause` of each forest row when it is innermost. `innermost[thread]`: line labelled with forest
    rows. `causes[thread]`: line labelled with causes, overheads laid over it. `shared[thread]`: the same with what the
    partner thread did where this one had neither op nor call. `roles[thread]`: main, autograd, loader or other.
    """

    cause_of_row: Int
    innermost: list[Line]
    causes: list[Line]
    shared: list[Line]
    roles: list[str]
    main: int


def host_states(
    raw: RawTrace, links: Links, step_thread: int | None, gc_pauses: tuple[Int, Int], cause_of_call: Int
) -> HostStates:
    """Flatten and label every thread; `step_thread` is the thread of the step markers, if any.

    `gc_pauses` are garbage collections that the recorder's metadata proves (start, end); they own the main thread.
    `cause_of_call` is what `call_causes` says.
    """
    forest = links.forest
    cause_of_row = _causes(raw, links, cause_of_call)
    busy_row = np.isin(forest.source, (OP, CALL))
    roles = thread_roles(raw, step_thread)
    main = roles.index(MAIN) if MAIN in roles else -1
    innermost, causes, busy = [], [], []
    for thread in range(raw.threads.height):
        rows = forest.thread_rows(thread)
        line = flatten(forest.start[rows], forest.end[rows], _local(forest.parent[rows], rows.start))
        line = (line[0], line[1], line[2] + rows.start)
        innermost.append(line)
        labelled: Line = (line[0], line[1], cause_of_row[line[2]])
        if thread == main and gc_pauses[0].size:
            pause = merge(*gc_pauses)
            labelled = overlay((*pause, np.full(pause[0].size, int(Cause.GC), dtype=np.int64)), labelled)
        causes.append(labelled)
        keep = busy_row[line[2]]
        busy.append((line[0][keep], line[1][keep], cause_of_row[line[2][keep]]))
    for thread, top in _overhead_lines(raw, innermost).items():
        causes[thread] = overlay(top, causes[thread])
        busy[thread] = overlay(top, busy[thread])
    partners = [t for t, role in enumerate(roles) if role in (MAIN, AUTOGRAD)]
    together, shared = stack([busy[t] for t in partners]), list(causes)
    for t in partners:
        shared[t] = _share(causes[t], busy[t], together, causes[main])
    return HostStates(cause_of_row, innermost, causes, shared, roles, main)


def _local(parent: Int, offset: int) -> Int:
    return np.where(parent >= 0, parent - offset, -1)


def _share(own: Line, own_busy: Line, together: Line, main: Line) -> Line:
    line = overlay(overlay(own_busy, together), own)
    return line if main is own else overlay(line, main)


def call_causes(
    links: Links, blocking: NDArray[np.bool_], queue_full: NDArray[np.bool_], profilers_own: NDArray[np.bool_]
) -> Int:
    """The cause of each call: its class, but `sync` where it blocks, `queue-full` where it waited for room and
    `profiler` where the recorder made it; -1 where the surrounding region decides."""
    table = np.array([_code(cause_of_call(CallClass(i))) for i in range(len(CallClass))], dtype=np.int64)
    cause = table[links.call_class]
    cause[blocking] = int(Cause.SYNC)
    cause[queue_full] = int(Cause.QUEUE_FULL)
    cause[blocking & profilers_own] = int(Cause.PROFILER)
    return cause


def _causes(raw: RawTrace, links: Links, of_call: Int) -> Int:
    forest = links.forest
    region = np.full(forest.source.size, -1, dtype=np.int64)
    region[forest.of_op] = per_category(raw.ops["name"], lambda n: _code(region_of_op(n)))
    region[forest.of_frame] = per_category(raw.frames["name"], lambda n: _code(region_of_frame(n)))
    region = inherit(region, forest.parent)
    own = np.full(forest.source.size, -1, dtype=np.int64)
    own[forest.of_call] = of_call
    fallback = np.where(np.isin(forest.source, (OP, CALL)), int(Cause.DISPATCH), int(Cause.PYTHON))
    # A wrapper op (autograd node, compiled region) names a region; an op inside it still dispatches for that region.
    return np.where(own >= 0, own, np.where(region >= 0, region, fallback))


def _code(cause: Cause | None) -> int:
    return -1 if cause is None else int(cause)


def thread_roles(raw: RawTrace, step_thread: int | None) -> list[str]:
    """What is each thread for? The step thread (else the one with most ops and annotations) is main; threads that run
    autograd nodes are autograd; pin-memory and loader threads by name."""
    threads = raw.threads.height
    op_thread = as_ns(raw.ops["thread"].to_numpy())
    call_thread = as_ns(raw.calls["thread"].to_numpy())
    node = matches(raw.ops["name"], lambda n: n.startswith("autograd::engine::evaluate_function"))
    nodes = np.bincount(op_thread[node], minlength=threads)
    ops = np.bincount(op_thread, minlength=threads)
    calls = np.bincount(call_thread, minlength=threads)
    names = raw.threads["name"].to_list()
    main = step_thread
    if main is None and threads:
        weight = (ops - nodes) * 1_000_000 + calls
        main = int(np.argmax(weight)) if weight.max() > 0 else None
    roles = []
    for thread in range(threads):
        name = str(names[thread])
        if thread == main:
            roles.append(MAIN)
        elif nodes[thread] or "autograd" in name:
            roles.append(AUTOGRAD)
        elif "pin" in name or "DataLoader" in name or "pt_data" in name:
            roles.append(LOADER)
        else:
            roles.append(OTHER)
    return roles


def _overhead_lines(raw: RawTrace, innermost: list[Line]) -> dict[int, Line]:
    """Overhead rows carry no thread: each goes to the thread whose recorded work it overlaps most."""
    if raw.overheads.height == 0:
        return {}
    cause = per_category(raw.overheads["name"], _overhead_cause)
    start = as_ns(raw.overheads["start_ns"].to_numpy())
    end = start + as_ns(raw.overheads["dur_ns"].to_numpy())
    owner = np.full(start.size, -1, dtype=np.int64)
    best = np.zeros(start.size, dtype=np.int64)
    for thread, line in enumerate(innermost):
        _, row, low, high = split_by(line, start, end)
        overlap = np.zeros(start.size, dtype=np.int64)
        np.add.at(overlap, row, high - low)
        more = overlap > best
        best[more], owner[more] = overlap[more], thread
    lines: dict[int, Line] = {}
    for thread in sorted(set(owner[(owner >= 0) & (cause >= 0)].tolist())):
        line = (start[:0], start[:0], start[:0])
        for code in (Cause.PROFILER, Cause.QUEUE_FULL, Cause.MODULE_LOAD):
            mine = (owner == thread) & (cause == int(code))
            pieces = merge(start[mine], end[mine])
            line = overlay(line, (*pieces, np.full(pieces[0].size, int(code), dtype=np.int64)))
        lines[thread] = line
    return lines


def _overhead_cause(name: str) -> int:
    if name in PROFILER_OVERHEADS:
        return int(Cause.PROFILER)
    if name in QUEUE_OVERHEADS:
        return int(Cause.QUEUE_FULL)
    if name in LOADING_OVERHEADS:
        return int(Cause.MODULE_LOAD)
    return -1


def frame_rows(links: Links) -> Int:
    """Forest rows that are Python frames."""
    return np.flatnonzero(links.forest.source == FRAME)


def role_table(raw: RawTrace, states: HostStates) -> pl.DataFrame:
    """Threads with their roles, for people and queries."""
    return raw.threads.with_columns(role=pl.Series(states.roles, dtype=pl.String))
