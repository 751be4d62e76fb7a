"""How does a verb read a trace? With a progress bar, and through the cache unless told otherwise."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from gapless.cli.progress import ReadProgress

if TYPE_CHECKING:
    from gapless.api import Trace


def load(path: str, args: argparse.Namespace) -> Trace:
    """The trace at `path`; `-` is stdin."""
    from gapless import api
    from gapless.store import default_cache_dir

    with ReadProgress("stdin" if path == "-" else PurePath(path).name) as progress:
        return api.load(
            sys.stdin.buffer if path == "-" else path,
            cache=not args.no_cache,
            cache_dir=Path(args.cache_dir) if args.cache_dir else default_cache_dir(os.environ),
            progress=progress,
        )
