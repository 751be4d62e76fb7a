"""Which host clock is read, and is it still the one this process started with?"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

__all__ = ["now_ns", "patched", "wait_for_device"]

now_ns: Callable[[], int] = time.perf_counter_ns
wait_for_device: Callable[[torch.device], None] = torch.cuda.synchronize
"""The sync of import time: a later patch does not reach the measurement, only H19."""

_BUILTIN = type(time.perf_counter_ns)
_WATCHED: tuple[tuple[str, object, str, str], ...] = (
    ("time.perf_counter_ns", time, "perf_counter_ns", "time"),
    ("time.perf_counter", time, "perf_counter", "time"),
    ("torch.cuda.synchronize", torch.cuda, "synchronize", "torch.cuda"),
    ("torch.cuda.Event.record", torch.cuda.Event, "record", "torch.cuda"),
    ("torch.cuda.Event.elapsed_time", torch.cuda.Event, "elapsed_time", "torch.cuda"),
    ("torch.cuda.Event.synchronize", torch.cuda.Event, "synchronize", "torch.cuda"),
)
_AT_IMPORT = {name: getattr(owner, attribute, None) for name, owner, attribute, _ in _WATCHED}


def patched() -> list[str]:
    """Names of clock or sync functions that were replaced since import, or do not come from where they should."""
    found = []
    for name, owner, attribute, origin in _WATCHED:
        current = getattr(owner, attribute, None)
        if current is not _AT_IMPORT[name]:
            found.append(name)
        elif owner is time:
            if not isinstance(current, _BUILTIN):
                found.append(name)
        elif not str(getattr(current, "__module__", "") or origin).startswith("torch"):
            found.append(name)
    return found
