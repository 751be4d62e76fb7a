"""Which kernels, copies and memsets are the same on both sides, which only on one?

A multiset per step. Two activities are the same where their canonical names and sizes (grid, or bytes) agree, else
where they are twins: matrix, convolution or attention kernels of one dtype, tile, layout and architecture whose names
differ elsewhere (`.._bz_..` in eager and `.._badd_..` in compiled code are one GEMM with another epilogue). What is left
over is matched by name, then by twin, whatever the size, and marked as resized.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from gapless.analyses.kernel_names import KernelIdentity
from gapless.analyses.links import launcher_names
from gapless.comparison.side import Side
from gapless.model.diff import Copies, KernelChange, KernelRow, Kernels
from gapless.tables.coding import categories

SLOWER, AT_LEAST_US = 0.05, 0.5
"""A kernel counts as faster or slower from 5 % and half a microsecond on: the clock alone moves by 2.5 %."""
EPSILON = 1e-9
_TWINS = ("gemm", "convolution", "attention")
_GRID = ("grid_x", "grid_y", "grid_z")


@dataclass
class Group:
    """Activities of one name and size on one side; `left` counts those not matched yet, per step."""

    identity: KernelIdentity
    name: str
    kind: str
    size: tuple[int | None, ...]
    op: str | None
    shapes: str | None
    count: float
    left: float
    median_us: float
    each_ms: float
    bytes: float | None


def twin_key(identity: KernelIdentity) -> tuple[object, ...] | None:
    """What two builds of one matrix kernel have in common; None for kernels that have no twins."""
    if identity.family not in _TWINS or identity.tile is None:
        return None
    return identity.family, identity.direction, identity.dtype, identity.tile, identity.layout, identity.arch


def compare_kernels(before: Side, after: Side) -> tuple[Kernels, Copies]:
    """The multisets of kernels, and of copies and memsets."""
    old, new = groups(before), groups(after)
    pairs = match(old, new)
    same, removed, added = (
        [_row(x, y, n) for x, y, n in pairs],
        [_row(x, None, x.left) for x in old if x.left > EPSILON],
        [_row(None, y, y.left) for y in new if y.left > EPSILON],
    )
    kernel, moved = [], []
    for rows in (same, removed, added):
        rows.sort(key=_order)
        kernel.append([row for row in rows if row.family not in ("memcpy", "memset")])
        moved.append([row for row in rows if row.family in ("memcpy", "memset")])
    return Kernels(kernel[0], kernel[1], kernel[2]), Copies(moved[0], moved[1], moved[2])


def match(old: list[Group], new: list[Group]) -> list[tuple[Group, Group, float]]:
    """Pair groups, the strictest likeness first; `left` of both goes down by what was paired."""
    likeness: tuple[Callable[[Group], object | None], ...] = (
        lambda g: (g.kind, g.identity.canonical, g.size, g.op, g.shapes),
        lambda g: (g.kind, g.identity.canonical, g.size),
        lambda g: (twin_key(g.identity), g.size) if twin_key(g.identity) else None,
        lambda g: (g.kind, g.identity.canonical),
        lambda g: twin_key(g.identity),
    )
    pairs = []
    for key in likeness:
        there: dict[object, list[Group]] = {}
        for group in new:
            value = key(group)
            if value is not None:
                there.setdefault(value, []).append(group)
        for group in old:
            value = key(group)
            for other in there.get(value, []) if value is not None else []:
                n = min(group.left, other.left)
                if n > EPSILON:
                    group.left -= n
                    other.left -= n
                    pairs.append((group, other, n))
    return pairs


def groups(side: Side) -> list[Group]:
    """All activities of the steps that count, by name and size, in order of name and size."""
    activities = side.s.raw.activities
    keep = np.isin(side.s.steps.step_of_activity, side.used)
    if not keep.any():
        return []
    linked = launcher_names(side.s.raw, side.s.links).select("op_name", "input_dims")
    size = pl.when(pl.col("kind").cast(pl.String) == "kernel").then(None).otherwise(pl.col("size_bytes"))
    frame = (
        pl.concat([activities, linked], how="horizontal")
        .with_columns(code=pl.Series(side.activity_code), moved=size)
        .filter(pl.Series(keep))
        .group_by("code", *_GRID, "moved")
        .agg(
            pl.len().alias("n"),
            pl.col("kind").first().cast(pl.String),
            pl.col("dur_ns").median().alias("median"),
            pl.col("dur_ns").sum().alias("total"),
            pl.col("op_name").cast(pl.String).mode().sort(nulls_last=True).first().alias("op"),
            pl.col("input_dims").cast(pl.String).mode().sort(nulls_last=True).first().alias("dims"),
            pl.col("size_bytes").sum().alias("bytes"),
        )
    )
    names = categories(activities["name"])
    found = [
        Group(
            side.identities[row["code"]], names[row["code"]], row["kind"],
            (*(row[axis] for axis in _GRID), row["moved"]), row["op"], row["dims"], row["n"] / side.count,
            row["n"] / side.count, row["median"] / 1e3, row["total"] / row["n"] / 1e6, row["moved"],
        )
        for row in frame.iter_rows(named=True)
    ]  # fmt: skip
    return sorted(found, key=lambda g: (g.kind, g.identity.canonical, g.name, str(g.size)))


def _row(old: Group | None, new: Group | None, n: float) -> KernelRow:
    one = old or new
    if one is None:
        raise ValueError("a row needs a side")
    last = new or one
    mine, other = old.median_us if old else None, new.median_us if new else None
    return KernelRow(
        name=one.identity.short, name_after=last.identity.short, family=one.identity.family, dtype=one.identity.dtype,
        tensor_core=one.identity.tensor_core, tile=one.identity.tile, op=one.op, op_after=last.op, shapes=one.shapes,
        shapes_after=last.shapes,
        before=n if old else 0.0, after=n if new else 0.0, before_us=mine, after_us=other,
        before_ms=n * old.each_ms if old else 0.0, after_ms=n * new.each_ms if new else 0.0, bytes=one.bytes,
        change=_change(mine, other), renamed=one.identity.canonical != last.identity.canonical,
        resized=one.size != last.size, full_name=one.identity.canonical, full_name_after=last.identity.canonical,
    )  # fmt: skip


def _change(before: float | None, after: float | None) -> KernelChange:
    if before is None or after is None:
        return "added" if before is None else "removed"
    if abs(after - before) < AT_LEAST_US or max(after, before) < (1 + SLOWER) * min(after, before):
        return "same"
    return "faster" if after < before else "slower"


def _order(row: KernelRow) -> tuple[float, float, str, str]:
    return -abs(row.after_ms - row.before_ms), -(row.before_ms + row.after_ms), row.full_name, row.full_name_after
