"""How do the bytes of a source become blocks of text? Unpacks gzip (by its magic bytes), hashes, reports progress."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

from gapless.ingest.gunzip import MAGIC, Gunzip
from gapless.ingest.source import Readable, one_line
from gapless.model.errors import GaplessError

BOM = b"\xef\xbb\xbf"

_READ_PACKED = 128 << 10
_READ_PLAIN = 2 << 20
"""Bytes read at once; traces shrink 10 to 20 times in gzip."""

Progress = Callable[[int, int | None], None]


class Pump:
    """Iterates over blocks of text; afterwards tells what was read and whether the source was cut or damaged."""

    def __init__(self, source: Readable, name: str, size: int | None, progress: Progress | None) -> None:
        self._source = source
        self._name = name
        self._size = size
        self._progress = progress
        self._hash = hashlib.sha256()
        self.size_bytes = 0
        self._next = self._fetch(_READ_PACKED)
        self.packed = self._next[:2] == MAGIC
        self.text_bytes = 0
        self.cut = False
        self.damage = ""

    @property
    def sha256(self) -> str:
        """Digest of the bytes as stored; complete once all blocks were read."""
        return self._hash.hexdigest()

    def _fetch(self, size: int) -> bytes:
        try:
            data = self._source.read(size)
        except (OSError, ValueError) as error:
            raise GaplessError(
                f"{self._name}: reading failed after {self.size_bytes} bytes ({one_line(error)}); "
                "check the disk or connection, or copy the file and try again"
            ) from error
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
        gunzip = Gunzip()
        for stored in self._stored():
            yield from gunzip.feed(stored)
        self.damage = gunzip.damage
        self.cut = gunzip.cut and not gunzip.damage
