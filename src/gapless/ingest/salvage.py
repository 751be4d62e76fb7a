"""How is a stretch of the event list read that the bulk decoder refuses? Event by event, in linear time.

The stretch is cut at every event border. What still does not decode alone is joined with its neighbours (a border may
lie inside a list in `args`), read with lenient types, or repaired. The result is well-formed text that the bulk decoder
takes. The end of the event list is recognised on the way.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from gapless.ingest import repair
from gapless.ingest.cutter import BORDER
from gapless.ingest.events import event_decoder, events_decoder
from gapless.ingest.issues import Issues
from gapless.ingest.lenient import JSON_PROBLEMS, PROBLEMS, event_text, loads

GROUP = 64
"""Events that are tried together first."""

JOIN_LIMIT = 64
"""Neighbouring pieces that may belong to one event."""

_LIST_END = re.compile(rb"\}[\s,]*\]|\A[\s,]*\]")
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]]', re.DOTALL)

_DETAILS = {
    repair.QUOTE: "unescaped quotes inside names or values (torch before 2.14 writes them); read as meant",
    repair.ESCAPE: "lone backslashes, as in Windows paths; read as meant",
    repair.CONTROL: "raw control characters inside strings; kept",
    repair.BARE_WORD: "bare nan, inf or N/A where JSON wants a value; read as missing",
    repair.COMMA_DECIMAL: "numbers with a decimal comma (a locale leaked into the recorder); read as meant",
    repair.STRAY_COMMA: "stray or missing commas, empty values; read as meant",
    "invalid-utf8": "bytes that are not UTF-8; replaced",
    "odd-types": "events whose fields have unusual types; what fits was read",
}


_EVENT = re.compile(rb'(?<=[,\n}])[ \t\r]*\{\s*"(?:ph|cat|name|ts)"\s*:')
"""Where an event may begin amid text that is broken."""


@dataclass(slots=True)
class Salvaged:
    """Well-formed texts of events in order; `end` is where the list closes, relative to the stretch, or None;
    `cut_off` is an event that the end of the file interrupts."""

    texts: list[bytes] = field(default_factory=list)
    end: int | None = None
    cut_off: bytes = b""


class _Stretch:
    def __init__(self, text: bytes, issues: Issues, last: bool) -> None:
        self.text = text
        self.issues = issues
        self.last = last
        self.starts: list[int] = [0]
        self.ends: list[int] = []
        self.result = Salvaged()

    def run(self) -> Salvaged:
        for border in BORDER.finditer(self.text):
            if border.group().count(b",") != 1:
                note_separators(1, self.issues)
            self.ends.append(border.start() + 1)
            self.starts.append(border.end())
        self.ends.append(len(self.text))
        i, count = 0, len(self.starts)
        while i < count and self.result.end is None:
            j = min(i + GROUP, count)
            if j - i > 1 and self._fits(self.text[self.starts[i] : self.ends[j - 1]], events_decoder.decode, b"[%b]"):
                i = j
                continue
            while i < j and self.result.end is None:
                i += self._one(i)
        return self.result

    def _fits(self, text: bytes, decode: Callable[[bytes], object], wrapped: bytes = b"%b") -> bool:
        try:
            decode(wrapped % text)
        except PROBLEMS:
            return False
        self.result.texts.append(text)
        return True

    def _one(self, i: int) -> int:
        """Read the event that begins piece `i`; returns how many pieces were used."""
        piece, start = self.text[self.starts[i] : self.ends[i]], self.starts[i]
        if not piece.strip() or self._decoded(piece) or self._list_end(piece, start):
            return 1
        if used := self._joined(i):
            return used
        if self._repaired(piece):
            return 1
        last = self.last and i == len(self.starts) - 1
        begins = [0, *(found.start() for found in _EVENT.finditer(piece, 1))]
        for begin, end in zip(begins, [*begins[1:], len(piece)], strict=True):
            if self.result.end is not None:
                break
            self._part(piece[begin:end].rstrip(b" \t\r\n,"), start + begin, last=last and end == len(piece))
        return 1

    def _part(self, part: bytes, start: int, *, last: bool) -> None:
        """Read what may be an event amid broken text: all of it, or the whole object that it begins with."""
        if self._decoded(part) or self._list_end(part, start) or self._repaired(part):
            return
        whole = _object_end(part)
        if whole and self._decoded(part[:whole]):
            part = part[whole:].lstrip(b" \t\r\n,")
        if last:
            self.result.cut_off = part
        elif part:
            what = "events that no repair makes readable; left out of every number"
            self.issues.add("unreadable-event", "loss", 1, what, part.decode("utf-8", "replace"))

    def _decoded(self, piece: bytes) -> bool:
        return self._fits(piece, event_decoder.decode) or self._loose(piece)

    def _loose(self, piece: bytes) -> bool:
        """Read valid JSON with unusual types."""
        try:
            msgspec.json.decode(piece, type=msgspec.Raw)
            text = piece.decode()
            values = loads(text)
        except PROBLEMS:
            return False
        return isinstance(values, dict) and self._kept(values, {"odd-types": text})

    def _kept(self, values: dict[str, object], kinds: dict[str, str]) -> bool:
        try:
            clean = event_text(values)
        except PROBLEMS:
            return False
        if not self._fits(clean, event_decoder.decode):
            return False
        for kind, example in kinds.items():
            self.issues.add(kind, "repaired", 1, _DETAILS[kind], example)
        return True

    def _list_end(self, piece: bytes, offset: int) -> bool:
        """Whether the list closes inside this piece; reads the event before the bracket."""
        for number, found in enumerate(_LIST_END.finditer(piece)):
            if number >= GROUP:
                break
            event = piece[: found.start() + 1] if found.group().startswith(b"}") else b""
            if not event or self._decoded(event) or self._repaired(event):
                self.result.end = offset + found.end() - 1
                return True
        return False

    def _joined(self, i: int) -> int:
        """Pieces that form one event with piece `i`: while brackets are open, the next piece belongs to it."""
        depth = 0
        for j in range(i, min(i + JOIN_LIMIT, len(self.starts))):
            for token in _TOKEN.finditer(self.text, self.starts[j], self.ends[j]):
                first = token.group()[:1]
                depth += (first in b"{[") - (first in b"}]")
            if depth <= 0:
                return j - i + 1 if j > i and self._decoded(self.text[self.starts[i] : self.ends[j]]) else 0
        return 0

    def _repaired(self, piece: bytes) -> bool:
        kinds: dict[str, str] = {}
        try:
            text = piece.decode()
        except UnicodeDecodeError:
            text = piece.decode("utf-8", "replace")
            kinds["invalid-utf8"] = text
        try:
            mended, repairs = repair.repair(text)
            values = loads(mended)
        except (repair.BeyondRepairError, *JSON_PROBLEMS):
            return False
        return isinstance(values, dict) and self._kept(values, kinds | repairs or {"odd-types": text})


def _object_end(text: bytes) -> int:
    """Where the object ends that `text` begins with; 0 if it does not end."""
    depth = 0
    for token in _TOKEN.finditer(text):
        first = token.group()[:1]
        depth += (first in b"{[") - (first in b"}]")
        if depth <= 0:
            return token.end()
    return 0


def note_separators(count: int, issues: Issues) -> None:
    """Count places where not one comma lies between two events."""
    issues.add(repair.STRAY_COMMA, "repaired", count, _DETAILS[repair.STRAY_COMMA], "between two events")


def salvage(text: bytes, issues: Issues, *, last: bool) -> Salvaged:
    """The events of a stretch that begins at an event; `last` if the file ends with it."""
    return _Stretch(text, issues, last).run()
