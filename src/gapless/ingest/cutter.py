"""Where does the event list begin, and where is it cut into chunks, while its text arrives block by block?

A cut is made before a `{` that follows `}` and commas or blanks and opens with one of the event keys. In valid JSON no
such place lies inside a string (a quote there is escaped), so the only wrong cuts fall between objects of a list inside
an event's `args`; both neighbours of such a cut then fail to decode, and are read again together.
"""

from __future__ import annotations

import re
from collections.abc import Callable

EVENT_LIST = re.compile(rb'(?<!\\)"traceEvents"\s*:\s*\[')
"""The key of the event list and its opening bracket."""

BORDER = re.compile(rb'\}[\s,]*(?=\{\s*"(?:ph|cat|name|pid|tid|ts|dur|args|id|s|bp)"\s*:)')
"""The end of one event and what separates it from the next: one comma, if the file is well-formed."""

LAST_BYTES = 64 << 10
"""The last cut is made within so much text, to keep what follows short: it holds the end of the list."""

_KEY_BYTES = 128
"""No border or key that matters is longer, so a search may begin so much before new text."""


class Cutter:
    """Passes `[...]` of whole events on, at least `chunk_bytes` at a time; the receiver must copy what it keeps.

    `before` is the text up to the event list, `rest` what follows the last cut. `bare` says that the text is a list,
    `odd_separators` counts cuts where not one comma lay between two events.
    """

    def __init__(self, chunk_bytes: int, emit: Callable[[memoryview], None]) -> None:
        self.before = b""
        self.bare = False
        self.found = False
        self.odd_separators = 0
        self._chunk_bytes = chunk_bytes
        self._emit = emit
        self._text = bytearray()

    @property
    def rest(self) -> bytes:
        """Text after the last cut; all text if no event list was found."""
        return bytes(self._text[1:] if self.found else self._text)

    def feed(self, block: bytes) -> None:
        """Take the next block."""
        new = max(len(self._text) - _KEY_BYTES, 0)
        self._text += block
        if not self.found:
            self._find_list(new)
            new = 0
        if self.found:
            self._cut(new)

    def end(self) -> None:
        """Cut a last time."""
        borders = list(BORDER.finditer(self._text, max(len(self._text) - LAST_BYTES, 1))) if self.found else []
        if borders:
            self._pass(borders[-1])

    def _find_list(self, new: int) -> None:
        start = len(self._text) - len(self._text.lstrip())
        if self._text[start : start + 1] == b"[":
            self.bare = self.found = True
            first = start + 1
        elif found := EVENT_LIST.search(self._text, new):
            self.found = True
            self.before = bytes(self._text[: found.start()])
            first = found.end()
        else:
            return
        self._text[:first] = b"["

    def _cut(self, new: int) -> None:
        while border := BORDER.search(self._text, max(new, self._chunk_bytes)):
            self._pass(border)
            new = 0

    def _pass(self, border: re.Match[bytes]) -> None:
        """Emit the events before `border`; keep the text after it."""
        text = self._text
        end, begin = border.start() + 1, border.end()
        self.odd_separators += border.group().count(b",") != 1
        covered = text[end]
        text[end] = ord("]")
        with memoryview(text) as view, view[: end + 1] as events:
            self._emit(events)
        text[end] = covered
        del text[: begin - 1]
        text[0] = ord("[")
