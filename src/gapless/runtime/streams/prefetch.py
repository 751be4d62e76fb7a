"""How does the next batch travel to the GPU while this one is computed? `prefetch(loader, device)`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

import torch

from gapless.runtime.streams.device import accelerator_of, copy_stream, current_stream, resolve, use_stream
from gapless.runtime.streams.structure import map_tensors, tensors_of

T = TypeVar("T")

AHEAD = 2
"""Batches that the host may be ahead of the GPU; without a bound, batches in flight would fill the GPU's memory."""


class Prefetch(Generic[T]):
    """Gives the loader's batches on the device, in order, one ahead. Iterate it as often as the loader.

    unpinned_batches: how many batches of the last iteration held tensors in ordinary memory. They were pinned first,
    which costs host time; `DataLoader(pin_memory=True)` does that in a thread of its own.
    """

    def __init__(self, loader: Iterable[T], device: torch.device) -> None:
        self._loader = loader
        self._device = device
        self.unpinned_batches = 0

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[T]:
        self.unpinned_batches = 0
        source = iter(self._loader)
        if accelerator_of(self._device) is None:
            for batch in source:
                yield map_tensors(lambda tensor: tensor.to(self._device), batch)
            return
        yield from self._ahead(source)

    def _ahead(self, source: Iterator[T]) -> Iterator[T]:
        stream = copy_stream(self._device)
        consumed: deque[Any] = deque()
        ready: tuple[T, Any] | None = None
        while True:
            failure: Exception | None = None
            following: tuple[T, Any] | None = None
            try:
                batch = next(source)
            except StopIteration:
                pass
            except Exception as error:  # raised below, after the batches that came before it
                failure = error
            else:
                following = self._send(batch, stream)
            if ready is not None:
                yield self._hand_over(*ready)
                consumed.append(current_stream(self._device).record_event())
                if len(consumed) > AHEAD:
                    consumed.popleft().synchronize()
            if failure is not None:
                raise failure
            if following is None:
                return
            ready = following

    def _send(self, batch: T, stream: Any) -> tuple[T, Any]:  # noqa: ANN401 - torch's stream and event
        unpinned = False

        def move(tensor: torch.Tensor) -> torch.Tensor:
            nonlocal unpinned
            if tensor.device.type == "cpu" and tensor.layout is torch.strided and not tensor.is_pinned():
                unpinned = True
                tensor = tensor.pin_memory()
            elif tensor.device != self._device and accelerator_of(tensor.device) is not None:
                stream.wait_stream(current_stream(tensor.device))
            return tensor.to(self._device, non_blocking=True)

        with use_stream(self._device, stream):
            moved = map_tensors(move, batch)
        self.unpinned_batches += unpinned
        return moved, stream.record_event()

    def _hand_over(self, batch: T, event: Any) -> T:  # noqa: ANN401 - torch's event
        consumer = current_stream(self._device)
        consumer.wait_event(event)
        for tensor in tensors_of(batch):
            if tensor.device == self._device:
                tensor.record_stream(consumer)
        return batch


def prefetch(loader: Iterable[T], device: torch.device | str | int | None = None) -> Prefetch[T]:
    """Iterates `loader` with each batch already on the device: `for batch in prefetch(loader, "cuda")`.

    While a batch is computed, the next one is fetched and copied on a side stream from pinned memory. Tensors inside
    mappings, lists, tuples, named tuples and dataclasses are moved; everything else is passed on. An exception of the
    loader is raised after the batches that came before it. The host stays at most two batches ahead of the GPU, so that
    memory stays bounded. Batches should come pinned (`DataLoader(pin_memory=True)`); others are pinned here, on the
    host's time. A loader must not overwrite a pinned batch that it has given away. On the CPU it only keeps the order.
    """
    return Prefetch(loader, resolve(device))
