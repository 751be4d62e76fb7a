"""Which program did the trace record? One step as host pieces, calls and GPU activities, ready to be edited and run.

The main and autograd threads take turns, so host time is one serial line: every instant belongs to its innermost event
(main first, then autograd, then other launching threads). It is cut at every event boundary into *pieces*. A call that
launches or blocks is an *item*; the pieces before it are host work. GPU work hangs on the item that launched it.

A step is [marker start, marker end): what the recorder does between markers is left out. Where several steps run the
same sequence of events the representative step takes the minimum of each host piece and the median of each activity;
noise on the host only adds, and the clock of the GPU drifts both ways. Else the step with the median host work stands
for all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapless.analyses.call_names import CallClass
from gapless.analyses.causes import Cause
from gapless.analyses.host import CALL, OP
from gapless.analyses.host_states import AUTOGRAD, MAIN
from gapless.analyses.study import Study
from gapless.replay.event_waits import event_waits
from gapless.tables.coding import codes
from gapless.tables.intervals import Int, as_ns
from gapless.tables.segments import Line, fill, overlay, split

Float = NDArray[np.float64]
QUIET, NOISY = 0.25, 0.45
"""Noise of a recording: by how much the mean host time of its steps exceeds the sum of each piece's least. Up to `QUIET`
it is mostly the profiler's and the least of each piece counts; from `NOISY` on the host itself is contended (loader
workers, other jobs) and the mean is what a user pays; in between the share of the excess grows evenly."""
SILENT_NS = 200_000
COMPLETE_SHARE = 0.8
NONE, STREAM, DEVICE = 0, 1, 2
"""What an item waits for before it returns: nothing, its stream, its device."""


@dataclass(frozen=True, slots=True)
class Program:
    """One step. Pieces and items are in host order.

    Pieces: `piece_ns` host time, `piece_start`/`piece_end` in the base step (ns since origin), `piece_row` forest row
    of the innermost event (-1: none), `piece_item`: how many items precede it.
    Items: `item_call` row of `calls`, `item_start` in the base step, `item_ns` host time when nothing blocks,
    `item_wait` NONE, STREAM or DEVICE,
    `item_stream` index of the stream it waits on (-1: all), `item_return_ns` from the end of the awaited work to the
    call's return, `item_copies` True where the awaited work includes the item's own copy.
    Activities, ordered by item then start: `act_row` first row of `activities` (a graph launch is one activity spanning
    its nodes), `act_item`, `act_stream`, `act_ns`, `act_nodes` (1 outside graphs), `act_after` index of an activity of
    the same step that must end first (-1: none beyond stream order).
    """

    base_step: int
    base_start: int
    base_end: int
    aligned_steps: int
    piece_ns: Float
    piece_start: Int
    piece_end: Int
    piece_row: Int
    piece_item: Int
    item_call: Int
    item_start: Int
    item_ns: Float
    item_wait: Int
    item_stream: Int
    item_return_ns: Float
    item_copies: NDArray[np.bool_]
    act_row: Int
    act_item: Int
    act_stream: Int
    act_ns: Float
    act_nodes: Int
    act_after: Int
    streams: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class _Recorded:
    """One step as recorded, before steps are combined."""

    step: int
    start: int
    end: int
    piece_start: Int
    piece_end: Int
    piece_row: Int
    signature: Int


def serial_line(s: Study) -> Line:
    """The host's serial line, labelled with forest rows: main thread's ops and calls, autograd's, other launching
    threads', then the main thread's frames and annotations."""
    forest = s.links.forest
    busy = np.isin(forest.source, (OP, CALL))
    line: Line = (np.zeros(0, dtype=np.int64),) * 3
    order = [t for t, r in enumerate(s.states.roles) if r == MAIN]
    order += [t for t, r in enumerate(s.states.roles) if r == AUTOGRAD]
    launching = np.unique(as_ns(s.raw.calls["thread"].to_numpy())[s.links.first_activity >= 0]).tolist()
    order += [t for t in launching if t not in order]
    for thread in order:
        own = s.states.innermost[thread]
        keep = busy[own[2]]
        line = overlay(line, (own[0][keep], own[1][keep], own[2][keep]))
    if s.states.main >= 0:
        line = overlay(line, s.states.innermost[s.states.main])
    return line


def build_program(s: Study) -> Program | None:
    """The representative step of a trace; None where no host thread is recorded."""
    if s.states.main < 0:
        return None
    line = serial_line(s)
    candidates = replayable_steps(s)
    recorded = [_record(s, line, step) for step in candidates]
    groups: dict[bytes, list[_Recorded]] = {}
    for one in recorded:
        groups.setdefault(one.signature.tobytes(), []).append(one)
    best = max(groups.values(), key=lambda group: (len(group), -group[0].step))
    if len(best) == 1:
        work = [float(s.host_work[one.step]) for one in recorded]
        best = [recorded[int(np.argsort(work, kind="stable")[(len(work) - 1) // 2])]]
    return _combine(s, best)


def replayable_steps(s: Study) -> list[int]:
    """Steps whose host side is complete and warm: the used ones, and the last one unless it is cold or was cut short
    (fewer than `COMPLETE_SHARE` of the launches of a used step)."""
    steps = s.steps
    chosen = steps.used_indices()
    last = steps.count - 1
    launching = steps.step_of_call[s.links.first_activity >= 0]
    launches = np.bincount(launching[launching >= 0], minlength=steps.count)
    complete = bool(chosen) and launches[last] >= COMPLETE_SHARE * float(np.median(launches[chosen]))
    if last not in chosen and complete and steps.count > 1 and steps.why[last].startswith("closes"):
        chosen.append(last)
    return chosen


def _record(s: Study, line: Line, step: int) -> _Recorded:
    start, end = int(s.steps.start[step]), int(s.steps.end[step])
    if s.steps.thread is not None:
        end = max(end, _last_launch_end(s, step))
    inside = fill((line[0], line[1], line[2]), start, end, -1)
    piece, low, high = split(inside, as_ns([start]), as_ns([end]))
    row = inside[2][piece]
    forest = s.links.forest
    source = np.where(row >= 0, forest.source[np.maximum(row, 0)], -1)
    name = np.zeros(row.size, dtype=np.int64)
    table = np.where(row >= 0, forest.row[np.maximum(row, 0)], 0)
    # Annotations carry step numbers and frames carry addresses: only their presence is compared.
    is_op, is_call = source == OP, source == CALL
    name[is_op] = codes(s.raw.ops["name"])[table[is_op]]
    if is_call.any():
        name[is_call] = codes(s.raw.calls["name"])[table[is_call]]
    return _Recorded(step, start, end, low, high, row, source * 1_000_003 + name)


def _last_launch_end(s: Study, step: int) -> int:
    rows = np.flatnonzero((s.steps.step_of_call == step) & (s.links.first_activity >= 0))
    if rows.size == 0:
        return 0
    start = as_ns(s.raw.calls["start_ns"].to_numpy())[rows]
    limit = int(s.steps.until[step])
    return min(int((start + as_ns(s.raw.calls["dur_ns"].to_numpy())[rows]).max()), limit)


def _item_rows(s: Study, one: _Recorded) -> tuple[Int, Int]:
    """Pieces that are items (a call's first piece) and their call rows."""
    forest = s.links.forest
    row = one.piece_row
    is_call = (row >= 0) & (forest.source[np.maximum(row, 0)] == CALL)
    pieces = np.flatnonzero(is_call)
    call = forest.row[row[pieces]]
    _, first = np.unique(call, return_index=True)
    keep = np.zeros(call.size, dtype=bool)
    keep[first] = True
    matters = (
        (s.links.first_activity[call] >= 0)
        | s.blocking[call]
        | np.isin(s.links.call_class[call], (int(CallClass.FREE), int(CallClass.PIN)))
    )
    keep &= matters
    return pieces[keep], call[keep]


def _combine(s: Study, group: list[_Recorded]) -> Program:
    base = min(group, key=lambda one: (float(s.host_work[one.step]), one.step))
    pieces, calls = _item_rows(s, base)
    stacked = np.stack([(one.piece_end - one.piece_start).astype(np.float64) for one in group])
    piece_ns = _typical(stacked, _waits_for_others(s, base) | _long_and_silent(s, base, stacked))
    per_step_calls = [_item_rows(s, one)[1] for one in group]
    same = [rows for rows in per_step_calls if rows.size == calls.size]
    figures = [_item_figures(s, rows) for rows in same]
    item_ns = np.min([f[0] for f in figures], axis=0) if calls.size else np.zeros(0)
    item_return = np.median([f[1] for f in figures], axis=0) if calls.size else np.zeros(0)
    wait, stream_of, copies, streams = _waits(s, calls)
    hidden = _hidden_launches(s, base, calls)
    order = np.argsort(np.concatenate([base.piece_start[pieces], _starts(s, hidden)]), kind="stable")
    item_call = np.concatenate([calls, hidden])[order]
    pad = np.zeros(hidden.size)
    is_item = np.zeros(base.piece_row.size, dtype=bool)
    is_item[pieces] = True
    rest = np.flatnonzero(~is_item)
    acts = _activities(s, item_call, same if hidden.size == 0 else [item_call], streams)
    return Program(
        base.step, base.start, base.end, len(group),
        piece_ns[rest], base.piece_start[rest], base.piece_end[rest], base.piece_row[rest],
        np.searchsorted(_starts(s, item_call), base.piece_start[rest], side="right").astype(np.int64),
        item_call,
        _starts(s, item_call),
        np.concatenate([item_ns, pad])[order],
        np.concatenate([wait, pad.astype(np.int64)])[order],
        np.concatenate([stream_of, pad.astype(np.int64) - 1])[order],
        np.concatenate([item_return, pad])[order],
        np.concatenate([copies, pad.astype(bool)])[order],
        *acts, streams,
    )  # fmt: skip


def _typical(lengths: Float, waits: NDArray[np.bool_]) -> Float:
    """One length a piece from those of the aligned steps (rows): see `QUIET`; `waits` marks pieces that
    take the mean."""
    least, mean = lengths.min(axis=0), lengths.mean(axis=0)
    calm = ~waits
    total = float(mean[calm].sum())
    noise = 1.0 - float(least[calm].sum()) / total if total > 0 else 0.0
    share = float(np.clip((noise - QUIET) / (NOISY - QUIET), 0.0, 1.0))
    return np.asarray(np.where(waits, mean, least + share * (mean - least)), dtype=np.float64)


def _waits_for_others(s: Study, base: _Recorded) -> NDArray[np.bool_]:
    """Pieces in which the host waits for data: their mean is what throughput allows, their minimum is luck."""
    rows = base.piece_row
    return np.asarray((rows >= 0) & (s.states.cause_of_row[np.maximum(rows, 0)] == int(Cause.DATALOADER)))


def _long_and_silent(s: Study, base: _Recorded, lengths: Float) -> NDArray[np.bool_]:
    """Long pieces outside any op or call: the recorder is not what makes them differ, so their mean counts."""
    rows = base.piece_row
    silent = (rows < 0) | (s.links.forest.source[np.maximum(rows, 0)] < OP)
    return np.asarray(silent & (lengths.mean(axis=0) > SILENT_NS))


def _starts(s: Study, calls: Int) -> Int:
    return as_ns(s.raw.calls["start_ns"].to_numpy())[calls]


def _hidden_launches(s: Study, base: _Recorded, calls: Int) -> Int:
    """Launches of the step on threads that were hidden behind a busier one."""
    rows = np.flatnonzero((s.steps.step_of_call == base.step) & (s.links.first_activity >= 0))
    start = _starts(s, rows)
    rows = rows[(start >= base.start) & (start < base.end)]
    return np.setdiff1d(rows, calls)


def _sync_of_call(s: Study) -> Int:
    """Row of `Syncs` of each call; -1 for calls that do not block."""
    out = np.full(s.raw.calls.height, -1, dtype=np.int64)
    out[s.syncs.call] = np.arange(s.syncs.call.size)
    return out


def _item_figures(s: Study, calls: Int) -> tuple[Float, Float]:
    """Host time of each call when nothing blocks, and its return delay after the awaited work."""
    dur = as_ns(s.raw.calls["dur_ns"].to_numpy())[calls].astype(np.float64)
    own, back = dur.copy(), np.zeros(calls.size)
    where = _sync_of_call(s)[calls]
    blocks = np.flatnonzero(where >= 0)
    sync = where[blocks]
    waited = s.syncs.gpu_work[sync] + s.syncs.copy[sync]
    free_after = (_starts(s, calls[blocks]) + dur[blocks]) - s.syncs.work_end[sync]
    pending = s.syncs.waited_activity[sync] >= 0
    fast = dur[blocks][~pending]
    usual_fast = float(np.median(fast)) if fast.size else 3_000.0
    own[blocks] = np.where(pending, np.minimum(dur[blocks] - waited, usual_fast), dur[blocks])
    back[blocks] = np.where(pending, free_after, 0.0)
    full = s.launches.queue_full[calls]
    own[full] = np.minimum(own[full], float(s.launches.usual_call_ns))
    return np.maximum(own, 0.0), back


def _waits(s: Study, calls: Int) -> tuple[Int, Int, NDArray[np.bool_], tuple[tuple[int, int], ...]]:
    """What each item waits for: kind, stream index, and whether its own copy is part of it; and the streams."""
    device = as_ns(s.raw.activities["device"].to_numpy())
    stream = as_ns(s.raw.activities["stream"].to_numpy())
    streams = tuple(sorted(set(zip(device.tolist(), stream.tolist(), strict=True))))
    index = {pair: i for i, pair in enumerate(streams)}
    kind = s.links.call_class[calls]
    wait = np.full(calls.size, NONE, dtype=np.int64)
    wait[s.blocking[calls]] = STREAM
    wait[(kind == int(CallClass.SYNC_DEVICE)) | (kind == int(CallClass.FREE))] = DEVICE
    sync_of = {call: i for i, call in enumerate(s.syncs.call.tolist())}
    stream_of = np.full(calls.size, -1, dtype=np.int64)
    copies = np.zeros(calls.size, dtype=bool)
    for i, call in enumerate(calls.tolist()):
        if wait[i] != STREAM:
            continue
        own = int(s.links.first_activity[call])
        sync = sync_of.get(call, -1)
        target = own if own >= 0 else (int(s.syncs.waited_activity[sync]) if sync >= 0 else -1)
        copies[i] = own >= 0
        if target >= 0:
            stream_of[i] = index[int(device[target]), int(stream[target])]
        elif i and s.links.first_activity[calls[i - 1]] >= 0:
            last = int(s.links.first_activity[calls[i - 1]])
            stream_of[i] = index[int(device[last]), int(stream[last])]
    return wait, stream_of, copies, streams


def _activities(
    s: Study, item_call: Int, aligned: list[Int], streams: tuple[tuple[int, int], ...]
) -> tuple[Int, Int, Int, Float, Int, Int]:
    """Activities of the items: row, item, stream, ns, nodes, after."""
    start = as_ns(s.raw.activities["start_ns"].to_numpy())
    end = start + as_ns(s.raw.activities["dur_ns"].to_numpy())
    first = s.links.first_activity[item_call]
    items = np.flatnonzero(first >= 0)
    rows = first[items]
    count = s.links.activity_count[item_call[items]]
    span_end = ends_of_launches(s, end)
    lengths = []
    for calls in aligned:
        mine = s.links.first_activity[calls[items]] if calls.size == item_call.size else rows
        ok = mine >= 0
        length = np.where(ok, span_end[calls[items]] - start[np.maximum(mine, 0)], end[rows] - start[rows])
        lengths.append(length.astype(np.float64))
    ns = np.median(np.stack(lengths), axis=0) if lengths else np.zeros(0)
    device, stream = as_ns(s.raw.activities["device"].to_numpy()), as_ns(s.raw.activities["stream"].to_numpy())
    index = {pair: i for i, pair in enumerate(streams)}
    pairs = zip(device[rows].tolist(), stream[rows].tolist(), strict=True)
    act_stream = np.array([index[pair] for pair in pairs], dtype=np.int64)
    waits = _starts(s, np.flatnonzero(s.links.call_class == int(CallClass.WAIT_EVENT)))
    after = event_waits(waits, _starts(s, item_call[items]), act_stream, start[rows], end[rows])
    return rows, items.astype(np.int64), act_stream, ns, count, after


def ends_of_launches(s: Study, end: Int) -> Int:
    """Per call: the end of the last activity it launched, 0 where it launched none; `end` is per activity."""
    out = np.zeros(s.raw.calls.height, dtype=np.int64)
    rows = np.flatnonzero(s.links.launch_of >= 0)
    np.maximum.at(out, s.links.launch_of[rows], end[rows])
    return out
