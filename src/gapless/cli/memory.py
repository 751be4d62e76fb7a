"""How does a process that makes one report spend little time on memory?

What it makes lives until it is written, so looking for garbage in between finds none. And tables come and go: memory
given back to the system and asked for again costs a page fault for every 4 KiB, so freed memory is kept for what comes
next. Neither makes the process larger than it is at its largest moment.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's `mallopt`."""
KEPT_BYTES = 1 << 30
LARGEST_BYTES = 32 << 20
"""Blocks larger than this always come from the system; glibc allows no more."""


@contextmanager
def kept() -> Iterator[None]:
    """Keep freed memory from now on, and look for no garbage inside the `with` block."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
        mallopt(M_MMAP_THRESHOLD, LARGEST_BYTES)
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
