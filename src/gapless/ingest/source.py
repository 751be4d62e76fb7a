"""How do we get at the bytes of a trace: a path, a URL, an object with `read`?"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Protocol, runtime_checkable

from gapless.model.errors import UsageError


@runtime_checkable
class Readable(Protocol):
    """A binary object with `read`."""

    def read(self, size: int = -1, /) -> bytes:
        """Some bytes, empty at the end."""
        ...


Source = str | Path | Readable


def open_source(source: Source) -> tuple[Readable, str, int | None]:
    """A readable object, the name to show for it, and its size in bytes if known. The caller closes the object."""
    if isinstance(source, str) and "://" in source:
        return _open_url(source)
    if isinstance(source, (str, Path)):
        path = Path(source)
        try:
            return path.open("rb"), str(source), path.stat().st_size
        except IsADirectoryError as error:
            raise UsageError(f"{source}: a folder, not a trace file; name one file in it") from error
        except OSError as error:
            raise UsageError(
                f"{source}: cannot be read ({error.strerror or error}); check the path and your rights"
            ) from error
    return source, str(getattr(source, "name", "(stream)")), None


def one_line(error: Exception) -> str:
    """Kind and text of an error on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _open_url(url: str) -> tuple[Readable, str, int | None]:
    try:
        import fsspec
    except ImportError as error:
        raise UsageError(
            f"{url}: reading URLs needs fsspec; run `pip install 'gapless[remote]'` or download the file"
        ) from error
    try:
        opened = fsspec.open(url, "rb").open()
    except Exception as error:
        raise UsageError(
            f"{url}: cannot be opened ({one_line(error)}); check the address or download the file"
        ) from error
    size = getattr(opened, "size", None)
    return opened, url, size if isinstance(size, int) else None


def from_bytes(data: bytes, name: str) -> Readable:
    """A readable object with a name, for bytes already in memory (standard input)."""
    stream = io.BytesIO(data)
    stream.name = name
    return stream
