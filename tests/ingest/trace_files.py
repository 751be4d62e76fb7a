"""Small traces as text, and a comparison of two read traces."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

from polars.testing import assert_frame_equal

from gapless.ingest import read
from gapless.ingest.raw import RawTrace
from gapless.model import schema


def span(
    cat: str, name: str, ts: float | str, dur: float | str, pid: Any = 100, tid: Any = 100, **args: Any
) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def kernel(name: str, ts: float, dur: float, correlation: int = 1, stream: int = 7, **args: Any) -> dict[str, Any]:
    return span("kernel", name, ts, dur, 0, stream, device=0, stream=stream, correlation=correlation, **args)


def text_of(*events: dict[str, Any], **top: Any) -> str:
    return json.dumps({"schemaVersion": 1, "traceEvents": list(events), **top})


def read_text(text: str | bytes, **options: Any) -> RawTrace:
    return read(io.BytesIO(text.encode() if isinstance(text, str) else text), **options)


def read_events(*events: dict[str, Any], **top: Any) -> RawTrace:
    return read_text(text_of(*events, **top))


def gz(data: bytes) -> bytes:
    return gzip.compress(data, compresslevel=1)


def codes(raw: RawTrace) -> dict[str, int]:
    """Issue codes and counts."""
    return dict(zip(raw.issues["code"], raw.issues["count"], strict=True))


def assert_same(left: RawTrace, right: RawTrace) -> None:
    """All tables are equal; so are the facts that do not depend on how the file was stored."""
    for table in schema.TABLES:
        assert_frame_equal(getattr(left, table.name), getattr(right, table.name))
    for fact in (
        "events",
        "origin_ns",
        "rank",
        "flags",
        "devices",
        "truncated",
        "integer_us",
        "versions",
        "other_keys",
    ):
        assert getattr(left.meta, fact) == getattr(right.meta, fact), fact
    counted = [{key: n for key, (n, _) in raw.meta.size_by_category.items()} for raw in (left, right)]
    assert counted[0] == counted[1]


def assert_declared(raw: RawTrace) -> None:
    """Every table has the declared columns, nulls only where allowed, and no time before zero."""
    for table in schema.TABLES:
        frame = getattr(raw, table.name)
        assert frame.columns == table.names(), table.name
        for column in table.columns:
            if not column.null:
                assert frame[column.name].null_count() == 0, (table.name, column.name)
        for column in ("start_ns", "dur_ns", "time_ns"):
            if column in frame.columns and frame.height:
                assert frame[column].min() >= 0, (table.name, column)
