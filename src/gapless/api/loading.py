"""How does a file become a `Trace`?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO

from gapless.api.sibling import stack_file
from gapless.api.trace import Trace
from gapless.store import load as load_raw


def load(
    source: str | Path | BinaryIO,
    *,
    cache: bool = True,
    cache_dir: Path | None = None,
    stacks: str | Path | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Trace:
    """Read a trace: a path (plain or gzip), an fsspec URL, or an open binary file.

    `stacks` is a window of the same program that was recorded with stacks: reports on a trace without them take file and
    line from there. Where none is given, it is the one that `gapless run` wrote, or `x.stack.json.gz` beside `x.json.gz`.
    With `cache` and a `cache_dir` the tables are kept there, keyed by the file's content, and the next read is quick.
    Raises NotATraceError or EmptyTraceError with one line that says what the file looks like and what to do.
    """
    where = cache_dir if cache else None
    raw = load_raw(source, cache_dir=where, progress=progress)
    beside = stack_file(raw, source) if stacks is None else Path(stacks)
    return Trace(raw, stacks=None if beside is None else partial(load_raw, beside, cache_dir=where))
