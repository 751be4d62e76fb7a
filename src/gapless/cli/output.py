"""How does a result leave the program? Data to stdout or a file, everything else to stderr."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TextIO

from gapless.model.errors import UsageError


def width() -> int:
    """Columns of the terminal: COLUMNS, else as measured, else 80."""
    return shutil.get_terminal_size((80, 24)).columns


def color(args: argparse.Namespace, stream: TextIO | None = None) -> bool:
    """Whether to colour: as asked, else on a terminal unless NO_COLOR is set."""
    if args.color != "auto":
        return str(args.color) == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return (stream or sys.stdout).isatty()


def write(text: str, target: str | None = None) -> None:
    """Write text to stdout, or to a file that is complete or absent; a file's path is then said on stderr."""
    if target is not None and target != "-":
        write_bytes(text.encode("utf-8", "replace"), target)
        return
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:
        from gapless.render import safe

        sys.stdout.write("\n".join(safe.ascii_only(line) for line in text.split("\n")))


def write_bytes(data: bytes, target: str | None = None) -> None:
    """Write bytes to a file that is complete or absent, or to stdout unless that is a terminal."""
    if target is None or target == "-":
        if sys.stdout.isatty():
            raise UsageError("binary output does not belong on a terminal; name a file with -o FILE")
        sys.stdout.buffer.write(data)
        return
    path = Path(target)
    if not path.parent.is_dir():
        raise UsageError(
            f"{target}: the folder {path.parent} does not exist, so nothing can be written; create it first"
        )
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    say(f"wrote {target}")


def say(message: str) -> None:
    """One line beside the data: to stderr."""
    from gapless.render import safe

    line = safe.sentence(message)
    try:
        print(line, file=sys.stderr)
    except UnicodeEncodeError:
        print(safe.ascii_only(line), file=sys.stderr)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
