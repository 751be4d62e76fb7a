"""How is a trace file read, from bytes to tables?

Blocks of unpacked text go to a shared text (`text`), are cut into chunks at event borders (`split`) while they arrive,
and are decoded by a pool of processes (`workers`). Chunks that do not decode are read again, together with broken
neighbours, by `salvage`; the end of the event list is found that way too, since the text after it is no event.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gapless.ingest import toplevel
from gapless.ingest.columns import Chunk
from gapless.ingest.decode import UnreadableChunkError, decode_chunk
from gapless.ingest.issues import Issues
from gapless.ingest.pump import Pump
from gapless.ingest.salvage import salvage
from gapless.ingest.sniff import looks_like
from gapless.ingest.source import Source, open_source
from gapless.ingest.split import BORDER, EVENT_LIST
from gapless.ingest.text import Text
from gapless.ingest.workers import Pool, can_fork
from gapless.model.errors import NotATraceError

if TYPE_CHECKING:
    from gapless.ingest.raw import RawTrace

CHUNK_BYTES = 4 << 20
"""Text decoded at once: some ten thousand events."""

LAST_BYTES = 64 << 10
"""The last border is looked for in so much text, to keep the stretch that holds the list's end short."""

_HEAD_BYTES = 64 << 10
_KEY_BYTES = 64


@dataclass(slots=True)
class Layout:
    """Places in the text: where the key before the event list begins, and where its first event does."""

    key: int
    first: int
    bare: bool


class _Cutter:
    """Finds the event list and cuts it, block by block."""

    def __init__(self, pool: Pool, chunk_bytes: int) -> None:
        self.layout: Layout | None = None
        self.head = b""
        self._pool = pool
        self._chunk_bytes = chunk_bytes
        self._before = bytearray()
        self._searched = 0
        self._begin = 0

    def feed(self, block: bytes, offset: int) -> None:
        """Take the block of text at `offset`."""
        if self.layout is None:
            self._find_list(block)
            if self.layout is None:
                return
            block, offset = bytes(self._before), 0
            self._before.clear()
        at = max(self._begin + self._chunk_bytes - offset, self._begin - offset, 0)
        while at < len(block) and (border := BORDER.search(block, at)):
            self._cut(offset + border.start() + 1, offset + border.end())
            at = self._begin + self._chunk_bytes - offset

    def last(self, block: bytes, offset: int) -> int:
        """Cut once more near the end of the text, whose last `block` is at `offset`; returns where the rest begins."""
        borders = list(BORDER.finditer(block, max(self._begin - offset, 0)))
        if borders:
            self._cut(offset + borders[-1].start() + 1, offset + borders[-1].end())
        return self._begin

    def _cut(self, end: int, begin: int) -> None:
        self._pool.submit(self._begin, end)
        self._begin = begin

    def _find_list(self, block: bytes) -> None:
        self._before += block
        if len(self.head) < _HEAD_BYTES:
            self.head = bytes(self._before[:_HEAD_BYTES])
        start = len(self._before) - len(self._before.lstrip())
        if self._before[start : start + 1] == b"[":
            self.layout = Layout(start, start + 1, True)
        elif found := EVENT_LIST.search(self._before, self._searched):
            self.layout = Layout(found.start(), found.end(), False)
        if self.layout is not None:
            self._begin = self.layout.first
        self._searched = max(0, len(self._before) - _KEY_BYTES)

    @property
    def hopeless(self) -> bool:
        """Whether what was seen so far cannot become a trace."""
        return self.layout is None and bool(self.head.strip()) and not self.head.lstrip().startswith(b"{")


@dataclass(slots=True)
class Contents:
    """Everything in the file: chunks in order, top-level keys, dictionaries inside the pool, and what was odd."""

    chunks: list[Chunk]
    top: dict[str, object]
    bare: bool
    truncated: bool


def read(
    source: Source,
    *,
    progress: Callable[[int, int | None], None] | None = None,
    keep_frames: bool = True,
) -> RawTrace:
    """All tables of the trace in `source`: a path, a URL or an object with `read`.

    `progress` is called with the bytes read so far and in all, if known. Raises NotATraceError for anything else than a
    trace, EmptyTraceError for a trace without usable events, UsageError if the source cannot be opened.
    """
    return read_with(source, progress=progress, keep_frames=keep_frames)


def read_with(
    source: Source,
    *,
    progress: Callable[[int, int | None], None] | None = None,
    keep_frames: bool = True,
    chunk_bytes: int = CHUNK_BYTES,
    fork: bool | None = None,
) -> RawTrace:
    """`read` with its tuning: size of chunks, and whether to use forked workers (None: where it is safe)."""
    opened, name, size = open_source(source)
    text = Text()
    collecting = gc.isenabled()
    gc.disable()  # millions of short-lived objects, none in cycles
    try:
        pump = Pump(opened, size, progress)
        pool = Pool(text, keep_frames=keep_frames, fork=can_fork() if fork is None else fork)
        issues = Issues()
        try:
            contents = _contents(pump, pool, text, name, issues, keep_frames, chunk_bytes)
        finally:
            pool.close()
    finally:
        if collecting:
            gc.enable()
        text.close()
        if opened is not source:
            opened.close()  # type: ignore[attr-defined]
    from gapless.ingest.finish import File, finish

    file = File(name, pump.size_bytes, pump.sha256, contents.bare, contents.truncated)
    return finish(file, contents.top, contents.chunks, pool.interns.snapshot(), issues)


def _contents(
    pump: Pump, pool: Pool, text: Text, name: str, issues: Issues, keep_frames: bool, chunk_bytes: int
) -> Contents:
    cutter = _Cutter(pool, chunk_bytes)
    for block in pump:
        offset = text.size
        text.append(block)
        cutter.feed(block, offset)
        if cutter.hopeless:
            break
    layout = cutter.layout
    if layout is None:
        raise _not_a_trace(name, cutter.head)
    tail = max(text.size - LAST_BYTES, layout.first)
    rest = cutter.last(text.read(tail, text.size), tail)
    import gapless.ingest.finish  # noqa: F401 - polars takes long to import: workers decode meanwhile

    parts = [*pool.finish(), (rest, text.size, None)]
    chunks, end = _joined(parts, pool, text, issues, keep_frames)
    top: dict[str, object] = {}
    if not layout.bare:
        top = toplevel.parse(text.read(0, layout.key), issues, closed=False)
        if end is not None:
            top.update(toplevel.parse(text.read(end + 1, text.size), issues, closed=True))
    if layout.bare and all(chunk.events == sum(n for n, _ in chunk.unknown.values()) for chunk in chunks):
        raise _not_a_trace(name, cutter.head)
    _say_truncated(pump, text, end, chunks, issues)
    return Contents(chunks, top, layout.bare, end is None)


def _joined(
    parts: list[tuple[int, int, Chunk | None]], pool: Pool, text: Text, issues: Issues, keep_frames: bool
) -> tuple[list[Chunk], int | None]:
    """All chunks, broken stretches salvaged, up to the end of the list; and the place of its closing bracket."""
    chunks: list[Chunk] = []
    i = 0
    while i < len(parts):
        start, end, chunk = parts[i]
        i += 1
        if chunk is not None:
            chunks.append(chunk)
            continue
        while i < len(parts) and parts[i][2] is None:
            end = parts[i][1]
            i += 1
        found = salvage(text.read(start, end), issues, last=end == text.size)
        if found.texts:
            try:
                joined = b"[" + b",".join(found.texts) + b"]"
                chunks.append(decode_chunk(joined, pool.interns, keep_frames=keep_frames))
            except UnreadableChunkError as error:  # pragma: no cover - salvage only returns what decodes
                raise AssertionError("salvaged text does not decode") from error
        if found.end is not None:
            return chunks, start + found.end
        if found.cut_off:
            issues.add(
                "cut-off-event",
                "loss",
                1,
                "the event that the end of the file interrupts; left out",
                found.cut_off.decode("utf-8", "replace"),
            )
    return chunks, None


def _say_truncated(pump: Pump, text: Text, end: int | None, chunks: list[Chunk], issues: Issues) -> None:
    size = text.size
    if pump.damage:
        issues.add("damaged-gzip", "loss", 1, f"the gzip data is damaged after {size} bytes of text", pump.damage)
    elif pump.cut:
        issues.add("truncated-gzip", "loss", 1, f"the gzip data ends early, after {size} bytes of text")
    if end is None:
        events = sum(chunk.events for chunk in chunks)
        what = (
            f"the file stops inside its event list, at byte {size} of its text, after {events} complete events; "
            "what would follow is missing from every number"
        )
        issues.add("truncated", "loss", 1, what, text.read(max(0, size - 60), size).decode("utf-8", "replace"))


def _not_a_trace(name: str, head: bytes) -> NotATraceError:
    what, advice = looks_like(head, name)
    return NotATraceError(
        f"{name}: not a PyTorch profiler trace; it looks like {what}. {advice[:1].upper()}{advice[1:]}"
    )
