"""How does a timeline travel inside a page? Columns cut to the bytes they need, gzipped, in base64.

Layout of the unpacked bytes: `GPL1`, the length of a JSON header as little-endian uint32, the header, the columns.
The header holds strings, lanes and ranges, and lists the columns in order: group, name, rows, planes, base, delta.
A column is stored as `planes` byte planes (all lowest bytes first), which gzip squeezes better than rows; with `delta`
each value is the zigzag difference to the one before. Value = `base` + stored number, or running sum from `base`.
Times are relative to the header's `origin_ns`, so that every number fits a float's 53 bits.
"""

from __future__ import annotations

import base64
import gzip
import json
import struct
from dataclasses import asdict, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gapless.model.timeline import Column, Timeline
from gapless.render import safe

MAGIC = b"GPL1"
_GROUPS = ("boxes", "arrows", "strip", "queue", "chain")
_TIMES = ("start_ns", "time_ns")


def encode(timeline: Timeline) -> str:
    """The timeline as base64 text."""
    origin = origin_ns(timeline)
    header: dict[str, Any] = {
        "origin_ns": origin,
        "strings": [safe.line(s) if "\n" not in s else safe.block(s) for s in timeline.strings],
        "lanes": [{**asdict(lane), "name": safe.line(lane.name)} for lane in timeline.lanes],
        "steps": [_range(r.name, r.start_ns, r.end_ns, r.used, origin) for r in timeline.steps],
        "shown": [_range(r.name, r.start_ns, r.end_ns, r.used, origin) for r in timeline.shown],
        "places": [[p.finding, p.start_ns - origin, p.dur_ns, p.box] for p in timeline.places],
        "focus": timeline.focus,
        "notes": [safe.sentence(n) for n in timeline.notes],
        "columns": [],
    }
    planes: list[bytes] = []
    for group in _GROUPS:
        table = getattr(timeline, group)
        for field in fields(table):
            values = as_array(getattr(table, field.name))
            if field.name in _TIMES:
                values = values - origin
            _pack(header, planes, group, field.name, values)
    if timeline.overview:
        over = timeline.overview
        header["overview"] = {
            "start": over.start_ns - origin, "end": over.end_ns - origin, "families": list(over.families),
        }  # fmt: skip
        for family, share in zip(over.families, over.shares, strict=True):
            _pack(header, planes, "overview", family, as_array(share))
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    raw = b"".join([MAGIC, struct.pack("<I", len(text)), text, *planes])
    return base64.b64encode(gzip.compress(raw, 6, mtime=0)).decode("ascii")


def origin_ns(timeline: Timeline) -> int:
    """The instant that the page calls zero: the first one that any range or box names."""
    firsts = [r.start_ns for r in (*timeline.steps, *timeline.shown)]
    firsts += [min(c) for c in (timeline.boxes.start_ns, timeline.strip.start_ns, timeline.queue.time_ns) if len(c)]
    return min(firsts, default=0)


def as_array(column: Column) -> NDArray[np.int64]:
    """A column as a numpy array, without a copy."""
    return np.frombuffer(column, dtype=np.int64) if len(column) else np.zeros(0, dtype=np.int64)


def _range(name: str, start: int, end: int, used: bool, origin: int) -> list[Any]:
    return [safe.line(name), start - origin, end - origin, used]


def _pack(header: dict[str, Any], planes: list[bytes], group: str, name: str, values: NDArray[np.int64]) -> None:
    plain, base = _unsigned(values)
    steps = np.diff(values, prepend=values[:1]) if values.size else values
    zigzag = ((steps << 1) ^ (steps >> 63)).astype(np.uint64)
    delta = _width(zigzag) < _width(plain) or (values.size > 0 and name in _TIMES)
    stored, first = (zigzag, int(values[0]) if values.size else 0) if delta else (plain, base)
    width = _width(stored)
    header["columns"].append([group, name, int(values.size), width, first, int(delta)])
    matrix = stored.view(np.uint8).reshape(-1, 8) if stored.size else np.zeros((0, 8), dtype=np.uint8)
    planes.append(np.ascontiguousarray(matrix[:, :width].T).tobytes())


def _unsigned(values: NDArray[np.int64]) -> tuple[NDArray[np.uint64], int]:
    if values.size == 0:
        return values.astype(np.uint64), 0
    base = int(values.min())
    return (values - base).astype(np.uint64), base


def _width(values: NDArray[np.uint64]) -> int:
    top = int(values.max()) if values.size else 0
    return (top.bit_length() + 7) // 8
