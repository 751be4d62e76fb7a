"""Which folder holds the cache, what is in it, and what has to leave when it grows too large?

Every entry is a folder named after the digest of a trace file's bytes and of the reader that made it. An entry appears
by the rename of a finished temporary folder, so readers see all of it or nothing. Whoever loses a race throws its own
copy away. The last use of an entry is the modification time of its folder.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

DEFAULT_LIMIT_BYTES = 2 << 30
"""Entries used longest ago leave when all together are larger than this."""

_UNFINISHED = ".new-"
_ABANDONED_SECONDS = 24 * 3600


def default_cache_dir(environ: Mapping[str, str]) -> Path:
    """`GAPLESS_CACHE_DIR`, else `gapless` below the user's cache folder."""
    if chosen := environ.get("GAPLESS_CACHE_DIR"):
        return Path(chosen)
    if shared := environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "gapless"
    if local := environ.get("LOCALAPPDATA"):
        return Path(local) / "gapless" / "cache"
    return Path(environ.get("HOME", "~")).expanduser() / ".cache" / "gapless"


def new_folder(cache_dir: Path) -> Path:
    """An empty folder for an entry in the making."""
    cache_dir.mkdir(parents=True, exist_ok=True)
    folder = cache_dir / f"{_UNFINISHED}{os.getpid()}-{secrets.token_hex(8)}"
    folder.mkdir()
    return folder


def publish(folder: Path, entry: Path, *, replace: bool) -> None:
    """Make a finished folder the entry; with `replace` an entry that exists is known to be damaged."""
    if replace:
        discarded = entry.with_name(f"{_UNFINISHED}old-{secrets.token_hex(8)}")
        with contextlib.suppress(OSError):
            entry.rename(discarded)
            discard(discarded)
    try:
        folder.rename(entry)
    except OSError:  # another process was first: its entry is as good
        discard(folder)


def discard(folder: Path) -> None:
    """Remove a folder, if possible."""
    shutil.rmtree(folder, ignore_errors=True)


def touch(entry: Path) -> None:
    """Note that an entry was used."""
    with contextlib.suppress(OSError):
        os.utime(entry)


def size_bytes(folder: Path) -> int:
    """Bytes of the files in a folder."""
    with contextlib.suppress(OSError), os.scandir(folder) as files:
        return sum(file.stat().st_size for file in files)
    return 0


def evict(cache_dir: Path, limit_bytes: int) -> None:
    """Remove the entries used longest ago until the rest fits, and folders that some process abandoned."""
    entries: list[tuple[float, int, Path]] = []
    now = time.time()
    with contextlib.suppress(OSError), os.scandir(cache_dir) as found:
        for item in found:
            with contextlib.suppress(OSError):
                if not item.is_dir(follow_symlinks=False):
                    continue
                used = item.stat().st_mtime
                if not item.name.startswith(_UNFINISHED):
                    entries.append((used, size_bytes(Path(item.path)), Path(item.path)))
                elif now - used > _ABANDONED_SECONDS:
                    discard(Path(item.path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit_bytes:
            break
        discard(path)
        total -= size
