"""What would the program be if one thing changed? Edits: functions from a program to a program, free to be combined.

Places in time are nanoseconds of the base step (`Program.base_start` to `base_end`); they stay valid through any number
of edits, because cut pieces and items keep their place and only lose their length.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gapless.replay.program import NONE, Program
from gapless.tables.intervals import Int, as_ns, contains, covered, merge

Float = NDArray[np.float64]
Mask = NDArray[np.bool_]


def inside_items(program: Program, start: Int, end: Int) -> Mask:
    """Which items start inside any of these intervals?"""
    return contains(merge(start, end), program.item_start)


def host_ns(program: Program, start: Int, end: Int) -> float:
    """Host time of the program inside these intervals (blocked time not included)."""
    if start.size == 0:
        return 0.0
    low, high = start.min(), end.max()
    piece = slice(np.searchsorted(program.piece_end, low, side="right"), np.searchsorted(program.piece_start, high))
    item = slice(*np.searchsorted(program.item_start, [low, high]))
    share = _covered_share(program.piece_start[piece], program.piece_end[piece], start, end)
    inside = contains(merge(start, end), program.item_start[item])
    return float((program.piece_ns[piece] * share).sum() + program.item_ns[item][inside].sum())


def _covered_share(piece_start: Int, piece_end: Int, start: Int, end: Int) -> Float:
    length = piece_end - piece_start
    inside = covered(merge(start, end), piece_start, piece_end)
    return np.where(length > 0, inside / np.maximum(length, 1), 0.0)


def cut_host(program: Program, start: Int, end: Int, *, keep_work: bool = False) -> Program:
    """Take out the host time of these intervals, and the calls in them with the GPU work they launched.

    With `keep_work` the calls go but their GPU work stays, launched by the item before.
    """
    share = _covered_share(program.piece_start, program.piece_end, start, end)
    gone = inside_items(program, start, end)
    edited = replace(
        program,
        piece_ns=program.piece_ns * (1.0 - share),
        item_ns=np.where(gone, 0.0, program.item_ns),
        item_wait=np.where(gone, NONE, program.item_wait),
    )
    return edited if keep_work else drop_activities(edited, gone[program.act_item])


def drop_activities(program: Program, gone: Mask) -> Program:
    """Take out GPU activities."""
    keep = np.flatnonzero(~gone)
    index = np.full(program.act_row.size, -1, dtype=np.int64)
    index[keep] = np.arange(keep.size)
    after = program.act_after[keep]
    return replace(
        program,
        act_row=program.act_row[keep],
        act_item=program.act_item[keep],
        act_stream=program.act_stream[keep],
        act_ns=program.act_ns[keep],
        act_nodes=program.act_nodes[keep],
        act_after=np.where(after >= 0, index[np.maximum(after, 0)], -1),
    )


def drop_calls(program: Program, gone: Mask) -> Program:
    """Take out items with their host time, waits and GPU work; the host work round them stays."""
    edited = replace(
        program, item_ns=np.where(gone, 0.0, program.item_ns), item_wait=np.where(gone, NONE, program.item_wait)
    )
    return drop_activities(edited, gone[program.act_item])


def unblock(program: Program, items: Mask) -> Program:
    """Let these items return without waiting; their host time stays."""
    if not items.any():
        return program
    return replace(program, item_wait=np.where(items, NONE, program.item_wait))


def set_activity_ns(program: Program, which: Mask, ns: Float) -> Program:
    """Give these activities new lengths (`ns` is one value an activity of the program, or one for all)."""
    if not which.any():
        return program
    return replace(program, act_ns=np.where(which, ns, program.act_ns))


def add_host(program: Program, at: Int | int, ns: Float | float) -> Program:
    """Add host work at one place or at many (`ns` is one value or one a place)."""
    places = np.atleast_1d(as_ns(at))
    if program.piece_ns.size == 0 or places.size == 0:
        return program
    amount = np.broadcast_to(np.asarray(ns, dtype=np.float64), places.shape)
    spot = np.clip(np.searchsorted(program.piece_start, places, side="right") - 1, 0, program.piece_ns.size - 1)
    pieces = program.piece_ns.copy()
    np.add.at(pieces, spot, np.maximum(amount, 0.0))
    return replace(program, piece_ns=pieces)


def add_activity(program: Program, at: Int | int, ns: Float | float, stream: Int | int = 0) -> Program:
    """Add GPU work at one place or at many, each launched by the last item at or before it (the first, if none is)."""
    places = np.atleast_1d(as_ns(at))
    amount = np.broadcast_to(np.asarray(ns, dtype=np.float64), places.shape)
    streams = np.broadcast_to(as_ns(stream), places.shape)[amount > 0]
    places, amount = places[amount > 0], amount[amount > 0]
    if program.item_ns.size == 0 or places.size == 0:
        return program
    item = np.clip(np.searchsorted(program.item_start, places, side="right") - 1, 0, program.item_ns.size - 1)
    order = np.argsort(item, kind="stable")
    item, amount, streams = item[order], amount[order], streams[order]
    spot = np.searchsorted(program.act_item, item, side="right")
    shift = np.searchsorted(spot, np.arange(program.act_row.size + 1), side="right")
    after = np.where(program.act_after >= 0, program.act_after + shift[np.maximum(program.act_after, 0)], -1)
    return replace(
        program,
        act_row=np.insert(program.act_row, spot, -1),
        act_item=np.insert(program.act_item, spot, item),
        act_stream=np.insert(program.act_stream, spot, streams),
        act_ns=np.insert(program.act_ns, spot, amount),
        act_nodes=np.insert(program.act_nodes, spot, 1),
        act_after=np.insert(after, spot, -1),
    )


def move_to_own_stream(program: Program, which: Mask) -> Program:
    """Run these activities on a stream of their own, waiting for nothing but each other."""
    fresh = len(program.streams)
    return replace(
        program,
        act_stream=np.where(which, fresh, program.act_stream),
        act_after=np.where(which, -1, program.act_after),
        streams=(*program.streams, (-1, fresh)),
    )


def capture(program: Program, start: int, end: int, *, host_ns: float, node_ns: float) -> Program:
    """Replace the launches of one stretch by one graph launch of `host_ns`; each node costs the GPU `node_ns` more.

    Host work inside goes, GPU work stays, in order, one activity a stream.
    """
    low, high = as_ns([start]), as_ns([end])
    inside = inside_items(program, low, high)
    captured = inside[program.act_item]
    if not captured.any():
        return program
    streams = np.unique(program.act_stream[captured])
    totals = []
    for stream in streams.tolist():
        mine = captured & (program.act_stream == stream)
        totals.append(float(program.act_ns[mine].sum() + node_ns * program.act_nodes[mine].sum()))
    edited = cut_host(program, low, high)
    edited = add_host(edited, start, host_ns)
    first = int(program.item_start[np.flatnonzero(inside)[0]])
    for stream, ns in zip(streams.tolist(), totals, strict=True):
        edited = add_activity(edited, first, ns, stream)
    return edited
