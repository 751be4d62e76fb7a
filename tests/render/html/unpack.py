"""The wire format's other reader: what the page's script does, in plain Python, from the description alone."""

from __future__ import annotations

import base64
import gzip
import json
import re
import struct
from typing import Any

Columns = dict[str, dict[str, list[int]]]


def unpack(text: str) -> tuple[dict[str, Any], Columns]:
    """The header, and group -> column -> values."""
    raw = gzip.decompress(base64.b64decode(text))
    assert raw[:4] == b"GPL1"
    (length,) = struct.unpack("<I", raw[4:8])
    header = json.loads(raw[8 : 8 + length])
    at = 8 + length
    columns: Columns = {}
    for group, name, rows, planes, base, delta in header["columns"]:
        block = raw[at : at + rows * planes]
        at += rows * planes
        stored = [sum(block[p * rows + i] << (8 * p) for p in range(planes)) for i in range(rows)]
        columns.setdefault(group, {})[name] = _sums(stored, base) if delta else [base + v for v in stored]
    assert at == len(raw)
    return header, columns


def _sums(zigzag: list[int], base: int) -> list[int]:
    out, value = [], base
    for z in zigzag:
        value += z // 2 if z % 2 == 0 else -(z + 1) // 2
        out.append(value)
    return out


def of_page(page: str) -> tuple[dict[str, Any], Columns]:
    """The timeline that a page carries."""
    found = re.search(r'<script type="text/plain" id="timeline-data">([^<]*)</script>', page)
    assert found
    return unpack(found.group(1))
