"""Traces from literal tables: one short row an event, whole nanoseconds, everything else as a plain file has it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gapless.analyses.study import Study, StudyOptions, study
from gapless.ingest.assemble import table_from
from gapless.ingest.raw import RawTrace, empty_frame
from gapless.model import schema
from gapless.model.meta import TraceMeta

Row = dict[str, Any]
MAIN, AUTOGRAD, OTHER = 0, 1, 2
LAUNCH, SYNC = "cudaLaunchKernel", "cudaDeviceSynchronize"


def op(start: int, end: int, name: str = "aten::mul", thread: int = MAIN, **more: Any) -> Row:
    """An operator."""
    plain = {"kind": "op", "seq": -1, "fwd_thread": -1, "finished": True}
    return {"start_ns": start, "dur_ns": end - start, "thread": thread, "name": name, **plain, **more}


def mark(start: int, end: int, name: str, thread: int = MAIN) -> Row:
    """An annotation."""
    return op(start, end, name, thread, kind="annotation")


def frame(start: int, end: int, name: str, thread: int = MAIN, **more: Any) -> Row:
    """A Python frame."""
    plain = {"python_id": -1, "parent_id": -1}
    return {"start_ns": start, "dur_ns": end - start, "thread": thread, "name": name, **plain, **more}


def call(start: int, end: int, name: str = LAUNCH, correlation: int = -1, thread: int = MAIN, **more: Any) -> Row:
    """A runtime call."""
    where = {"start_ns": start, "dur_ns": end - start, "thread": thread, "name": name}
    return {**where, "api": "runtime", "correlation": correlation, **more}


def work(start: int, end: int, correlation: int = -1, stream: int = 7, **more: Any) -> Row:
    """A kernel, or what `kind` says."""
    where = {"start_ns": start, "dur_ns": end - start, "device": 0, "stream": stream, "correlation": correlation}
    return {**where, "kind": "kernel", "name": "kernel", **more}


def overhead(start: int, end: int, name: str) -> Row:
    """An overhead row."""
    return {"start_ns": start, "dur_ns": end - start, "name": name}


def raw(
    *, ops: Sequence[Row] = (), calls: Sequence[Row] = (), activities: Sequence[Row] = (), frames: Sequence[Row] = (),
    gpu_syncs: Sequence[Row] = (), overheads: Sequence[Row] = (), threads: int = 3, **meta: Any,
) -> RawTrace:  # fmt: skip
    """The tables, rows in the order of a reader: thread or device, start, longest first."""
    given = {"ops": ops, "calls": calls, "activities": activities, "frames": frames, "gpu_syncs": gpu_syncs,
             "overheads": overheads}  # fmt: skip
    rows: dict[str, list[Row]] = {
        name: sorted(some, key=lambda r: (r.get("thread", r.get("device", 0)), r["start_ns"], -r["dur_ns"]))
        for name, some in given.items()
    }
    rows["threads"] = [{"thread": i, "pid": "1", "tid": str(i), "name": ""} for i in range(threads)]
    tables = {
        table.name: table_from(table, [{c.name: row.get(c.name) for c in table.columns} for row in rows[table.name]])
        if table.name in rows
        else empty_frame(table)
        for table in schema.TABLES
    }
    return RawTrace(meta=TraceMeta("literal", 0, "", "kineto", 1, 0, **meta), **tables)


def studied(options: StudyOptions | None = None, **tables: Any) -> Study:
    """All analyses of literal tables."""
    return study(raw(**tables), options)


def steps(*bounds: int) -> list[Row]:
    """Markers of a main thread that steps without pause at these times."""
    return [mark(low, high, f"ProfilerStep#{i}") for i, (low, high) in enumerate(itertools.pairwise(bounds))]


def launched(*rows: tuple[int, int, int, int], name: str = LAUNCH, stream: int = 7) -> tuple[list[Row], list[Row]]:
    """Calls and their kernels from rows (call start, call end, kernel start, kernel end), correlations 1, 2, ..."""
    calls = [call(low, high, name, number) for number, (low, high, _, _) in enumerate(rows, 1)]
    return calls, [work(low, high, number, stream) for number, (_, _, low, high) in enumerate(rows, 1)]


def pieces(line: tuple[Any, Any, Any]) -> list[tuple[int, int, int]]:
    """A line as rows (start, end, label)."""
    return list(zip(*(np.asarray(column).tolist() for column in line), strict=True))
