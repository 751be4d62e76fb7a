"""How do values reach the host without stopping it? `to_host(tensor)` now, `.result()` when they are needed."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import torch

from gapless.runtime.streams.device import accelerator_of, copy_stream, current_stream, use_stream
from gapless.runtime.streams.structure import map_tensors

T = TypeVar("T")

SMALL_BYTES = 1 << 20
"""Up to this size a tensor is copied in the current stream's own order: it takes less than a kernel or two."""


class HostCopy(Generic[T]):
    """Tensors on their way to the host, in the structure they were given in."""

    def __init__(self, value: T, events: list[Any]) -> None:
        self._value = value
        self._events = events

    def done(self) -> bool:
        """Whether the values have arrived; never waits."""
        return all(event.query() for event in self._events)

    def result(self) -> T:
        """The values. Waits until they have arrived, and for nothing queued after the call of `to_host`."""
        for event in self._events:
            event.synchronize()
        self._events = []
        return self._value


def to_host(value: T) -> HostCopy[T]:
    """Starts copying a tensor, or each tensor of a structure, to pinned host memory and returns at once.

    The values are those of the moment of the call: later work may overwrite or free the source. Small tensors are
    copied in the current stream; larger ones are cloned on the GPU and the clone travels on a side stream, beside later
    work (without memory for a clone, in the current stream). CPU tensors are copied at once.
    """
    memo: dict[int, torch.Tensor] = {}
    streams: dict[tuple[torch.device, bool], Any] = {}

    def move(tensor: torch.Tensor) -> torch.Tensor:
        # Tied weights stay tied: the same tensor comes back as the same tensor.
        if id(tensor) not in memo:
            memo[id(tensor)] = _move(tensor, streams)
        return memo[id(tensor)]

    with torch.no_grad():
        moved = map_tensors(move, value)
    return HostCopy(moved, [stream.record_event() for stream in streams.values()])


def _move(tensor: torch.Tensor, streams: dict[tuple[torch.device, bool], Any]) -> torch.Tensor:
    source = tensor.detach()
    device = source.device
    if accelerator_of(device) is None:
        return source.to("cpu", copy=True)
    beside = source.numel() * source.element_size() > SMALL_BYTES
    if beside:
        try:
            source = source.clone()
        except torch.OutOfMemoryError:
            beside = False
    stream = current_stream(device)
    if beside:
        side = copy_stream(device)
        side.wait_stream(stream)
        source.record_stream(side)
        stream = side
    streams[device, beside] = stream
    with use_stream(device, stream):
        return source.to("cpu", non_blocking=True)
