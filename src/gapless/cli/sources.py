"""Which traces does a command line name? Files, folders, globs, `-` for stdin, remote addresses; several are ranks."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gapless.model.errors import UsageError
from gapless.model.stack_names import stack_names

SUFFIXES = (".json", ".json.gz")


@dataclass(frozen=True, slots=True)
class Source:
    """One trace to read. `named=False`: found in a folder or by a glob, so it may turn out to be no trace."""

    path: str
    named: bool = True


def expand(words: Sequence[str]) -> list[Source]:
    """The traces that the words name, in the words' order, folders and globs in natural order; none twice."""
    found: dict[str, Source] = {}
    for word in words:
        for source in _expand_one(word):
            found.setdefault(source.path, source)
    if "-" in found and len(found) > 1:
        raise UsageError("- (stdin) stands for one trace and cannot be mixed with files; name the files only")
    return list(found.values())


def _expand_one(word: str) -> list[Source]:
    if word == "-" or "://" in word:
        return [Source(word)]
    path = Path(word)
    if path.is_dir():
        files = (str(p) for p in path.iterdir() if p.name.endswith(SUFFIXES) and p.is_file())
        inside = sorted(_without_stack_windows(files), key=natural)
        if not inside:
            raise UsageError(
                f"{word}: the folder holds no *.json or *.json.gz, so there is no trace to read; name a file"
            )
        return [Source(p, named=len(inside) == 1) for p in inside]
    if path.exists():
        return [Source(word)]
    if glob.has_magic(word):
        # Path.glob takes no absolute pattern.
        files = (m for m in glob.glob(word, recursive=True) if Path(m).is_file())  # noqa: PTH207
        matches = sorted(_without_stack_windows(files), key=natural)
        if matches:
            return [Source(m, named=len(matches) == 1) for m in matches]
        raise UsageError(f"{word}: no file matches; check the pattern, or name a file")
    raise UsageError(f"{word}: no such file; check the path, or give the folder that holds the traces")


def _without_stack_windows(paths: Iterable[str]) -> list[str]:
    """Those that are not the window with stacks of another one: that is read with its own trace, and is no rank."""
    every = set(paths)
    named = {str(Path(path).with_name(name)) for path in every for name in stack_names(Path(path).name)}
    return [path for path in every if path not in named and str(Path(path)) not in named]


def natural(text: str) -> list[tuple[int, int, str]]:
    """Sort key in which rank 2 comes before rank 10."""
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in re.split(r"(\d+)", text)]
