"""On what machine, with which versions and switches, was this recorded?"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from typing import Any

import torch

from gapless.runtime.recorder import device, names, nvml

SWITCHES = (
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_MODULE_LOADING",
    "CUDA_VISIBLE_DEVICES",
    "CUBLAS_WORKSPACE_CONFIG",
    "HIP_LAUNCH_BLOCKING",
    "NCCL_LAUNCH_MODE",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "TORCHDYNAMO_DISABLE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_COMPILE_DEBUG",
    "TORCH_LOGS",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "TORCH_NCCL_BLOCKING_WAIT",
    "TORCH_SHOW_CPP_STACKTRACES",
)
"""Environment variables that change what a trace shows; only those that are set are written."""

_SETTINGS: Mapping[str, Callable[[], object]] = {
    "float32_matmul_precision": torch.get_float32_matmul_precision,
    "cudnn_allow_tf32": lambda: torch.backends.cudnn.allow_tf32,
    "cudnn_benchmark": lambda: torch.backends.cudnn.benchmark,
    "deterministic": torch.are_deterministic_algorithms_enabled,
    "anomaly_mode": torch.is_anomaly_enabled,
    "num_threads": torch.get_num_threads,
}


def gather(environ: Mapping[str, str]) -> dict[str, object]:
    """The `environment` of the trace's metadata. Nothing here initialises a device; what cannot be read is left out."""
    kind = device.in_use()
    settings: dict[str, object] = {}
    for key, read in _SETTINGS.items():
        try:
            value = read()
        except (RuntimeError, AttributeError):
            continue
        settings[key] = value if isinstance(value, (bool, int, float)) else str(value)
    return {
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "hip": getattr(torch.version, "hip", None),
        "cudnn": _cudnn() if kind == "cuda" else None,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpu_count": os.cpu_count(),
        "accelerator": kind,
        "device": _device(kind),
        "rank": names.rank(environ),
        "world_size": names.world_size(environ),
        "variables": {key: environ[key] for key in SWITCHES if key in environ},
        "settings": settings,
    }


def machine(kind: str | None) -> str:
    """What a calibration belongs to: the accelerator's name, or the processor's architecture, and the host's name."""
    name = device.name(kind) if kind is not None else f"CPU {platform.machine()}"
    return f"{name} on {platform.node()}"


def _cudnn() -> int | None:
    cudnn: Any = torch.backends.cudnn
    version = cudnn.version()
    return None if version is None else int(version)


def _device(kind: str | None) -> dict[str, object]:
    facts: dict[str, object] = {"name": device.name(kind)}
    if kind == "cuda":
        index = torch.cuda.current_device()
        properties = torch.cuda.get_device_properties(index)
        facts |= {"index": index, "total_memory_bytes": int(properties.total_memory)}
        if not device.is_hip():
            raw = getattr(properties, "uuid", None)
            uuid = None if raw is None else str(raw) if str(raw).startswith("GPU-") else f"GPU-{raw}"
            facts |= nvml.read(uuid, index)
    return facts
