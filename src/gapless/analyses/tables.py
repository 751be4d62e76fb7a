"""How do the analyses look as tables that people can query? Raw columns plus what the analyses add."""

from __future__ import annotations

import numpy as np
import polars as pl

from gapless.analyses.blocking import Origin
from gapless.analyses.call_names import CallClass
from gapless.analyses.gaps import GAP_CAUSES
from gapless.analyses.host import OP
from gapless.analyses.kernel_names import decode
from gapless.analyses.launches import queue_depth_series
from gapless.analyses.links import launcher_names
from gapless.analyses.steps import steps_table
from gapless.analyses.study import Study
from gapless.tables.coding import categories
from gapless.tables.intervals import Int, as_ns
from gapless.tables.nesting import nearest


def _text(column: pl.Series, of: list[str]) -> pl.Series:
    """Codes as an enum column."""
    return column.cast(pl.UInt32).cat.to(pl.Enum(of))


def _row(values: Int) -> pl.Series:
    return pl.Series(values).replace(-1, None)


def ops_table(s: Study) -> pl.DataFrame:
    """`ops` plus op (row number), parent_op, top_op, forward_op (rows, null if none), depth and step."""
    forest = s.links.forest
    is_op = forest.source == OP
    above = nearest(is_op, forest.parent)
    parent = np.where(forest.parent >= 0, above[np.maximum(forest.parent, 0)], -1)[forest.of_op]
    step = np.searchsorted(s.steps.start, as_ns(s.raw.ops["start_ns"].to_numpy()), side="right") - 1
    return s.raw.ops.with_columns(
        op=pl.int_range(s.raw.ops.height, dtype=pl.Int64),
        parent_op=_row(np.where(parent >= 0, forest.row[np.maximum(parent, 0)], -1)),
        forward_op=_row(s.links.forward_op),
        depth=pl.Series(forest.depth[forest.of_op]),
        step=_row(step),
    )


def calls_table(s: Study) -> pl.DataFrame:
    """`calls` plus call (row), class, op, top_op (rows), op_name, activities (how many it launched), step, latency_ns
    (call start to first activity), delay_ns (call end to it), queue_depth, queue_full, blocking."""
    names = s.raw.ops["name"]
    op = _row(s.links.op_of_call)
    figures = s.launches
    return s.raw.calls.with_columns(
        call=pl.int_range(s.raw.calls.height, dtype=pl.Int64),
        call_class=_text(pl.Series(s.links.call_class), [c.name.lower() for c in CallClass]),
        op=op,
        top_op=_row(s.links.top_op_of_call),
        op_name=names.gather(op.cast(pl.UInt32)),
        activities=pl.Series(s.links.activity_count),
        step=_row(s.steps.step_of_call),
        latency_ns=_row(figures.latency),
        delay_ns=_row(figures.delay),
        queue_depth=_row(figures.depth),
        queue_full=pl.Series(figures.queue_full),
        blocking=pl.Series(s.blocking),
    )


def activities_table(s: Study) -> pl.DataFrame:
    """`activities` plus activity (row), call, op, top_op (rows), op_name, top_op_name, input_dims, input_types, step,
    family, dtype, tensor_core and label decoded from the name."""
    linked = launcher_names(s.raw, s.links)
    names = s.raw.activities["name"]
    identities = [decode(text) for text in categories(names)]
    code = names.to_physical()
    known = pl.DataFrame(
        {
            "family": pl.Series([i.family for i in identities], dtype=pl.String),
            "dtype": pl.Series([i.dtype for i in identities], dtype=pl.String),
            "tensor_core": pl.Series([i.tensor_core for i in identities], dtype=pl.Boolean),
            "label": pl.Series([i.short for i in identities], dtype=pl.String),
        }
    )[code.cast(pl.UInt32).to_list()]
    return pl.concat(
        [
            s.raw.activities.with_columns(
                activity=pl.int_range(s.raw.activities.height, dtype=pl.Int64),
                step=_row(s.steps.step_of_activity),
            ),
            linked.with_columns(pl.col("call", "op", "top_op").replace(-1, None)),
            known,
        ],
        how="horizontal",
    )


def syncs_table(s: Study) -> pl.DataFrame:
    """Blocking calls: call (row), name, start_ns, dur_ns, origin, device, step, top_op_name, gpu_work_ns, copy_ns,
    untraced_ns, overhead_ns (these four sum to dur_ns), idle_after_ns, waited_activity (row, null if none)."""
    rows = s.syncs.call
    top = _row(s.links.top_op_of_call[rows])
    calls = s.raw.calls[rows.tolist()]
    return pl.DataFrame(
        {
            "call": rows,
            "name": calls["name"],
            "start_ns": calls["start_ns"],
            "dur_ns": calls["dur_ns"],
            "origin": _text(pl.Series(s.origin[rows]), [o.label for o in Origin]),
            "device": _row(s.syncs.device),
            "step": _row(s.steps.step_of_call[rows]),
            "top_op_name": s.raw.ops["name"].gather(top.cast(pl.UInt32)),
            "gpu_work_ns": s.syncs.gpu_work,
            "copy_ns": s.syncs.copy,
            "untraced_ns": s.syncs.untraced,
            "overhead_ns": s.syncs.overhead,
            "idle_after_ns": s.syncs.idle_after,
            "waited_activity": _row(s.syncs.waited_activity),
        }
    )


def gaps_table(s: Study) -> pl.DataFrame:
    """Idle stretches, one row a cause: device, gap, start_ns, end_ns, cause, activity (that ends the gap), call."""
    parts = [
        a.gaps.select(
            pl.lit(d).alias("device"), "gap", "start_ns", "end_ns",
            _text(a.gaps["cause"], list(GAP_CAUSES)).alias("cause"),
            pl.col("activity", "call", "thread").replace(-1, None),
        )
        for d, a in s.devices.items()
    ]  # fmt: skip
    if not parts:
        return pl.DataFrame(schema={"device": pl.Int32, "gap": pl.Int64, "start_ns": pl.Int64, "end_ns": pl.Int64})
    return pl.concat(parts)


def steps_view(s: Study) -> pl.DataFrame:
    """Steps: step, name, start_ns, end_ns, until_ns, used, why, host_work_ns."""
    return steps_table(s.steps).with_columns(host_work_ns=pl.Series(s.host_work))


def queue_table(s: Study) -> pl.DataFrame:
    """Launches outstanding over time: device, time_ns, depth."""
    return queue_depth_series(s.raw, s.links)
