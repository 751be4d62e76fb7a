"""Which tensors lie on a GPU or in pinned memory, and has that GPU finished what was queued so far?"""

from __future__ import annotations

from typing import Protocol

import torch


class Mark(Protocol):
    """A point in a GPU's queue."""

    def done(self) -> bool:
        """Whether the GPU has passed it; never waits."""


class Backend(Protocol):
    """What the watch asks of a kind of device; tests answer with a simulated one."""

    name: str

    def on_gpu(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor lies on a GPU."""

    def pinned(self, tensor: torch.Tensor) -> bool:
        """Whether a CPU tensor lies in pinned memory."""

    def idle(self, tensor: torch.Tensor) -> bool | None:
        """Whether the current stream of the tensor's device has nothing left to do; None where one may not ask."""

    def mark(self, tensor: torch.Tensor) -> Mark | None:
        """A mark behind everything queued on that stream; None where none may be set (graph capture)."""


class EventMark:
    """A mark made of an event."""

    __slots__ = ("_event",)

    def __init__(self, event: torch.Event) -> None:
        self._event = event

    def done(self) -> bool:
        """Whether the GPU has passed it; never waits."""
        return bool(self._event.query())


class AcceleratorBackend:
    """A CUDA, ROCm or XPU device."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._module = getattr(torch, name)

    def on_gpu(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor lies on a GPU."""
        return tensor.device.type == self.name

    def pinned(self, tensor: torch.Tensor) -> bool:
        """Whether a CPU tensor lies in pinned memory."""
        return tensor.device.type == "cpu" and tensor.layout is torch.strided and tensor.is_pinned()

    def idle(self, tensor: torch.Tensor) -> bool | None:
        """Whether the current stream of the tensor's device has nothing left to do; None where one may not ask."""
        if self._capturing():
            return None
        return bool(self._module.current_stream(tensor.device).query())

    def mark(self, tensor: torch.Tensor) -> Mark | None:
        """A mark behind everything queued on that stream; None where none may be set (graph capture)."""
        if self._capturing():
            return None
        event = self._module.Event()
        event.record(self._module.current_stream(tensor.device))
        return EventMark(event)

    def _capturing(self) -> bool:
        return self.name == "cuda" and torch.cuda.is_current_stream_capturing()


def find_backend() -> Backend | None:
    """The GPU this process can use, or None."""
    for name in ("cuda", "xpu"):
        module = getattr(torch, name, None)
        if module is not None and module.is_available():
            return AcceleratorBackend(name)
    return None
