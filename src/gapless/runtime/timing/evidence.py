"""What about the surroundings and the inputs could make the numbers wrong? Facts only; checks.py judges them."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import torch

from gapless.runtime.timing import kernels
from gapless.runtime.timing.subject import Subject, tensors_in

__all__ = ["checksum", "constant_inputs", "distortions", "fingerprint", "gradients", "host_facts", "versions"]

SAMPLED = 4096
MAX_COPY_ELEMENTS = 1 << 26


def constant_inputs(tensors: Iterable[torch.Tensor]) -> list[str]:
    """Float inputs with a single distinct value, or more than 90 % zeros, among up to 4096 sampled elements."""
    found = []
    for index, tensor in enumerate(tensors):
        if not tensor.is_floating_point() or tensor.numel() < 16 or tensor.layout != torch.strided:
            continue
        data = tensor.detach()
        if not data.is_contiguous() and data.numel() > MAX_COPY_ELEMENTS:
            continue
        flat = data.reshape(-1)
        picked = flat[:: max(1, flat.numel() // SAMPLED)][:SAMPLED].float()
        zeros = (picked == 0).float().mean()
        same = picked.max() == picked.min()
        share, one = float(zeros), bool(same)
        if one:
            found.append(f"tensor {index} {tuple(tensor.shape)} holds one value")
        elif share > 0.9:
            found.append(f"tensor {index} {tuple(tensor.shape)} is {share:.0%} zeros")
    return found


def versions(tensors: Iterable[torch.Tensor]) -> list[int]:
    """How often each tensor was written in place so far; -1 for inference tensors, which do not count."""
    counts = []
    for tensor in tensors:
        try:
            counts.append(int(tensor._version))
        except RuntimeError:
            counts.append(-1)
    return counts


def gradients(subject: Subject) -> list[tuple[int, int]]:
    """Identity and write count of each gradient present; growing counts mean accumulation."""
    grads = [t.grad for t in (*subject.inputs, *subject.parameters) if t.is_leaf and t.grad is not None]
    return [(id(g), int(g._version)) for g in grads]


def checksum(output: object) -> list[float] | None:
    """The sum of each output tensor in float64, None where one cannot be summed or there is none."""
    tensors = list(tensors_in(output))
    try:
        sums = [t.detach().sum(dtype=torch.complex128 if t.is_complex() else torch.float64) for t in tensors]
        return [float(s.abs() if s.is_complex() else s) for s in sums] or None
    except (RuntimeError, TypeError):
        return None


def distortions(*, cuda: bool) -> tuple[list[str], list[str]]:
    """What in this process or its environment changes timing: (makes it wrong, may make it wrong)."""
    wrong, doubtful = [], []
    if cuda:
        if os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"):
            wrong.append("CUDA_LAUNCH_BLOCKING is set: every launch waits")
        if "PYTORCH_NO_CUDA_MEMORY_CACHING" in os.environ:
            wrong.append("PYTORCH_NO_CUDA_MEMORY_CACHING is set: every allocation goes to the driver")
        if torch.cuda.get_sync_debug_mode() != 0:
            wrong.append("the sync debug mode is on")
        if os.environ.get("TORCH_CUDA_SANITIZER", "0") not in ("", "0"):
            wrong.append("the CUDA sanitizer is on")
        doubtful += [
            f"{k} is set: a tool is injected"
            for k in os.environ
            if k in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")
        ]
        if kernels.was_used():
            doubtful.append("a profiler pass ran earlier in this process: launches may still be slower")
    if torch.autograd.profiler._is_profiler_enabled:
        wrong.append("the profiler is recording")
    if torch.is_anomaly_enabled():
        wrong.append("anomaly detection is on")
    if torch._C._len_torch_dispatch_stack() > 0:
        wrong.append("a TorchDispatchMode is active")
    if sys.gettrace() is not None:
        wrong.append("a debugger or coverage traces this thread")
    if sys.getprofile() is not None:
        doubtful.append("a Python profiler is set")
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None:
        doubtful += [f"sys.monitoring is used by {tool}" for i in range(6) if (tool := monitoring.get_tool(i))]
    return wrong, doubtful


def host_facts() -> dict[str, str | float | int | None]:
    """Versions and host of this run."""
    return {
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "git": _git_revision(),
    }


def fingerprint(properties: object | None) -> dict[str, str | float | int | None]:
    """Host facts and, with CUDA device properties given, the GPU's."""
    facts = host_facts()
    if properties is not None:
        facts |= {
            "gpu": str(getattr(properties, "name", "?")),
            "uuid": str(getattr(properties, "uuid", "?")),
            "cuda": torch.version.cuda or torch.version.hip,
            "l2_bytes": getattr(properties, "L2_cache_size", None),
        }
    return facts


def _git_revision() -> str | None:
    if not any((folder / ".git").exists() for folder in (Path.cwd(), *Path.cwd().parents)):
        return None
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, timeout=2, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
