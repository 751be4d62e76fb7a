"""How does our own record get into the trace file, exactly and cheaply, also after the file was written?

The profiler's JSON is compressed as it is, without its closing brace; the key `gapless` and the brace follow as the
last bytes. The body is flushed to a byte boundary, so `amend` rewrites only the tail: facts that are known later (the
baseline after the window) cost a copy of the compressed bytes, never a second compression. The result is one gzip
member that every reader accepts.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

KEY = "gapless"
_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_CHUNK = 1 << 20
_EVENT = re.compile(rb'"ph": ?"X"')
_GPU_EVENT = re.compile(rb'"cat": ?"(?:kernel|gpu_memcpy|gpu_memset)"')


@dataclass(frozen=True, slots=True)
class Written:
    """A trace file whose metadata can still be changed."""

    path: Path
    body_bytes: int
    """Compressed bytes up to where the metadata begins."""
    crc: int
    size_bytes: int
    """Bytes of JSON in the body."""


def count_events(raw: Path) -> tuple[int, int]:
    """Events in an exported JSON file that carry a duration, and how many of them are work on a GPU."""
    events = gpu = 0
    with raw.open("rb") as source:
        while block := source.read(_CHUNK):
            # Whole lines, so that nothing is cut in two: the profiler writes many lines an event.
            block += source.readline()
            events += len(_EVENT.findall(block))
            gpu += len(_GPU_EVENT.findall(block))
    return events, gpu


def _body_end(raw: Path) -> int:
    """Offset of the closing brace of the top-level object."""
    size = raw.stat().st_size
    with raw.open("rb") as source:
        source.seek(max(0, size - 64))
        tail = source.read()
    stripped = tail.rstrip()
    if not stripped.endswith(b"}"):
        raise ValueError(f"{raw.name}: the profiler's JSON does not end in a brace; it was not written completely")
    return size - len(tail) + len(stripped) - 1


def write(raw: Path, target: Path, record: Mapping[str, object], *, level: int = 4) -> Written:
    """Compress the profiler's JSON at `raw` to `target` with `record` under the key `gapless`."""
    left = _body_end(raw)
    packer = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    crc = size = 0
    part = target.with_name(target.name + ".part")
    with raw.open("rb") as source, part.open("wb") as out:
        out.write(_HEADER)
        while left and (chunk := source.read(min(_CHUNK, left))):
            left -= len(chunk)
            crc = zlib.crc32(chunk, crc)
            size += len(chunk)
            out.write(packer.compress(chunk))
        out.write(packer.flush(zlib.Z_FULL_FLUSH))
        written = Written(target, out.tell(), crc, size)
        out.write(_tail(written, record))
    part.replace(target)
    return written


def amend(written: Written, record: Mapping[str, object]) -> None:
    """Replace the metadata of a file that `write` made; the file is whole at every instant."""
    part = written.path.with_name(written.path.name + ".part")
    shutil.copyfile(written.path, part)
    with part.open("r+b") as out:
        out.truncate(written.body_bytes)
        out.seek(0, os.SEEK_END)
        out.write(_tail(written, record))
    part.replace(written.path)


def _tail(written: Written, record: Mapping[str, object]) -> bytes:
    """The compressed metadata, the closing brace and the gzip trailer."""
    text = f',\n"{KEY}": {json.dumps(record, allow_nan=False)}\n}}\n'.encode()
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    crc, size = zlib.crc32(text, written.crc), written.size_bytes + len(text)
    return packer.compress(text) + packer.flush() + struct.pack("<II", crc, size & 0xFFFFFFFF)
