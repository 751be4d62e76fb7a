"""How is a trace read through the cache?

The key is the SHA-256 of the file's bytes, so a renamed or copied file is known and a changed one is not, together
with a mark of the reader, so that tables made by other rules are not taken for today's. The cache only ever saves time:
where its folder cannot be read or written, the trace is read as if there were none.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import gapless
from gapless import ingest
from gapless.ingest.source import Source, from_bytes, open_source
from gapless.store import folder

if TYPE_CHECKING:
    from gapless.ingest.raw import RawTrace

Progress = Callable[[int, int | None], None]


def load(
    source: Source,
    *,
    cache_dir: Path | None,
    progress: Progress | None = None,
    max_cache_bytes: int = folder.DEFAULT_LIMIT_BYTES,
    meanwhile: Callable[[], object] | None = None,
) -> RawTrace:
    """The trace in `source`, from the cache if it is there; `cache_dir` None means no cache. Raises like `read`;
    `progress` and `meanwhile` are those of `read`."""
    if cache_dir is None:
        return ingest.read(source, progress=progress, meanwhile=meanwhile)
    name, digest, again = _identify(source)
    entry = cache_dir / f"{digest}-{reader_mark()}"
    damaged = False
    if entry.exists():
        from gapless.store import entry as stored

        try:
            raw = stored.read(entry)
            folder.touch(entry)
            return dataclasses.replace(raw, meta=dataclasses.replace(raw.meta, path=name))
        except stored.DamagedError:
            damaged = True
    raw = ingest.read(again, progress=progress, meanwhile=meanwhile)
    if raw.meta.sha256 == digest:
        _keep(raw, entry, damaged, max_cache_bytes)
    return raw


def _identify(source: Source) -> tuple[str, str, Source]:
    """The name to show, the digest of all bytes, and what to read them from once more."""
    opened, name, _ = open_source(source)
    digest = hashlib.sha256()
    try:
        if isinstance(source, (str, Path)) and Path(source).is_file():
            while block := opened.read(1 << 20):
                digest.update(block)
            return name, digest.hexdigest(), source
        data = opened.read()  # a stream, a pipe or a download can be read only once
        data = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else bytes(data)
        digest.update(data)
        return name, digest.hexdigest(), from_bytes(data, name)
    finally:
        if opened is not source:
            opened.close()  # type: ignore[attr-defined]


def _keep(raw: RawTrace, entry: Path, damaged: bool, max_cache_bytes: int) -> None:
    from gapless.store import entry as stored

    try:
        new = folder.new_folder(entry.parent)
        stored.write(raw, new)
        if folder.size_bytes(new) > max_cache_bytes:
            folder.discard(new)
            return
        folder.publish(new, entry, replace=damaged)
        folder.evict(entry.parent, max_cache_bytes)
    except Exception:  # a full disk, odd metadata: no reason to lose the trace that was just read
        return


@cache
def reader_mark() -> str:
    """A short digest that changes with this version of gapless and with the files that decide what the tables hold."""
    digest = hashlib.sha256(gapless.__version__.encode())
    root = Path(gapless.__file__).parent
    for part in ("ingest", "model"):
        with os.scandir(root / part) as files:
            for file in sorted((f for f in files if f.name.endswith(".py")), key=lambda f: f.name):
                facts = file.stat()
                digest.update(f"{file.name} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:12]
