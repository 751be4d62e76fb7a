"""How does a verb read a trace? With a progress bar, and through the cache unless told otherwise."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from gapless.cli.progress import ReadProgress
from gapless.model.errors import UsageError

if TYPE_CHECKING:
    from gapless.api import Trace
    from gapless.ingest.raw import RawTrace
    from gapless.model.calibration import Calibration


def load(path: str, args: argparse.Namespace) -> Trace:
    """The trace at `path`; `-` is stdin.

    What reports on it is imported by the reader, while its workers still decode.
    """
    raw = _read(path, args, _imports)
    from gapless.api import Trace

    return Trace(raw, stacks=_stacks(raw, path, args))


def _read(path: str, args: argparse.Namespace, meanwhile: Callable[[], None] | None = None) -> RawTrace:
    from gapless import store

    source = sys.stdin.buffer if path == "-" else path
    folder = Path(args.cache_dir) if args.cache_dir else store.default_cache_dir(os.environ)
    with ReadProgress("stdin" if path == "-" else PurePath(path).name) as progress:
        return store.load(source, cache_dir=None if args.no_cache else folder, progress=progress, meanwhile=meanwhile)


def _stacks(raw: RawTrace, path: str, args: argparse.Namespace) -> Callable[[], RawTrace] | None:
    """What reads the window with stacks that was named, else the one beside the trace.

    Raises UsageError for a name that is no file or holds no stacks, and for a trace that has stacks of its own.
    """
    from gapless.api.sibling import stack_file

    given: str | None = getattr(args, "stacks", None)
    if given is None:
        beside = stack_file(raw, path)
        return None if beside is None else lambda: _read(str(beside), args)
    if given == "none":
        return None
    if raw.frames.height:
        raise UsageError(f"--stacks {given}: {path} has stacks of its own, which are used; leave the flag out")
    if not Path(given).is_file():
        raise UsageError(f"--stacks {given}: no such file; name the trace that was recorded with stacks, or none")
    named = _read(given, args)
    if named.frames.height == 0:
        raise UsageError(f"--stacks {given}: it was recorded without stacks; name a trace that has them, or none")
    return lambda: named


def _imports() -> None:
    from gapless import api
    from gapless.rules.registry import rules

    del api
    rules()


def calibration_for(trace: Trace, args: argparse.Namespace) -> Calibration | None:
    """What `gapless calibrate` measured for the machine of this trace: the named file, else what is kept here.

    Raises UsageError where the named file holds no calibration.
    """
    from gapless.model import calibration

    if args.calibration == "none":
        return None
    if args.calibration is not None:
        found = calibration.read(Path(args.calibration))
        if found is None:
            raise UsageError(
                f"--calibration {args.calibration}: not a file that `gapless calibrate` wrote; run it where the trace was "
                "recorded, or leave the flag out"
            )
        return found
    if not trace.meta.devices:
        return None
    return calibration.stored_for(
        calibration.folder(os.environ), trace.meta.devices[0].name, trace.meta.versions.get("torch")
    )
