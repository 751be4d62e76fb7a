"""How do the columns of all chunks become the tables of `model.schema`?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from gapless.ingest import series
from gapless.ingest.events import MISSING, CollectiveArgs, TritonArgs
from gapless.ingest.gather import Rows
from gapless.ingest.lenient import JSON_PROBLEMS, loads, plain, struct_from
from gapless.ingest.order import row_order
from gapless.ingest.raw import empty_frame
from gapless.model import schema

I64 = NDArray[np.int64]


class Lanes:
    """Where events happened: host threads numbered by (pid, tid), devices and streams as integers."""

    def __init__(self, lanes: Sequence[tuple[object, object]]) -> None:
        self.pid = [_label(pid) for pid, _ in lanes]
        self.tid = [_label(tid) for _, tid in lanes]
        self._pid_number = np.array([_number(text) for text in self.pid] or [0], dtype=np.int64)
        self._tid_number = np.array([_number(text) for text in self.tid] or [0], dtype=np.int64)

    def label(self, lane: int) -> tuple[str, str]:
        """The (pid, tid) of a lane code, as text."""
        return self.pid[lane], self.tid[lane]

    def device(self, lane: NDArray[np.int32], own: I64 | None = None) -> I64:
        """The device index: from the event's args where it has one, else its pid, else -1."""
        fallback = self._pid_number[lane]
        return fallback if own is None else np.where(own == MISSING, fallback, own)

    def stream(self, lane: NDArray[np.int32], own: I64 | None = None) -> I64:
        """The stream id: from the event's args where it has one, else its tid, else -1."""
        fallback = self._tid_number[lane]
        return fallback if own is None else np.where(own == MISSING, fallback, own)

    def threads(self, used: Sequence[NDArray[np.int32]]) -> NDArray[np.uint32]:
        """Row of the threads table for every lane that some event in `used` has; others get 0."""
        flags = np.zeros(len(self.pid) or 1, dtype=np.bool_)
        for lane in used:
            flags[lane] = True
        keys = sorted(
            {(self.pid[i], self.tid[i]) for i in np.flatnonzero(flags)}, key=lambda k: (_order(k[0]), _order(k[1]))
        )
        self.host = keys
        row = {key: i for i, key in enumerate(keys)}
        return np.array([row.get(key, 0) for key in zip(self.pid, self.tid, strict=True)] or [0], dtype=np.uint32)


def _label(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value == value and abs(value) < 2**53 and value == int(value):
        return str(int(value))
    return str(value).encode("utf-8", "replace").decode()


def _number(label: str) -> int:
    """The first integer in `7`, `stream 7 user`, `-1`; -1 if there is none that fits."""
    for word in label.split():
        if len(word) < 19 and word.removeprefix("-").isdecimal() and word.isascii():
            return int(word)
    return -1


def _order(label: str) -> tuple[int, int, str]:
    number = _number(label)
    return (0, number, label) if str(number) == label else (1, 0, label)


class Assembler:
    """Builds frames from rows; holds what all tables share: names, texts, lanes and the origin."""

    def __init__(
        self, names: Sequence[str], texts: Sequence[bytes], lanes: Lanes, thread_of: NDArray[np.uint32], origin_ns: int
    ) -> None:
        self.names = names
        self.texts = texts
        self.lanes = lanes
        self.thread_of = thread_of
        self.origin_ns = origin_ns

    def _span(self, rows: Rows) -> list[pl.Series]:
        return [pl.Series("start_ns", rows.start - self.origin_ns), pl.Series("dur_ns", rows.dur)]

    def _name(self, rows: Rows) -> pl.Series:
        return series.enum("name", rows.name, self.names, series.clean_name)

    def _text(self, rows: Rows, column: str, clean: Callable[[bytes], str]) -> pl.Series:
        codes = rows.args[column]
        return series.enum(column, codes, self.texts, clean, codes == 0)

    def _thread(self, rows: Rows) -> pl.Series:
        return pl.Series("thread", self.thread_of[rows.lane])

    def _sorted(self, rows: Rows, key: NDArray[Any]) -> Rows:
        order = row_order(key, rows, self.names, self.texts, self.lanes.label)
        return rows if order is None else rows.take(order)

    def threads(self, names: Mapping[tuple[str, str], str]) -> pl.DataFrame:
        """The threads table; call after `Lanes.threads`."""
        host = self.lanes.host
        return pl.DataFrame(
            {
                "thread": pl.Series(range(len(host)), dtype=pl.UInt32),
                "pid": pl.Series([pid for pid, _ in host], dtype=pl.String),
                "tid": pl.Series([tid for _, tid in host], dtype=pl.String),
                "name": pl.Series([names.get(key, "") for key in host], dtype=pl.String),
            }
        )

    def ops(self, rows: Rows, annotation: NDArray[np.bool_]) -> tuple[pl.DataFrame, list[tuple[int, bytes]]]:
        """The ops table, and the args of ops that describe a collective or a Triton kernel by row."""
        rows.args["annotation"] = annotation
        rows = self._sorted(rows, self.thread_of[rows.lane])
        args = rows.args
        frame = pl.DataFrame(
            [
                *self._span(rows),
                self._thread(rows),
                self._name(rows),
                series.constant("kind", args["annotation"].astype(np.int64), ("op", "annotation")),
                series.nullable("external_id", args["external_id"], pl.Int64()),
                pl.Series("seq", args["seq"]),
                pl.Series("fwd_thread", args["fwd_thread"]),
                self._text(rows, "input_dims", series.json_text),
                self._text(rows, "input_types", series.json_text),
                self._text(rows, "input_strides", series.json_text),
                self._text(rows, "concrete_inputs", series.json_text),
                pl.Series("finished", args["finished"]),
            ]
        )
        extra = [(int(i), self.texts[args["extra"][i]]) for i in np.flatnonzero(args["extra"])]
        return frame, extra

    def frames(self, rows: Rows) -> pl.DataFrame:
        """The frames table."""
        rows = self._sorted(rows, self.thread_of[rows.lane])
        return pl.DataFrame(
            [
                *self._span(rows),
                self._thread(rows),
                self._name(rows),
                pl.Series("python_id", rows.args["python_id"]),
                pl.Series("parent_id", rows.args["parent_id"]),
                self._text(rows, "call_from", series.plain),
            ]
        )

    def calls(self, rows: Rows) -> pl.DataFrame:
        """The calls table."""
        rows = self._sorted(rows, self.thread_of[rows.lane])
        return pl.DataFrame(
            [
                *self._span(rows),
                self._thread(rows),
                self._name(rows),
                series.constant("api", rows.group_is("driver").astype(np.int64), ("runtime", "driver")),
                pl.Series("correlation", rows.args["correlation"]),
                series.nullable("external_id", rows.args["external_id"], pl.Int64()),
                series.nullable("size_bytes", rows.args["size_bytes"], pl.Int64()),
                self._text(rows, "copy_kind", series.plain),
            ]
        )

    def activities(self, rows: Rows) -> pl.DataFrame:
        """The activities table."""
        device = self.lanes.device(rows.lane, rows.args["device"])
        rows.args["device"] = device
        rows = self._sorted(rows, device)
        args = rows.args
        kind = np.where(rows.group_is("kernel"), 0, np.where(rows.group_is("memcpy"), 1, 2))
        name = self._name(rows)
        if args["other_name"].any():
            better = self._text(rows, "other_name", series.plain).cast(pl.String)
            merged = pl.select(pl.coalesce(better, name.cast(pl.String))).to_series()
            name = merged.cast(pl.Enum(merged.unique().sort())).alias("name")
        wide = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers", "shared_bytes")
        occupancy = args["occupancy_pct"]
        return pl.DataFrame(
            [
                *self._span(rows),
                pl.Series("device", args["device"]).cast(pl.Int32, strict=False).fill_null(-1),
                pl.Series("stream", self.lanes.stream(rows.lane, args["stream"])),
                series.constant("kind", kind, ("kernel", "memcpy", "memset")),
                name,
                pl.Series("correlation", args["correlation"]),
                series.nullable("external_id", args["external_id"], pl.Int64()),
                series.nullable("size_bytes", args["size_bytes"], pl.Int64()),
                *(series.nullable(column, args[column], pl.Int64()) for column in wide),
                pl.Series("occupancy_pct", occupancy).fill_nan(None),
                series.nullable("graph_id", args["graph_id"], pl.Int64()),
                series.nullable("graph_node", args["graph_node"], pl.Int64()),
                series.nullable("peer_device", args["peer_device"], pl.Int32()),
            ]
        )

    def gpu_syncs(self, rows: Rows) -> pl.DataFrame:
        """The gpu_syncs table; -1 stands for "no one stream", which some versions write as 2**32 - 1."""
        args = rows.args
        tid = self.lanes.stream(rows.lane)
        stream = np.where(args["stream"] == MISSING, np.where(tid >= 1_000_000, tid - 1_000_000, tid), args["stream"])
        rows.args["stream"] = np.where(stream == 2**32 - 1, -1, stream)
        rows.args["device"] = self.lanes.device(rows.lane, args["device"])
        rows = self._sorted(rows, rows.args["device"])
        args = rows.args
        return pl.DataFrame(
            [
                *self._span(rows),
                pl.Series("device", args["device"]).cast(pl.Int32, strict=False).fill_null(-1),
                pl.Series("stream", args["stream"]),
                self._name(rows),
                pl.Series("correlation", args["correlation"]),
                series.nullable("wait_on_stream", args["wait_on_stream"], pl.Int64()),
                series.nullable("wait_on_record_correlation", args["wait_on_record_correlation"], pl.Int64()),
            ]
        )

    def gpu_annotations(self, rows: Rows) -> pl.DataFrame:
        """The gpu_annotations table."""
        rows = self._sorted(rows, self.lanes.device(rows.lane))
        return pl.DataFrame(
            [
                *self._span(rows),
                pl.Series("device", self.lanes.device(rows.lane)).cast(pl.Int32, strict=False).fill_null(-1),
                pl.Series("stream", self.lanes.stream(rows.lane)),
                self._name(rows),
            ]
        )

    def memory(self, rows: Rows) -> pl.DataFrame:
        """The memory table."""
        rows = self._sorted(rows, np.zeros(len(rows), dtype=np.int8))
        args = rows.args
        return pl.DataFrame(
            [
                pl.Series("time_ns", rows.start - self.origin_ns),
                self._thread(rows),
                pl.Series("device_type", args["device_type"]),
                pl.Series("device_id", args["device_id"]),
                series.nullable("address", args["address"], pl.UInt64(), args["no_address"]),
                pl.Series("size_bytes", args["size_bytes"]),
                series.nullable("allocated_bytes", args["allocated_bytes"], pl.Int64()),
                series.nullable("reserved_bytes", args["reserved_bytes"], pl.Int64()),
                self._name(rows),
            ]
        )

    def named(self, rows: Rows) -> pl.DataFrame:
        """A table of spans with names alone (overheads, markers)."""
        rows = self._sorted(rows, np.zeros(len(rows), dtype=np.int8))
        return pl.DataFrame([*self._span(rows), self._name(rows)])


def described(extra: list[tuple[int, bytes]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The collectives and triton tables from the args of the ops that carry such descriptions."""
    collectives: list[dict[str, object]] = []
    kernels: list[dict[str, object]] = []
    for row, text in extra:
        try:
            values = plain(loads(series.plain(text)))
        except JSON_PROBLEMS:
            continue
        if "Collective name" in values:
            collective = msgspec.structs.asdict(struct_from(CollectiveArgs, values))
            waits = collective["is_async"]
            collectives.append({"op": row, **collective, "is_async": None if waits is None else bool(waits)})
        if "kernel_hash" in values:
            kernels.append({"op": row, **msgspec.structs.asdict(struct_from(TritonArgs, values))})
    return table_from(schema.COLLECTIVES, collectives), table_from(schema.TRITON, kernels)


def table_from(table: schema.Table, rows: Sequence[Mapping[str, object]]) -> pl.DataFrame:
    """A small table from rows of plain values."""
    frame = empty_frame(table)
    if not rows:
        return frame
    columns = []
    for column in table.columns:
        values = [row[column.name] for row in rows]
        if column.dtype == "enum":
            texts = [None if v is None else str(v).encode("utf-8", "replace").decode() for v in values]
            columns.append(pl.Series(column.name, texts, dtype=pl.Enum(sorted({t for t in texts if t is not None}))))
            continue
        if column.dtype == "i64":
            values = [None if v == MISSING else v for v in values]
        columns.append(pl.Series(column.name, values, dtype=frame.schema[column.name], strict=False))
    return pl.DataFrame(columns)
