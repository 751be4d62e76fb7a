"""What does a reader hand on? The tables of `model.schema` as polars frames, and the file's facts."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from gapless.model.meta import TraceMeta
from gapless.model.schema import DType, Table


@dataclass(frozen=True, slots=True)
class RawTrace:
    """One trace as read: frames named as in `model.schema`, rows of `ops`, `frames`, `calls`, `activities` sorted by
    (thread or device, start_ns, -dur_ns, then as `ingest.order` says)."""

    meta: TraceMeta
    threads: pl.DataFrame
    ops: pl.DataFrame
    frames: pl.DataFrame
    calls: pl.DataFrame
    activities: pl.DataFrame
    gpu_syncs: pl.DataFrame
    gpu_annotations: pl.DataFrame
    memory: pl.DataFrame
    overheads: pl.DataFrame
    markers: pl.DataFrame
    collectives: pl.DataFrame
    triton: pl.DataFrame
    set_aside: pl.DataFrame
    issues: pl.DataFrame


_POLARS: dict[DType, pl.DataType] = {
    "i64": pl.Int64(), "i32": pl.Int32(), "u32": pl.UInt32(), "u64": pl.UInt64(), "f32": pl.Float32(),
    "f64": pl.Float64(), "bool": pl.Boolean(), "str": pl.String(),
}  # fmt: skip


def empty_frame(table: Table) -> pl.DataFrame:
    """An empty frame with the declared columns; enum columns have no categories yet."""
    return pl.DataFrame(schema={c.name: pl.Enum([]) if c.dtype == "enum" else _POLARS[c.dtype] for c in table.columns})
