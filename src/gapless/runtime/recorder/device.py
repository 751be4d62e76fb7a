"""Which accelerator does this process use, and how is it drained, without ever initialising one?"""

from __future__ import annotations

from typing import Any

import torch


def _modules() -> list[str]:
    """Accelerator types to look at, the one torch names itself first."""
    names: list[str] = []
    current = getattr(getattr(torch, "accelerator", None), "current_accelerator", None)
    if current is not None:
        try:
            found = current()
        except RuntimeError:
            found = None
        if found is not None:
            names.append(str(found.type))
    return [*names, *(name for name in ("cuda", "xpu") if name not in names)]


def in_use() -> str | None:
    """The accelerator this process has initialised ('cuda', 'xpu', 'mps', ...), or None: CPU only so far."""
    for name in _modules():
        module: Any = getattr(torch, name, None)
        if module is None:
            continue
        if name == "mps":
            return name
        initialized = getattr(module, "is_initialized", None)
        try:
            if initialized is not None and initialized():
                return name
        except (RuntimeError, AssertionError):
            continue
    return None


def synchronize(kind: str | None) -> None:
    """Wait for all work queued on the current device of that kind; nothing to do on a CPU."""
    if kind is not None:
        getattr(torch, kind).synchronize()


def is_capturing(kind: str | None) -> bool:
    """Whether the current stream is recording a graph, when synchronising would break it."""
    return kind == "cuda" and bool(torch.cuda.is_current_stream_capturing())


def is_hip() -> bool:
    """Whether 'cuda' means an AMD GPU here."""
    return getattr(torch.version, "hip", None) is not None


def name(kind: str | None) -> str:
    """The current device's name as torch gives it, or 'CPU'."""
    if kind in ("cuda", "xpu"):
        return str(getattr(torch, kind).get_device_name())
    return "CPU" if kind is None else kind.upper()


def limits(kind: str | None) -> list[str]:
    """What cannot be recorded on this backend, as sentences; empty where everything can."""
    if kind is None:
        return []
    if kind == "mps":
        return ["MPS: torch.profiler records the host only, so GPU busy time and gaps stay unknown"]
    profiler: Any = torch.profiler
    activities = {str(a).rsplit(".", 1)[-1] for a in profiler.supported_activities()}
    wanted = {"cuda": "CUDA", "xpu": "XPU", "mtia": "MTIA", "hpu": "HPU"}.get(kind, "PrivateUse1")
    if wanted not in activities:
        return [f"{kind}: this torch build cannot record {wanted} activity; the trace holds the host only"]
    if kind == "cuda" and is_hip():
        return ["AMD GPU: clocks, power limit and driver are not read (NVML is NVIDIA's)"]
    return []
