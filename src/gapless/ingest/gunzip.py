"""How is gzip unpacked so that what can be read of a cut or damaged file is kept?

The container is read here and the deflate data by isal, since a wrong checksum must not cost the text it belongs to.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import cast

from isal import isal_zlib

MAGIC = b"\x1f\x8b"

STEP_BYTES = 32 << 10
"""Stored bytes unpacked at once: so many are lost where data is damaged."""

_EXTRA, _NAME, _COMMENT, _CHECKSUM = 4, 8, 16, 2
_MAX_HEADER = 1 << 17
_IsalError = cast("type[Exception]", isal_zlib.error)


class Gunzip:
    """Unpacks a stream of stored bytes; afterwards `cut` says that it ended early, `damage` what is wrong with it."""

    def __init__(self) -> None:
        self.damage = ""
        self._pending = b""
        self._inflate = isal_zlib.decompressobj(wbits=-15)
        self._state = "header"
        self._crc = 0
        self._size = 0

    @property
    def cut(self) -> bool:
        """Whether the last member is incomplete."""
        return self._state != "done" and not (self._state == "header" and not self._pending)

    def feed(self, stored: bytes) -> Iterator[bytes]:
        """Text of the next stored bytes."""
        for begin in range(0, len(stored), STEP_BYTES):
            yield from self._step(stored[begin : begin + STEP_BYTES])

    def _step(self, stored: bytes) -> Iterator[bytes]:
        data = self._pending + stored
        self._pending = b""
        while data and not self.damage and self._state != "done":
            if self._state == "header":
                end = _header_end(data)
                if end is None:
                    if len(data) > _MAX_HEADER:
                        self.damage = "endless gzip header"
                    self._pending = data
                    return
                data = data[end:]
                self._state = "text"
            elif self._state == "text":
                try:
                    text = self._inflate.decompress(data)
                except _IsalError as error:
                    self.damage = str(error)
                    return
                self._crc = isal_zlib.crc32(text, self._crc)
                self._size += len(text)
                if text:
                    yield text
                data = b""
                if self._inflate.eof:
                    data = self._inflate.unused_data
                    self._state = "trailer"
            elif len(data) < 8:
                self._pending = data
                return
            else:
                if struct.unpack("<II", data[:8]) != (self._crc, self._size % 2**32):
                    self.damage = "the checksum does not match the text"
                data = self._next_member(data[8:])

    def _next_member(self, data: bytes) -> bytes:
        """Bytes after a member that are no member (padding) are ignored."""
        self._inflate = isal_zlib.decompressobj(wbits=-15)
        self._crc = self._size = 0
        self._state = "header"
        if data and not MAGIC.startswith(data[:2]):
            self._state = "done"
            return b""
        return data


def _header_end(data: bytes) -> int | None:
    """Where the header at the start of `data` ends; None if it is not all there."""
    if len(data) < 10:
        return None
    flags = data[3]
    end = 10
    if flags & _EXTRA:
        if len(data) < end + 2:
            return None
        end += 2 + int.from_bytes(data[end : end + 2], "little")
    for flag in (_NAME, _COMMENT):
        if flags & flag:
            zero = data.find(b"\0", end)
            if zero < 0:
                return None
            end = zero + 1
    if flags & _CHECKSUM:
        end += 2
    return end if end <= len(data) else None
