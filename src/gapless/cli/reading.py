"""How does a verb read a trace? With a progress bar, and through the cache unless told otherwise."""

from __future__ import annotations

import argparse
import sys
from pathlib import PurePath
from typing import TYPE_CHECKING

from gapless.cli import options
from gapless.cli.progress import ReadProgress

if TYPE_CHECKING:
    from gapless.api import Trace


def load(path: str, args: argparse.Namespace) -> Trace:
    """The trace at `path`; `-` is stdin."""
    from gapless import api

    with ReadProgress("stdin" if path == "-" else PurePath(path).name) as progress:
        return api.load(
            sys.stdin.buffer if path == "-" else path,
            cache=not args.no_cache,
            cache_dir=options.cache_dir(args),
            progress=progress,
        )
