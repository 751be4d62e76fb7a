"""How does work run beside the current stream without a race? `side_stream()`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from gapless.runtime.streams.device import accelerator_of, current_stream, resolve, use_stream
from gapless.runtime.streams.structure import tensors_of


class SideStream:
    """The stream inside `with side_stream(...)`. stream: torch's own object, None on a device without streams."""

    def __init__(self, stream: Any, device: torch.device) -> None:  # noqa: ANN401 - torch.cuda.Stream or torch.xpu.Stream
        self.stream = stream
        self.device = device

    def record(self, value: object) -> None:
        """The tensors in `value` are used here too: their memory is not given to others before this stream is done."""
        if self.stream is not None:
            for tensor in tensors_of(value):
                if tensor.device == self.device:
                    tensor.record_stream(self.stream)


@contextmanager
def side_stream(
    *uses: object,
    device: torch.device | str | int | None = None,
    stream: Any = None,  # noqa: ANN401 - torch.cuda.Stream or torch.xpu.Stream
) -> Iterator[SideStream]:
    """Runs the body's GPU work on a stream of its own, in the right order with the work before and after it.

    On entry the side stream waits for the current one; on exit, also after an exception, the current stream waits for
    the side stream. The host never waits. `uses`: tensors (or structures of them) from outside that the body reads;
    their memory is protected until the side stream is done with it. Tensors made inside may be used after the body
    as they are. `stream`: one of your own; tensors made inside it then need `record_stream` for the current stream.
    On the CPU the body just runs.
    """
    where = resolve(device if device is not None else _device_of(uses))
    if accelerator_of(where) is None:
        yield SideStream(None, where)
        return
    outer = current_stream(where)
    inner = stream if stream is not None else _borrow(where, outer)
    inner.wait_stream(outer)
    side = SideStream(inner, where)
    side.record(uses)
    try:
        with use_stream(where, inner):
            yield side
    finally:
        outer.wait_stream(inner)
        if stream is None:
            _give_back(where, outer, inner)


_free: dict[tuple[torch.device, int], list[Any]] = {}
_lock = threading.Lock()


def _borrow(device: torch.device, outer: Any) -> Any:  # noqa: ANN401 - torch's streams
    """A stream that only ever ran beside `outer`.

    Memory freed by the host goes back to the side stream's own pool. The next body that takes it from there has waited
    for `outer` on entry, and so for every use of that memory; another outer stream would not have.
    """
    with _lock:
        free = _free.setdefault((device, outer.stream_id), [])
        if free:
            return free.pop()
    module = accelerator_of(device)
    return module.Stream(device) if module is not None else None


def _give_back(device: torch.device, outer: Any, inner: Any) -> None:  # noqa: ANN401 - torch's streams
    with _lock:
        _free[device, outer.stream_id].append(inner)


def _device_of(uses: tuple[object, ...]) -> torch.device | None:
    for tensor in tensors_of(uses):
        if accelerator_of(tensor.device) is not None:
            return tensor.device
    return None
