"""How is one trace written to a folder and read back, exactly or not at all?

A table is one Arrow IPC file. `manifest.json` holds the trace's facts and, for every table, its
height and the checksum of its file. Anything that does not agree makes the entry damaged.
"""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import polars as pl
from isal import isal_zlib

from gapless.ingest.raw import RawTrace
from gapless.model import schema
from gapless.model.meta import TraceMeta

MANIFEST = "manifest.json"


class _Stored(msgspec.Struct, frozen=True):
    """One table's file."""

    rows: int
    crc32: int


class _Manifest(msgspec.Struct, frozen=True):
    """Everything in an entry besides its tables."""

    format_version: int
    meta: TraceMeta
    tables: dict[str, _Stored]


class DamagedError(Exception):
    """The entry is incomplete, altered, or of another version."""


def write(raw: RawTrace, folder: Path) -> None:
    """Write all of `raw` into an empty folder."""
    tables: dict[str, _Stored] = {}
    for table in schema.TABLES:
        frame: pl.DataFrame = getattr(raw, table.name)
        buffer = io.BytesIO()
        frame.write_ipc(buffer, compression="lz4")
        (folder / f"{table.name}.arrow").write_bytes(buffer.getbuffer())
        tables[table.name] = _Stored(frame.height, isal_zlib.crc32(buffer.getbuffer()))
    manifest = _Manifest(schema.FORMAT_VERSION, raw.meta, tables)
    (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))


def read(folder: Path) -> RawTrace:
    """The trace in `folder`; raises DamagedError if it cannot be trusted."""
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=_Manifest)
        if manifest.format_version != schema.FORMAT_VERSION:
            raise DamagedError
        frames = {table.name: _frame(folder, table, manifest.tables[table.name]) for table in schema.TABLES}
    except (OSError, KeyError, msgspec.MsgspecError, pl.exceptions.PolarsError, RecursionError) as error:
        raise DamagedError from error
    return RawTrace(meta=manifest.meta, **frames)


def _frame(folder: Path, table: schema.Table, stored: _Stored) -> pl.DataFrame:
    data = (folder / f"{table.name}.arrow").read_bytes()
    if isal_zlib.crc32(data) != stored.crc32:
        raise DamagedError
    frame = pl.read_ipc(io.BytesIO(data))
    if frame.columns != table.names() or frame.height != stored.rows:
        raise DamagedError
    return frame
