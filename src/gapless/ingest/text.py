"""Where is the unpacked text kept, so that several processes can read parts of it?"""

from __future__ import annotations

import os
import tempfile


class Text:
    """Bytes in an unnamed file, in memory where the system offers that; a forked process shares it."""

    def __init__(self) -> None:
        if hasattr(os, "memfd_create"):
            self.fd = os.memfd_create("gapless")
        else:
            with tempfile.TemporaryFile() as file:
                self.fd = os.dup(file.fileno())
        self.size = 0

    def append(self, block: bytes) -> None:
        """Add to the end."""
        view = memoryview(block)
        while view:
            view = view[os.write(self.fd, view) :]
        self.size += len(block)

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` to `end`."""
        parts = []
        while start < end and (part := os.pread(self.fd, end - start, start)):
            parts.append(part)
            start += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read_list(self, start: int, end: int) -> bytearray:
        """The bytes from `start` to `end` between square brackets, without copying them twice."""
        text = bytearray(end - start + 2)
        text[0], text[-1] = b"[]"
        view = memoryview(text)[1:-1]
        while view and (count := os.preadv(self.fd, [view], start)):
            view = view[count:]
            start += count
        return text

    def close(self) -> None:
        """Give the memory back."""
        os.close(self.fd)
