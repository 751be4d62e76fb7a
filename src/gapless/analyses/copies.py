"""Which way does a copy go, and what kind of host memory is at its end? And what do a trace's copies cost together?

CUDA names say it (`Memcpy HtoD (Pageable -> Device)`). ROCm names know neither pageable nor pinned, and call a copy
into pinned host memory a copy from device to device; the call that made it, and the op round it, tell the truth.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import polars as pl

from gapless.tables.coding import categories, codes
from gapless.tables.intervals import as_ns, covered, merge

Direction = Literal["HtoD", "DtoH", "DtoD", "HtoH", "PtoP", "unknown"]
HostMemory = Literal["pageable", "pinned", "managed", "device", "unknown"]


@dataclass(frozen=True, slots=True)
class CopyTraits:
    """Direction, and the kind of memory on the host's side: `device` where no host memory takes part.

    `inferred` says why this differs from the recorded name, '' where it does not.
    """

    direction: Direction
    host_memory: HostMemory
    inferred: str = ""


MAX_NAME = 200
_PLAIN = re.compile(r"\b([HDPA])to([HDPA])\b|\b([HDM])2([HDM])\b")
_SPELLED = re.compile(r"(Host|Device|Peer)[ -]?[tT]o[ -]?(Host|Device|Peer)", re.IGNORECASE)
_ENDS = re.compile(r"\(([\w ]{1,40})->([\w ]{1,40})\)")
_DIRECTIONS: dict[tuple[str, str], Direction] = {
    ("H", "D"): "HtoD", ("D", "H"): "DtoH", ("D", "D"): "DtoD", ("H", "H"): "HtoH", ("P", "P"): "PtoP",
}  # fmt: skip
_HOST_KINDS: dict[str, HostMemory] = {"pageable": "pageable", "pinned": "pinned", "managed": "managed"}
_READBACK_OPS = ("aten::_local_scalar_dense", "aten::item", "aten::is_nonzero")


@lru_cache(maxsize=8192)
def copy_traits(
    name: str, launch: str | None = None, op: str | None = None, launch_kind: str | None = None
) -> CopyTraits:
    """Traits of one copy by its name; `launch` is the API call that made it, `op` the op round that, `launch_kind` the
    direction that the API record itself carries (ROCm writes one)."""
    name = name[:MAX_NAME]
    direction = _direction(name)
    ends = _ENDS.search(name)
    kinds = [part.strip().lower() for part in ends.groups()] if ends else []
    if direction == "unknown" and len(kinds) == 2:
        sides = ["D" if kind.startswith("device") else "H" if kind in (*_HOST_KINDS, "host") else "?" for kind in kinds]
        direction = _DIRECTIONS.get((sides[0], sides[1]), "unknown")
    if direction in ("DtoD", "PtoP") and _is_readback(launch, op, launch_kind):
        return CopyTraits("DtoH", "pinned", "named DtoD, but the call hands the value to the host")
    if direction == "DtoD" and launch_kind == "HtoD":
        return CopyTraits("HtoD", "pinned", "named DtoD, but the call says it comes from the host")
    if direction in ("DtoD", "PtoP"):
        return CopyTraits(direction, "device")
    if direction == "unknown":
        return CopyTraits(direction, "unknown")
    host_end = kinds[0 if direction[0] == "H" else 1] if len(kinds) == 2 else ""
    return CopyTraits(direction, _HOST_KINDS.get(host_end.split()[0] if host_end else "", "unknown"))


def _direction(name: str) -> Direction:
    plain = _PLAIN.search(name)
    if plain is not None:
        first, second = (side.replace("M", "H") for side in plain.groups() if side)
        return _DIRECTIONS.get((first.replace("A", "D"), second.replace("A", "D")), "unknown")
    spelled = _SPELLED.search(name)
    if spelled is not None:
        return _DIRECTIONS.get((spelled.group(1)[0].upper(), spelled.group(2)[0].upper()), "unknown")
    return "unknown"


def _is_readback(launch: str | None, op: str | None, launch_kind: str | None) -> bool:
    """A blocking HIP copy that a read-back op made, or whose own record says DtoH."""
    if launch is None or not launch.startswith("hipMemcpy"):
        return False
    return launch_kind == "DtoH" or (op is not None and op.startswith(_READBACK_OPS))


def copy_stats(activities: pl.DataFrame) -> pl.DataFrame:
    """Copies by direction, host memory and owner op.

    `activities` has the columns of that table, and optionally `op_name`, `launch_name`, `launch_kind` (enums). Result:
    direction, host_memory, op_name, inferred, count, bytes, total_ns, exposed_ns (no kernel ran on that device
    meanwhile), gbs (bytes moved by total_ns, one way), in order of falling total_ns. Memsets are not copies.
    """
    copies = activities.filter(pl.col("kind").cast(pl.String) == "memcpy")
    keys = [c for c in ("name", "launch_name", "op_name", "launch_kind") if c in copies.columns]
    texts = {key: categories(copies[key]) for key in keys}
    key = np.zeros(copies.height, dtype=np.int64)
    for column in keys:
        key = key * (len(texts[column]) + 1) + codes(copies[column]) + 1
    _, first, at = np.unique(key, return_index=True, return_inverse=True)
    found: list[CopyTraits] = []
    for combo in zip(*(codes(copies[column])[first].tolist() for column in keys), strict=True):
        given = {key: texts[key][code] if code >= 0 else None for key, code in zip(keys, combo, strict=True)}
        found.append(
            copy_traits(
                given.get("name") or "", given.get("launch_name"), given.get("op_name"), given.get("launch_kind")
            )
        )
    table = copies.select(
        pl.col("op_name").cast(pl.String) if "op_name" in keys else pl.lit(None, pl.String).alias("op_name"),
        pl.col("size_bytes").alias("bytes"),
        "dur_ns",
    ).with_columns(
        direction=pl.Series([t.direction for t in found], dtype=pl.String).gather(at),
        host_memory=pl.Series([t.host_memory for t in found], dtype=pl.String).gather(at),
        inferred=pl.Series([t.inferred for t in found], dtype=pl.String).gather(at),
        exposed_ns=_exposed(activities, copies),
    )
    return (
        table.group_by("direction", "host_memory", "op_name", "inferred")
        .agg(
            pl.len().cast(pl.Int64).alias("count"),
            pl.col("bytes").sum(),
            pl.col("dur_ns").sum().alias("total_ns"),
            pl.col("exposed_ns").sum(),
        )
        .with_columns(gbs=pl.when(pl.col("total_ns") > 0).then(pl.col("bytes") / pl.col("total_ns")))
        .sort("total_ns", "direction", "host_memory", "op_name", "inferred", descending=[True, *[False] * 4])
    )


def _exposed(activities: pl.DataFrame, copies: pl.DataFrame) -> pl.Series:
    """Nanoseconds of each copy during which no kernel ran on its device."""
    start, dur = as_ns(copies["start_ns"].to_numpy()), as_ns(copies["dur_ns"].to_numpy())
    device = copies["device"].to_numpy()
    out = dur.copy()
    for one in np.unique(device):
        kernels = activities.filter((pl.col("kind").cast(pl.String) == "kernel") & (pl.col("device") == int(one)))
        begin = as_ns(kernels["start_ns"].to_numpy())
        busy = merge(begin, begin + as_ns(kernels["dur_ns"].to_numpy()))
        here = device == one
        out[here] -= covered(busy, start[here], start[here] + dur[here])
    return pl.Series("exposed_ns", out)
