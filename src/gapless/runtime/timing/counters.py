"""Which counts of torch itself grew: allocations from the driver, compiled frames?"""

from __future__ import annotations

import sys

import torch

__all__ = ["allocation_counts", "compile_counts"]

_DEVICE = ("num_device_alloc", "num_device_free", "num_alloc_retries", "num_sync_all_streams")


def allocation_counts() -> dict[str, int]:
    """Calls that went to the driver for device or pinned host memory so far."""
    stats = torch.cuda.memory_stats()
    counts = {key: int(stats.get(key, 0)) for key in _DEVICE}
    host_stats = getattr(torch.cuda, "host_memory_stats", None)
    if host_stats is not None:
        counts["num_host_alloc"] = int(host_stats().get("num_host_alloc", 0))
    return counts


def compile_counts() -> dict[str, int]:
    """Frames and graphs torch.compile has made so far; all zero where it was never imported."""
    utils = sys.modules.get("torch._dynamo.utils")
    counters = getattr(utils, "counters", None)
    if counters is None:
        return {"frames_compiled": 0, "unique_graphs": 0}
    return {
        "frames_compiled": int(counters.get("frames", {}).get("ok", 0)),
        "unique_graphs": int(counters.get("stats", {}).get("unique_graphs", 0)),
    }
