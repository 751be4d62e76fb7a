"""What did the device itself record while the subject ran? One profiler pass, never together with a timing."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from torch.profiler import ProfilerActivity, profile

from gapless.runtime.timing.backend import KernelTime, UnavailableError
from gapless.runtime.timing.blocker import HOLD_NAMES

__all__ = ["is_kernel", "record_device", "record_kernels", "was_used"]

_used = False


def was_used() -> bool:
    """Whether a profiler pass has run in this process.

    It stays attached to the driver and slows every later launch, on an H200 from 7.1 to 9.9 us. Making it detach
    (TEARDOWN_CUPTI) is no way out: torch warns of crashes with CUDA graphs after that, and on an H200 (torch 2.11) whole
    sessions came back without records.
    """
    return _used


def is_kernel(name: str) -> bool:
    """Whether a device record is a kernel, not a copy or memset."""
    return not name.startswith(("Memcpy", "Memset"))


def record_device(work: Callable[[], None]) -> list[KernelTime]:
    """Run `work` (which ends synchronised) under the profiler; all that the device did in time order, blockers too."""
    global _used
    _used = True
    with warnings.catch_warnings(), profile(activities=[ProfilerActivity.CUDA]) as recorder:
        warnings.simplefilter("ignore")
        work()
    results = getattr(recorder.profiler, "kineto_results", None)
    if results is None:
        raise UnavailableError("the profiler returned no records")
    records = [
        KernelTime(str(event.name()), int(event.start_ns()), int(event.duration_ns()))
        for event in results.events()
        if str(event.device_type()).endswith((".CUDA", ".HIP")) and not _is_annotation(event)
    ]
    return sorted(records, key=lambda r: r.start_ns)


def record_kernels(work: Callable[[], None]) -> list[KernelTime]:
    """`record_device` without what gapless itself put on the device."""
    return [r for r in record_device(work) if not r.name.startswith(HOLD_NAMES) and "spin_kernel" not in r.name]


def _is_annotation(event: object) -> bool:
    asked = getattr(event, "is_user_annotation", None)
    return bool(asked()) if asked is not None else False
