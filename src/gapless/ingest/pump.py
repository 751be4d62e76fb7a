"""How do the bytes of a source become blocks of text? Unpacks gzip (by its magic bytes), hashes, reports progress."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import cast

from isal import isal_zlib

from gapless.ingest.source import Readable

GZIP_MAGIC = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"

_GzipError = cast("type[Exception]", isal_zlib.error)

_READ_PACKED = 128 << 10
"""Bytes read at once from a gzip source: traces shrink 10 to 20 times, so a block unpacks to some 2 MB."""
_READ_PLAIN = 4 << 20

Progress = Callable[[int, int | None], None]


class Pump:
    """Iterates over blocks of text; afterwards tells what was read and whether the source was cut or damaged."""

    def __init__(self, source: Readable, size: int | None, progress: Progress | None) -> None:
        self._source = source
        self._size = size
        self._progress = progress
        self._hash = hashlib.sha256()
        self._next = self._fetch(_READ_PACKED)
        self.packed = self._next[:2] == GZIP_MAGIC
        self.size_bytes = 0
        self.text_bytes = 0
        self.cut = False
        self.damage = ""

    @property
    def sha256(self) -> str:
        """Digest of the bytes as stored; complete once all blocks were read."""
        return self._hash.hexdigest()

    def _fetch(self, size: int) -> bytes:
        data = self._source.read(size)
        if isinstance(data, str):
            data = data.encode("utf-8", "surrogateescape")
        return bytes(data)

    def _stored(self) -> Iterator[bytes]:
        size = _READ_PACKED if self.packed else _READ_PLAIN
        while self._next:
            self._hash.update(self._next)
            self.size_bytes += len(self._next)
            yield self._next
            if self._progress is not None:
                self._progress(self.size_bytes, self._size)
            self._next = self._fetch(size)

    def __iter__(self) -> Iterator[bytes]:
        blocks = self._unpacked() if self.packed else self._stored()
        first = True
        for block in blocks:
            if not block:
                continue
            text = block.removeprefix(BOM) if first else block
            first = False
            self.text_bytes += len(text)
            yield text

    def _unpacked(self) -> Iterator[bytes]:
        """Text of all gzip members; bytes after the last member that are no member are ignored."""
        member = isal_zlib.decompressobj(wbits=31)
        for stored in self._stored():
            data = stored
            while data and not self.damage:
                if member.eof:
                    data = data.lstrip(b"\0")
                    if not data.startswith(GZIP_MAGIC):
                        break
                    member = isal_zlib.decompressobj(wbits=31)
                try:
                    text = member.decompress(data)
                except _GzipError as error:
                    self.damage = str(error)
                    break
                yield text
                data = member.unused_data if member.eof else b""
        self.cut = not member.eof
