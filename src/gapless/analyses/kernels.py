"""Which GPU work costs how much: per kernel, launching op and shapes, how often, how long, how evenly, how close to the
device's peak?

A mean misleads (one slow launch among twenty), so median, 95th percentile and the steps with outliers are given.
An outlier lasts more than 1.5 medians of the calls of its own size (grid and block, or bytes) and 2 us more than that
median. Work (floating-point operations, bytes) comes from the launching op's shapes and belongs to the kernels that do
it: an op's arithmetic to its GEMM, convolution or attention kernels, shared by duration if there are several; layout
changes, split-K sums and the like get none of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gapless.analyses.copies import copy_traits
from gapless.analyses.kernel_names import KernelIdentity, decode
from gapless.analyses.occupancy import limits_of, state_occupancy
from gapless.analyses.op_costs import OpCost, op_cost
from gapless.model.meta import DeviceProperties
from gapless.model.peaks import DevicePeaks, LaunchLimits, find_peaks
from gapless.tables.coding import categories, codes
from gapless.tables.intervals import Int

OUTLIER_RATIO = 1.5
OUTLIER_NS = 2_000
MAX_OUTLIER_STEPS = 20

_MATH = ("gemm", "convolution", "attention")
_TEXT_COLUMNS = ("name", "op_name", "input_dims", "input_types", "concrete_inputs", "input_strides")
_LAUNCH = ("block_x", "block_y", "block_z", "grid_x", "grid_y", "grid_z", "registers", "shared_bytes")
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What is known about the device that the kernels ran on; None where nothing is."""

    peaks: DevicePeaks | None = None
    limits: LaunchLimits | None = None
    sms: int | None = None


def facts_of(device: DeviceProperties) -> DeviceFacts:
    """Peaks and limits of a device as the trace describes it."""
    compute = f"{device.compute_major}.{device.compute_minor}" if device.warp_size == 64 else None
    return DeviceFacts(find_peaks(device.name, compute, device.num_sms), limits_of(device), device.num_sms)


def identities(names: pl.Series) -> list[KernelIdentity]:
    """The identity of each category of an enum column of activity names, in code order."""
    return [decode(name) for name in categories(names)]


def kernel_stats(activities: pl.DataFrame, facts: DeviceFacts | None = None) -> pl.DataFrame:
    """One row per activity name, launching op and shapes, in order of falling total time.

    `activities` has the columns of that table; `op` (row number of the launching op, -1 for none), `op_name`,
    `input_dims`, `input_types`, `concrete_inputs`, `input_strides` (enums) and `step` (index, -1 for none) may be
    added and may be null.

    Result: name, short, canonical, family, operation, dtype, tensor_core, cast, helper, op_name, input_dims,
    input_types, kind; count, total_ns, median_ns, p95_ns, min_ns, max_ns, mean_ns, share (of the time of all rows);
    outliers, outlier_steps; flops and bytes of all calls together, tflops, gbs, compute_share, bandwidth_share (of the
    device's peak; above 1 where data came from a cache), work_exact; occupancy_pct, occupancy_source. Null: not known.
    A copy inside the device counts as read and written; one to or from the host has its share taken of the host link.
    """
    frame = _complete(activities)
    known = facts or DeviceFacts()
    names = identities(frame["name"])
    work = _work(frame, names)
    frame = frame.with_columns(
        pl.Series("flops", work.flops, nan_to_null=True),
        pl.Series("bytes", work.bytes, nan_to_null=True),
        pl.Series("work_exact", work.exact),
        pl.Series("math_dtype", work.dtype, dtype=pl.String),
    )
    stats = _aggregate(frame)
    return _describe(stats, names, categories(frame["name"]), known)


def _complete(activities: pl.DataFrame) -> pl.DataFrame:
    """Add the optional columns that are missing, as null."""
    defaults = {
        **{column: pl.lit(None, pl.Enum([])) for column in _TEXT_COLUMNS[1:]},
        "op": pl.lit(-1, pl.Int64),
        "step": pl.lit(-1, pl.Int64),
    }
    missing = [value.alias(name) for name, value in defaults.items() if name not in activities.columns]
    return activities.with_columns(missing).select(
        *_TEXT_COLUMNS, "op", "step", "kind", "dur_ns", "size_bytes", "occupancy_pct", *_LAUNCH
    )


@dataclass(frozen=True, slots=True)
class _Work:
    """Per activity: operations and bytes (NaN: not known), whether nothing was assumed, dtype of the mathematics."""

    flops: Floats
    bytes: Floats
    exact: NDArray[np.bool_]
    dtype: list[str | None]


def _work(frame: pl.DataFrame, names: list[KernelIdentity]) -> _Work:
    name = codes(frame["name"])
    dur = frame["dur_ns"].to_numpy().astype(np.float64)
    is_kernel = _by_name(names, lambda n: n.family not in ("memcpy", "memset"))[name]
    helps = _by_name(names, lambda n: n.helper or n.family in ("layout", "memcpy", "memset"))[name]
    computes = _by_name(names, lambda n: n.family in _MATH and not n.helper)[name]
    combo, costs = _op_costs(frame, names, name, computes)
    flops = np.array([c.flops if c else np.nan for c in costs] or [np.nan])[combo]
    moved = np.array([c.bytes if c else np.nan for c in costs] or [np.nan])[combo]
    exact = np.array([c.exact if c else True for c in costs] or [True], dtype=bool)[combo]
    dtypes = [c.dtype if c else None for c in costs]
    dtype = [dtypes[i] for i in combo.tolist()]

    op = frame["op"].fill_null(-1).to_numpy()
    owner = np.where(op >= 0, op, np.arange(op.size) + (int(op.max(initial=0)) + 1))
    _, owner = np.unique(owner, return_inverse=True)
    has_compute = np.bincount(owner, computes, minlength=owner.size)[owner] > 0
    # An op with a compute kernel gives its work to those; another shares it among all kernels that are no helpers.
    doer = np.where(has_compute, computes, is_kernel & ~helps)
    weight = dur * doer
    together = np.bincount(owner, weight, minlength=owner.size)[owner]
    share = np.divide(weight, together, out=np.zeros_like(dur), where=together > 0)
    flops = np.where(share > 0, flops * share, np.nan)
    moved = np.where(share > 0, moved * share, np.nan)
    own = frame["size_bytes"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    passes = np.array([_passes(n, i) for n, i in zip(categories(frame["name"]), names, strict=True)] or [1.0])[name]
    moved = np.where(is_kernel, moved, own * passes)
    fewer = np.array([_FEWER_OPERATIONS.search(n) is not None for n in categories(frame["name"])] or [False])[name]
    by_definition = np.bincount(owner, fewer, minlength=owner.size)[owner] == 0
    return _Work(np.where((flops > 0) & by_definition, flops, np.nan), moved, exact, dtype)


def _by_name(names: list[KernelIdentity], test: Callable[[KernelIdentity], bool]) -> NDArray[np.bool_]:
    return np.array([test(n) for n in names] or [False], dtype=bool)


def _passes(name: str, identity: KernelIdentity) -> float:
    """How often each byte of a copy crosses the memory bus of this device."""
    if identity.family != "memcpy":
        return 1.0
    return 2.0 if copy_traits(name).direction == "DtoD" else 1.0


# Ops whose cost depends on plain values, which for other ops change from call to call and tell nothing.
_BY_VALUE = ("conv", "attention", "sum", "mean", "index_select", "_to_copy", "embedding")
# Algorithms that do fewer operations than the op's definition: their rate says nothing about the units' peak.
_FEWER_OPERATIONS = re.compile(r"winograd|fft2d_|sum_complex", re.IGNORECASE)


def _op_costs(
    frame: pl.DataFrame, names: list[KernelIdentity], name: Int, computes: NDArray[np.bool_]
) -> tuple[Int, list[OpCost | None]]:
    """For each activity the number of its distinct (op, shapes, types, values), and the cost of each of these."""
    texts = [categories(frame[c]) for c in _TEXT_COLUMNS[1:]]
    columns = [codes(frame[c]) for c in _TEXT_COLUMNS[1:]]
    by_value = np.array([*(any(word in op for word in _BY_VALUE) for op in texts[0]), False], dtype=bool)
    columns[3] = np.where(by_value[columns[0]], columns[3], -1)
    key = np.zeros(frame.height, dtype=np.int64)
    for column, options in zip(columns, texts, strict=True):
        key = np.unique(key * (len(options) + 1) + column + 1, return_inverse=True)[1]
    # The kernel that computes, where there is one, tells the element type inside lists of tensors.
    order = np.argsort(~computes, kind="stable")
    _, first, combo = np.unique(key[order], return_index=True, return_inverse=True)
    back = np.empty_like(combo)
    back[order] = combo
    costs: list[OpCost | None] = []
    for row in order[first].tolist():
        op, dims, types, values, strides = (
            options[column[row]] if column[row] >= 0 else None for column, options in zip(columns, texts, strict=True)
        )
        element = names[name[row]].dtype
        costs.append(op_cost(op, dims, types, values, element, strides) if op is not None else None)
    return back, costs


def _aggregate(frame: pl.DataFrame) -> pl.DataFrame:
    dur = pl.col("dur_ns")
    median = dur.median()
    keys = ["name", "op_name", "input_dims", "input_types"]
    # One op may launch a kernel on tensors of several sizes: a larger launch is more work, not a slow call.
    usual = pl.col("usual_ns")
    frame = frame.with_columns(
        usual_ns=median.over(*(pl.col(key).to_physical() for key in keys), *_LAUNCH, "size_bytes")
    )
    slow = (dur > OUTLIER_RATIO * usual) & (dur > usual + OUTLIER_NS)
    falling = [True, *[False] * len(keys)]
    return (
        frame.group_by(*(pl.col(key).to_physical().alias(f"{key}_code") for key in keys))
        .agg(
            *(pl.col(key).first().cast(pl.String) for key in (*keys, "kind")),
            pl.len().cast(pl.Int64).alias("count"),
            dur.sum().alias("total_ns"),
            median.round().cast(pl.Int64).alias("median_ns"),
            dur.quantile(0.95, "nearest").round().cast(pl.Int64).alias("p95_ns"),
            dur.min().alias("min_ns"),
            dur.max().alias("max_ns"),
            dur.mean().alias("mean_ns"),
            slow.sum().cast(pl.Int64).alias("outliers"),
            pl.col("step").filter(slow & (pl.col("step") >= 0)).unique().sort().head(MAX_OUTLIER_STEPS)
            .cast(pl.Int64).alias("outlier_steps"),
            *(pl.when(pl.col(c).count() == pl.len()).then(pl.col(c).sum()).alias(c) for c in ("flops", "bytes")),
            pl.col("work_exact").all(),
            pl.col("math_dtype").first(),
            *(pl.col(c).first() for c in (*_LAUNCH, "occupancy_pct")),
        )
        .sort("total_ns", *keys, descending=falling, nulls_last=True)
        .with_columns(share=pl.col("total_ns") / pl.col("total_ns").sum())
    )  # fmt: skip


def _describe(stats: pl.DataFrame, names: list[KernelIdentity], texts: list[str], facts: DeviceFacts) -> pl.DataFrame:
    """Add what names, peaks and limits tell; work on groups, of which there are few."""
    by_text = dict(zip(texts, names, strict=True))
    rows: list[dict[str, object]] = []
    for row in stats.iter_rows(named=True):
        identity = by_text[row["name"]]
        tflops = _rate(row["flops"], row["total_ns"], 1e3)
        gbs = _rate(row["bytes"], row["total_ns"], 1.0)
        block, grid = _volume(row, "block"), _volume(row, "grid")
        stated = state_occupancy(
            row["occupancy_pct"], block, row["registers"], row["shared_bytes"], facts.limits, grid, facts.sms
        )
        rows.append(
            {
                "short": identity.short, "canonical": identity.canonical, "family": identity.family,
                "operation": identity.operation, "dtype": identity.dtype or row["math_dtype"],
                "tensor_core": identity.tensor_core, "cast": identity.cast, "helper": identity.helper,
                "tflops": tflops, "gbs": gbs,
                "compute_share": _compute_share(tflops, identity, row["math_dtype"], facts),
                "bandwidth_share": _bandwidth_share(gbs, row["name"], identity, facts),
                "occupancy_pct": stated.percent if stated else None,
                "occupancy_source": stated.source if stated else None,
            }
        )  # fmt: skip
    added = pl.DataFrame(rows, schema=_ADDED)
    return pl.concat([stats.drop("occupancy_pct"), added], how="horizontal").select(_RESULT)


_ADDED = {
    "short": pl.String, "canonical": pl.String, "family": pl.String, "operation": pl.String, "dtype": pl.String,
    "tensor_core": pl.Boolean, "cast": pl.Boolean, "helper": pl.Boolean, "tflops": pl.Float64, "gbs": pl.Float64,
    "compute_share": pl.Float64, "bandwidth_share": pl.Float64, "occupancy_pct": pl.Float64,
    "occupancy_source": pl.String,
}  # fmt: skip
_RESULT = (
    "name", "short", "canonical", "family", "operation", "dtype", "tensor_core", "cast", "helper", "op_name",
    "input_dims", "input_types", "kind", "count", "total_ns", "median_ns", "p95_ns", "min_ns", "max_ns", "mean_ns",
    "share", "outliers", "outlier_steps", "flops", "bytes", "tflops", "gbs", "compute_share", "bandwidth_share",
    "work_exact", "occupancy_pct", "occupancy_source",
)  # fmt: skip


def _rate(work: float | None, total_ns: int, scale: float) -> float | None:
    """Work per nanosecond: bytes/ns are GB/s, operations/ns are GFLOP/s."""
    return work / total_ns / scale if work is not None and total_ns > 0 else None


def _volume(row: dict[str, object], what: str) -> int | None:
    sizes = [row[f"{what}_{axis}"] for axis in "xyz"]
    found = [size for size in sizes if isinstance(size, int)]
    return found[0] * found[1] * found[2] if len(found) == 3 else None


def _compute_share(
    tflops: float | None, identity: KernelIdentity, math_dtype: str | None, facts: DeviceFacts
) -> float | None:
    """Share of the peak of the units in use: matrix units of the dtype (assumed where the name does not tell), or the
    vector units."""
    if tflops is None or facts.peaks is None:
        return None
    dtype = identity.dtype if facts.peaks.tflops(identity.dtype) else math_dtype
    unnamed = identity.tensor_core is None and identity.family in _MATH
    if identity.tensor_core or unnamed:
        peak = facts.peaks.matrix_tflops(dtype)
    else:
        peak = facts.peaks.fp64 if dtype == "fp64" else facts.peaks.fp32
    return tflops / peak if peak else None


def _bandwidth_share(gbs: float | None, name: str, identity: KernelIdentity, facts: DeviceFacts) -> float | None:
    if gbs is None or facts.peaks is None:
        return None
    to_host = identity.family == "memcpy" and copy_traits(name).direction in ("HtoD", "DtoH")
    return gbs / (facts.peaks.host_link_gbs if to_host else facts.peaks.bandwidth_gbs)
