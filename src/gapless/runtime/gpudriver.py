"""Has the GPU reached the end of this stream or event, and how long must the host wait until it has?

torch's trace hooks hand out raw handles; the driver's own library answers for them without torch objects.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Literal

import torch

SyncKind = Literal["device", "stream", "event"]

_DONE = 0
_NOT_READY = 600


class Driver:
    """Queries and waits on raw handles; every answer is None where the driver cannot say (capture, lost context)."""

    def __init__(self, library: ctypes.CDLL, prefix: str, device_wait: str) -> None:
        self._query: dict[str, Callable[[ctypes.c_void_p], int]] = {
            "stream": getattr(library, f"{prefix}StreamQuery"),
            "event": getattr(library, f"{prefix}EventQuery"),
        }
        self._wait: dict[str, Callable[[ctypes.c_void_p], int]] = {
            "stream": getattr(library, f"{prefix}StreamSynchronize"),
            "event": getattr(library, f"{prefix}EventSynchronize"),
        }
        self._wait_device: Callable[[], int] = getattr(library, device_wait)

    def done(self, kind: SyncKind, handle: int) -> bool | None:
        """Whether everything queued before is finished; never waits. A device cannot be asked."""
        if kind == "device":
            return None
        code = self._query[kind](ctypes.c_void_p(handle))
        return True if code == _DONE else False if code == _NOT_READY else None

    def wait(self, kind: SyncKind, handle: int) -> bool:
        """Waits as the caller is about to; False if the driver refused."""
        if kind == "device":
            return self._wait_device() == _DONE
        return self._wait[kind](ctypes.c_void_p(handle)) == _DONE


@cache
def load_driver() -> Driver | None:
    """The driver of the GPUs torch was built for, or None where it cannot be loaded."""
    if torch.version.hip:
        candidates, prefix, device_wait = ["libamdhip64.so"], "hip", "hipDeviceSynchronize"
    elif torch.version.cuda:
        names = ["nvcuda.dll"] if sys.platform == "win32" else ["libcuda.so.1", "libcuda.so"]
        candidates, prefix, device_wait = names, "cu", "cuCtxSynchronize"
    else:
        return None
    for name in candidates:
        try:
            return Driver(ctypes.CDLL(name), prefix, device_wait)
        except (OSError, AttributeError):
            continue
    return None
