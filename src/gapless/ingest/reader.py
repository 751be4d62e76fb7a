"""How is a trace file read, from bytes to tables?

Blocks of unpacked text are cut into chunks at event borders while they arrive (`cutter`), and decoded by a pool of
processes (`workers`). Chunks that do not decode are read again, together with broken neighbours, by `salvage`; the end
of the event list is found that way too, since the text after it is no event.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gapless.ingest import toplevel
from gapless.ingest.columns import Chunk
from gapless.ingest.cutter import Cutter
from gapless.ingest.interns import Dictionaries
from gapless.ingest.issues import Issues
from gapless.ingest.pump import Progress, Pump
from gapless.ingest.salvage import note_separators, salvage
from gapless.ingest.sniff import looks_like
from gapless.ingest.source import Source, open_source
from gapless.ingest.workers import Pool, Result, WorkerDiedError, can_fork, decode
from gapless.model.errors import GaplessError, NotATraceError

if TYPE_CHECKING:
    from gapless.ingest.raw import RawTrace

CHUNK_BYTES = 1 << 20
"""Text decoded at once: some three thousand events, which fit the processor's cache."""

FORK_BYTES = 12 << 20
"""Texts shorter than this are not worth a process."""

HEADER_LIMIT = 256 << 20
"""No trace has so much text before its event list; it would all have to be kept."""

_BUFFER_SLACK = 4
"""Buffers are so many times larger than the least chunk: a chunk ends at the first border after that."""


@dataclass(slots=True)
class _Contents:
    """Everything in the file: chunks in order, the dictionaries of their codes, top-level keys, and how it ended."""

    chunks: list[Chunk]
    dictionaries: Dictionaries
    top: dict[str, object]
    bare: bool
    truncated: bool


def read(
    source: Source,
    *,
    progress: Progress | None = None,
    keep_frames: bool = True,
    chunk_bytes: int = CHUNK_BYTES,
    fork: bool | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> RawTrace:
    """All tables of the trace in `source`: a path, a URL or an object with `read`.

    `progress` is called with the bytes read so far and in all, if known. `fork` says whether to use more processes
    (None: where that is safe and worth it). `meanwhile` is called once, when all text is handed out and other processes
    still decode it: a good time for the caller's imports. Raises NotATraceError for anything else than a trace, EmptyTraceError for a
    trace without usable events, UsageError if the source cannot be opened.
    """
    fork = can_fork() if fork is None else fork
    try:
        return _read(source, progress, keep_frames, chunk_bytes, fork, meanwhile)
    except WorkerDiedError:
        if not isinstance(source, (str, Path)):
            raise GaplessError(
                f"{source}: a helper process died while reading, probably for lack of memory; free some and try again"
            ) from None
        return _read(source, progress, keep_frames, chunk_bytes, False, None)


def _read(
    source: Source,
    progress: Progress | None,
    keep_frames: bool,
    chunk_bytes: int,
    fork: bool,
    meanwhile: Callable[[], object] | None,
) -> RawTrace:
    opened, name, size = open_source(source)
    issues = Issues()
    collecting = gc.isenabled()
    gc.disable()  # millions of short-lived objects, none in cycles
    try:
        pump = Pump(opened, name, size, progress)
        contents = _contents(pump, name, issues, keep_frames, chunk_bytes, fork, meanwhile)
    finally:
        if collecting:
            gc.enable()
        if opened is not source:
            opened.close()  # type: ignore[attr-defined]
    from gapless.ingest.finish import File, finish

    file = File(name, pump.size_bytes, pump.sha256, contents.bare, contents.truncated)
    return finish(file, contents.top, contents.chunks, contents.dictionaries, issues)


def _contents(
    pump: Pump,
    name: str,
    issues: Issues,
    keep_frames: bool,
    chunk_bytes: int,
    fork: bool,
    meanwhile: Callable[[], object] | None,
) -> _Contents:
    pool = Pool(keep_frames=keep_frames)
    cutter = Cutter(chunk_bytes, pool.submit)
    head = b""
    try:
        for block in pump:
            head = head or block[: 64 << 10]
            if fork and not pool.started and pump.text_bytes >= FORK_BYTES:
                pool.start(chunk_bytes * _BUFFER_SLACK)
            cutter.feed(block)
            if not cutter.found and (pump.text_bytes > HEADER_LIMIT or not head.lstrip().startswith(b"{")):
                break
        if not cutter.found:
            raise _not_a_trace(name, head)
        cutter.end()
        pool.no_more()
        import gapless.ingest.finish  # noqa: F401 - polars takes long to import: workers decode meanwhile

        if meanwhile is not None:
            meanwhile()
        results = pool.finish()
    finally:
        pool.close()
    chunks, after = _joined([*results, cutter.rest], pool, issues, keep_frames)
    note_separators(cutter.odd_separators, issues)
    top: dict[str, object] = {}
    if not cutter.bare:
        top = toplevel.parse(cutter.before, issues, closed=False)
        if after is not None:
            top.update(toplevel.parse(after, issues, closed=True))
    elif not any(chunk.known for chunk in chunks):
        raise _not_a_trace(name, head)
    _say_truncated(pump, after is None, chunks, issues)
    return _Contents(chunks, pool.interns.snapshot(), top, cutter.bare, after is None)


def _joined(results: list[Result], pool: Pool, issues: Issues, keep_frames: bool) -> tuple[list[Chunk], bytes | None]:
    """All chunks up to the end of the list, broken stretches salvaged, and the text after the end, None if it is
    missing."""
    chunks: list[Chunk] = []
    i = 0
    while i < len(results):
        result = results[i]
        i += 1
        if isinstance(result, Chunk):
            chunks.append(result)
            continue
        stretch = [result]
        while i < len(results) and not isinstance(broken := results[i], Chunk):
            stretch.append(broken)
            i += 1
        text = b",".join(stretch)
        found = salvage(text, issues, last=i == len(results))
        if found.texts:
            chunk = decode(b"[" + b",".join(found.texts) + b"]", pool.interns, keep_frames, salvaged=True)
            assert isinstance(chunk, Chunk), "salvaged text decodes"
            chunks.append(chunk)
        if found.end is not None:
            after = [text[found.end + 1 :], *(r for r in results[i:] if not isinstance(r, Chunk))]
            return chunks, b",".join(after)
        if found.cut_off:
            what = "the event that the end of the file interrupts; left out"
            issues.add("cut-off-event", "loss", 1, what, found.cut_off.decode("utf-8", "replace"))
    return chunks, None


def _say_truncated(pump: Pump, truncated: bool, chunks: list[Chunk], issues: Issues) -> None:
    size = pump.text_bytes
    if pump.damage:
        issues.add("damaged-gzip", "loss", 1, f"the gzip data is damaged after {size} bytes of text", pump.damage)
    elif pump.cut:
        issues.add("truncated-gzip", "loss", 1, f"the gzip data ends early, after {size} bytes of text")
    if truncated:
        what = (
            f"the file stops inside its event list, at byte {size} of its text, after "
            f"{sum(chunk.events for chunk in chunks)} complete events; what would follow is missing from every number"
        )
        issues.add("truncated", "loss", 1, what)


def _not_a_trace(name: str, head: bytes) -> NotATraceError:
    what, advice = looks_like(head, name)
    return NotATraceError(
        f"{name}: not a PyTorch profiler trace; it looks like {what}. {advice[:1].upper()}{advice[1:]}"
    )
