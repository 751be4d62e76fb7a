"""Which streams and events does a device have? On the CPU none: then everything has happened when the call returns."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any

import torch

from gapless.model.errors import UsageError

ACCELERATORS = ("cuda", "xpu")


def accelerator_of(device: torch.device) -> ModuleType | None:
    """The torch module (`torch.cuda`) that has streams for this device; None for the CPU and others without."""
    if device.type in ACCELERATORS:
        module: ModuleType = getattr(torch, device.type)
        return module
    return None


def resolve(device: torch.device | str | int | None) -> torch.device:
    """The device meant: with its index, the current one where none is given, the CPU where there is no GPU."""
    if device is None:
        for name in ACCELERATORS:
            module = getattr(torch, name, None)
            if module is not None and module.is_available():
                return torch.device(name, module.current_device())
        return torch.device("cpu")
    try:
        found = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
    except RuntimeError as error:
        raise UsageError(
            f"device {device!r} is unknown to torch, so nothing can be sent there: use 'cuda' or 'cpu'"
        ) from error
    module_of = accelerator_of(found)
    if module_of is None:
        return found
    if not module_of.is_available():
        raise UsageError(f"device {found} is not available here, so no stream can be made on it: use device='cpu'")
    return torch.device(found.type, module_of.current_device() if found.index is None else found.index)


def current_stream(device: torch.device) -> Any:  # noqa: ANN401 - torch.cuda.Stream or torch.xpu.Stream
    """The stream that the device's work goes to now; None where there are no streams."""
    module = accelerator_of(device)
    return module.current_stream(device) if module is not None else None


def use_stream(device: torch.device, stream: Any) -> AbstractContextManager[object]:  # noqa: ANN401 - as above
    """Within this, work for the device goes to `stream`."""
    module = accelerator_of(device)
    return module.stream(stream) if module is not None and stream is not None else nullcontext()


_copy_streams: dict[torch.device, Any] = {}


def copy_stream(device: torch.device) -> Any:  # noqa: ANN401 - as above
    """One side stream a device for copies, made at first use; None where there are no streams."""
    module = accelerator_of(device)
    if module is None:
        return None
    if device not in _copy_streams:
        _copy_streams[device] = module.Stream(device)
    return _copy_streams[device]
