"""Which kernels, ops, launches and copies matter most? The top rows, as plain dicts with units in their keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from gapless.analyses.kernels import facts_of, kernel_stats
from gapless.analyses.links import launcher_names
from gapless.analyses.study import Study
from gapless.tables.coding import categories
from gapless.tables.intervals import Int, as_ns, covered, merge

MOST_ROWS = 100


def top_tables(s: Study) -> dict[str, list[dict[str, Any]]]:
    """Tables `kernels`, `ops`, `launches`, `copies` of the steps that count; empty ones are left out."""
    counted = _counted_activities(s)
    tables = {
        "kernels": _kernels(s, counted),
        "copies": _copies(s, counted),
        "ops": _ops(s),
        "launches": _launches(s),
    }
    return {name: rows for name, rows in tables.items() if rows}


def _counted_activities(s: Study) -> pl.DataFrame:
    keep = np.isin(s.steps.step_of_activity, s.steps.used_indices())
    names = launcher_names(s.raw, s.links).drop("call", "top_op")
    step = pl.DataFrame({"step": s.steps.step_of_activity})
    return pl.concat([s.raw.activities, names, step], how="horizontal").filter(pl.Series(keep))


def _kernels(s: Study, activities: pl.DataFrame) -> list[dict[str, Any]]:
    if activities.height == 0:
        return []
    facts = facts_of(s.raw.meta.devices[0]) if s.raw.meta.devices else None
    stats = kernel_stats(activities.drop("top_op_name"), facts).head(MOST_ROWS)
    rows: list[dict[str, Any]] = []
    for row in stats.iter_rows(named=True):
        rows.append(  # noqa: PERF401 - a dict this long reads better in a loop
            {
                "name": row["short"],
                "family": row["family"],
                "dtype": row["dtype"],
                "tensor_core": row["tensor_core"],
                "op": row["op_name"],
                "shapes": row["input_dims"],
                "count": row["count"],
                "total_ms": row["total_ns"] / 1e6,
                "median_us": row["median_ns"] / 1e3,
                "p95_us": row["p95_ns"] / 1e3,
                "max_us": row["max_ns"] / 1e3,
                "share": row["share"],
                "outliers": row["outliers"],
                "outlier_steps": _step_names(s, row["outlier_steps"]),
                "tflops": row["tflops"],
                "gb_s": row["gbs"],
                "compute_share": row["compute_share"],
                "bandwidth_share": row["bandwidth_share"],
                "occupancy_pct": row["occupancy_pct"],
                "occupancy_source": row["occupancy_source"],
                "full_name": str(row["name"])[:400],
            }
        )
    return rows


def _step_names(s: Study, steps: list[int] | None) -> str:
    return ", ".join(s.steps.names[step] for step in (steps or []) if 0 <= step < s.steps.count)


def _copies(s: Study, activities: pl.DataFrame) -> list[dict[str, Any]]:
    copies = activities.filter(pl.col("kind").cast(pl.String) == "memcpy")
    if copies.height == 0:
        return []
    exposed = _exposed_ns(s, copies)
    grouped = (
        copies.with_columns(exposed=pl.Series(exposed))
        .group_by("name", "top_op_name")
        .agg(
            count=pl.len(),
            total_ns=pl.col("dur_ns").sum(),
            size=pl.col("size_bytes").sum(),
            exposed=pl.col("exposed").sum(),
        )
        .sort("total_ns", "name", "top_op_name", descending=[True, False, False], nulls_last=True)
        .head(MOST_ROWS)
    )
    return [
        {
            "name": row["name"],
            "op": row["top_op_name"],
            "count": row["count"],
            "total_ms": row["total_ns"] / 1e6,
            "mb": (row["size"] or 0) / 1e6,
            "gb_s": (row["size"] or 0) / row["total_ns"] if row["total_ns"] else None,
            "exposed_ms": row["exposed"] / 1e6,
        }
        for row in grouped.iter_rows(named=True)
    ]


def _exposed_ns(s: Study, copies: pl.DataFrame) -> Int:
    """Time of each copy during which its device did nothing else."""
    everything = s.raw.activities
    out = np.zeros(copies.height, dtype=np.int64)
    device = as_ns(copies["device"].to_numpy())
    start = as_ns(copies["start_ns"].to_numpy())
    end = start + as_ns(copies["dur_ns"].to_numpy())
    for one in np.unique(device).tolist():
        other = everything.filter((pl.col("device") == one) & (pl.col("kind").cast(pl.String) != "memcpy"))
        begin = as_ns(other["start_ns"].to_numpy())
        busy = merge(begin, begin + as_ns(other["dur_ns"].to_numpy()))
        mine = device == one
        out[mine] = (end - start)[mine] - covered(busy, start[mine], end[mine])
    return out


def _ops(s: Study) -> list[dict[str, Any]]:
    """Ops by own host time: duration less that of ops and calls inside."""
    forest = s.links.forest
    length = forest.end - forest.start
    inner = np.zeros(length.size, dtype=np.int64)
    has = forest.parent >= 0
    np.add.at(inner, forest.parent[has], length[has])
    rows = forest.of_op
    step = np.searchsorted(s.steps.start, forest.start[rows], side="right") - 1
    keep = np.isin(step, s.steps.used_indices())
    launched = _launched_ns(s)
    frame = pl.DataFrame(
        {
            "name": s.raw.ops["name"],
            "own": (length - inner)[rows],
            "total": length[rows],
            "gpu": launched,
        }
    ).filter(pl.Series(keep))
    grouped = (
        frame.group_by("name")
        .agg(count=pl.len(), own=pl.col("own").sum(), total=pl.col("total").sum(), gpu=pl.col("gpu").sum())
        .sort("own", "name", descending=[True, False])
        .head(MOST_ROWS)
    )
    return [
        {
            "name": row["name"],
            "count": row["count"],
            "own_host_ms": row["own"] / 1e6,
            "host_ms": row["total"] / 1e6,
            "launched_gpu_ms": row["gpu"] / 1e6,
        }
        for row in grouped.iter_rows(named=True)
    ]


def _launched_ns(s: Study) -> Int:
    """GPU time launched directly by each op (innermost op only)."""
    out = np.zeros(s.raw.ops.height, dtype=np.int64)
    launch = s.links.launch_of
    op = np.where(launch >= 0, s.links.op_of_call[np.maximum(launch, 0)] if s.links.op_of_call.size else -1, -1)
    rows = np.flatnonzero(op >= 0)
    np.add.at(out, op[rows], as_ns(s.raw.activities["dur_ns"].to_numpy())[rows])
    return out


def _launches(s: Study) -> list[dict[str, Any]]:
    """Launching calls by name: time in the call, latency, queue depth, kernels shorter than their launch."""
    calls = np.flatnonzero((s.links.first_activity >= 0) & np.isin(s.steps.step_of_call, s.steps.used_indices()))
    if calls.size == 0:
        return []
    dur = as_ns(s.raw.calls["dur_ns"].to_numpy())[calls]
    gpu = as_ns(s.raw.activities["dur_ns"].to_numpy())[s.links.first_activity[calls]]
    code = s.raw.calls["name"].to_physical().cast(pl.Int64).to_numpy()[calls]
    texts = categories(s.raw.calls["name"])
    rows = []
    for one in np.unique(code).tolist():
        mine = code == one
        rows.append(
            {
                "name": texts[one],
                "count": int(mine.sum()),
                "call_ms": float(dur[mine].sum()) / 1e6,
                "call_median_us": float(np.median(dur[mine])) / 1e3,
                "latency_median_us": float(np.median(s.launches.latency[calls][mine])) / 1e3,
                "depth_max": int(s.launches.depth[calls][mine].max()),
                "depth_median": float(np.median(s.launches.depth[calls][mine])),
                "queue_full": int(s.launches.queue_full[calls][mine].sum()),
                "shorter_than_launch": int((gpu[mine] < dur[mine]).sum()),
            }
        )
    return sorted(rows, key=lambda row: (-row["call_ms"], row["name"]))[:MOST_ROWS]
