"""Can torch's trace hooks be turned off again? With the flag that torch itself reads before each of them.

torch turns its hooks on for good. While they are on, each allocation, free and event costs a call into Python; worse, a
tensor that is freed while an exception travels runs a hook with that exception pending, and torch then loses the
exception (a SystemError takes its place). So the hooks are on only while somebody holds the switch.
"""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path

import torch

_SYMBOL = "_ZN3c104impl8GPUTrace9haveStateE"
_LIBRARIES = ("libc10.so", "libc10.dylib")


class TraceSwitch:
    """The hooks are on while at least one caller holds them."""

    def __init__(self, flag: ctypes.c_bool) -> None:
        self._flag = flag
        self._lock = threading.Lock()
        self._holders = 0

    def hold(self) -> None:
        """On, until `release` was called as often as `hold`."""
        with self._lock:
            self._holders += 1
            if self._holders == 1:
                self._flag.value = True

    def release(self) -> None:
        """Ends one hold."""
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self._flag.value = False


def hooks_flag() -> ctypes.c_bool | None:
    """torch's own flag, or None where this torch does not show it (Windows, another build)."""
    folder = Path(torch.__file__).parent / "lib"
    for name in _LIBRARIES:
        if (folder / name).exists():
            try:
                return ctypes.c_bool.in_dll(ctypes.CDLL(str(folder / name)), _SYMBOL)
            except (OSError, ValueError):
                return None
    return None
