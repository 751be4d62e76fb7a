"""Which call launched each activity, which op made each call, and for which step?

Activity -> launch by equal correlation id (one launch may own many activities: graphs); call -> op, annotation and
Python frame by nesting on the calling thread. Flow events and `External id` are not used: old files write both wrongly.
Correlations of zero or below never link. Where several calls share a correlation (XPU writes a runtime and a driver
record for one launch) the runtime call is the launch. Backward op -> forward op by autograd sequence number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from gapless.analyses.call_names import CallClass, classify_call
from gapless.analyses.host import ANNOTATION, FRAME, OP, HostForest, host_forest
from gapless.ingest.raw import RawTrace
from gapless.tables.coding import matches, per_category
from gapless.tables.intervals import Int, as_ns
from gapless.tables.nesting import nearest, topmost


@dataclass(frozen=True, slots=True)
class Links:
    """Row numbers that tie the tables together; -1 where there is no partner.

    call_class: `CallClass` of each call. launch_of: activity -> row of `calls`. first_activity: call -> first activity
    (by start) it launched; activity_count: how many. op_of_call: innermost op. top_op_of_call: outermost op of the
    chain, the one the user wrote. annotation_of_call: innermost annotation. frame_of_call, module_of_call: innermost
    Python frame and innermost `nn.Module` frame. forward_op: backward op -> forward op. op_above, top_op_above,
    module_above: forest row -> forest row of the innermost op, the one the user wrote and the innermost module at or
    above it.
    """

    forest: HostForest
    call_class: Int
    launch_of: Int
    first_activity: Int
    activity_count: Int
    op_of_call: Int
    top_op_of_call: Int
    annotation_of_call: Int
    frame_of_call: Int
    module_of_call: Int
    forward_op: Int
    op_above: Int
    top_op_above: Int
    module_above: Int


def link(raw: RawTrace) -> Links:
    """Link the tables of a trace."""
    forest = host_forest(raw)
    call_class = per_category(raw.calls["name"], lambda name: int(classify_call(name)), null=int(CallClass.OTHER))
    launch_of = _launches(raw)
    count = np.bincount(launch_of[launch_of >= 0], minlength=raw.calls.height)
    first = _first_activity(raw, launch_of)
    closest_op = forest.nearest_source(OP)
    call_rows = forest.of_call
    top_op = topmost(user_op_mask(raw, forest), forest.parent)
    top_op = np.where(top_op >= 0, top_op, closest_op)
    op, top = _table_row(forest, closest_op[call_rows]), _table_row(forest, top_op[call_rows])
    frame = _table_row(forest, forest.nearest_source(FRAME)[call_rows])
    modules = matches(raw.frames["name"], lambda name: name.startswith("nn.Module:"))
    is_module = np.zeros(forest.source.size, dtype=bool)
    is_module[forest.of_frame] = modules
    module = nearest(is_module, forest.parent)
    annotation = _table_row(forest, forest.nearest_source(ANNOTATION)[call_rows])
    return Links(
        forest, call_class, launch_of, first, count, op, top, annotation, frame, _table_row(forest, module[call_rows]),
        _forward_ops(raw), closest_op, top_op, module,
    )  # fmt: skip


def _table_row(forest: HostForest, rows: Int) -> Int:
    return np.where(rows >= 0, forest.row[np.maximum(rows, 0)], -1)


def user_op_mask(raw: RawTrace, forest: HostForest) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Ops a user would recognise: `aten::`-like names, not the autograd engine's or the compiler's wrappers."""

    def visible(name: str) -> bool:
        return not (name.startswith(("autograd::engine", "Torch-Compiled Region", "CompiledFunction", "TorchDynamo")))

    flag = np.zeros(forest.source.size, dtype=bool)
    flag[forest.of_op] = matches(raw.ops["name"], visible)
    return np.asarray(flag & (forest.source == OP), dtype=bool)


def _launches(raw: RawTrace) -> Int:
    correlation = as_ns(raw.calls["correlation"].to_numpy())
    driver = matches(raw.calls["api"], lambda api: api == "driver")
    order = np.lexsort((driver, correlation))
    ids = correlation[order]
    wanted = as_ns(raw.activities["correlation"].to_numpy())
    if ids.size == 0:
        return np.full(wanted.size, -1, dtype=np.int64)
    spot = np.minimum(np.searchsorted(ids, wanted), ids.size - 1)
    return np.where((wanted > 0) & (ids[spot] == wanted), order[spot], -1)


def _first_activity(raw: RawTrace, launch_of: Int) -> Int:
    first = np.full(raw.calls.height, -1, dtype=np.int64)
    rows = np.flatnonzero(launch_of >= 0)
    # The last one written stays: the earliest, and of those that start together the first of the table.
    late_first = rows[np.argsort(as_ns(raw.activities["start_ns"].to_numpy())[rows], kind="stable")][::-1]
    first[launch_of[late_first]] = late_first
    return first


def _forward_ops(raw: RawTrace) -> Int:
    """The forward op of each backward op: the last op with its sequence number outside backward, started before it."""
    ops = raw.ops
    seq, fwd = as_ns(ops["seq"].to_numpy()), as_ns(ops["fwd_thread"].to_numpy())
    start = as_ns(ops["start_ns"].to_numpy())
    out = np.full(ops.height, -1, dtype=np.int64)
    forward = np.flatnonzero((seq >= 0) & (fwd == 0))
    backward = np.flatnonzero((seq >= 0) & (fwd > 0))
    if forward.size == 0 or backward.size == 0:
        return out
    forward = forward[np.lexsort((start[forward], seq[forward]))]
    rank = np.unique(seq)
    span = int(start.max()) + 1
    key = np.searchsorted(rank, seq[forward]) * span + start[forward]
    wanted = np.searchsorted(rank, seq[backward]) * span + start[backward]
    spot = np.searchsorted(key, wanted, side="right") - 1
    ok = (spot >= 0) & (seq[forward[np.maximum(spot, 0)]] == seq[backward])
    out[backward[ok]] = forward[spot[ok]]
    return out


def launcher_names(raw: RawTrace, links: Links) -> pl.DataFrame:
    """For each activity: its launch call, op, top op and the op's shapes (columns `call`, `op`, `top_op` rows, and
    `op_name`, `top_op_name`, `input_dims`, `input_types`, `concrete_inputs`); null where unlinked."""
    call = links.launch_of
    # Row -1, no launch, takes the -1 appended; a file may hold GPU work alone.
    op, top = (np.append(column, -1)[call] for column in (links.op_of_call, links.top_op_of_call))
    rows = pl.Series("row", op).replace(-1, None)
    tops = pl.Series("row", top).replace(-1, None)
    taken = raw.ops.select("name", "input_dims", "input_types", "concrete_inputs")
    columns = {name: _take(taken[name], rows) for name in taken.columns}
    return pl.DataFrame(
        {
            "call": pl.Series(call),
            "op": pl.Series(op),
            "top_op": pl.Series(top),
            "op_name": columns["name"],
            "top_op_name": _take(taken["name"], tops),
            "input_dims": columns["input_dims"],
            "input_types": columns["input_types"],
            "concrete_inputs": columns["concrete_inputs"],
        }
    )


def _take(column: pl.Series, rows: pl.Series) -> pl.Series:
    return column.gather(rows.cast(pl.UInt32))
