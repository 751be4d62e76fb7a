"""Does this op copy between host and GPU, which way, how many bytes, and from which kind of host memory?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from gapless.model.sync_fixes import Direction, copy_name
from gapless.runtime.syncs.backend import Backend

aten = torch.ops.aten

COPY_OPS = frozenset({aten._to_copy.default, aten.copy_.default})
INDEX_OPS = frozenset(
    {aten.index.Tensor, aten.index_put_.default, aten.index_put.default, aten._index_put_impl_.default}
)

STAGED_BYTES = 64 * 1024
"""Uploads up to this size are staged by the driver, so that the call returns at once."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy between host and GPU. host: the host's tensor, if it exists before the call. device: the GPU's."""

    direction: Direction
    size_bytes: int
    pinned: bool
    non_blocking: bool
    hidden: bool = False
    host: torch.Tensor | None = field(default=None, compare=False, repr=False)
    device: torch.Tensor | None = field(default=None, compare=False, repr=False)

    @property
    def pageable_async(self) -> bool:
        """Asked not to block, but from or to memory that lets it block all the same."""
        return self.non_blocking and not self.pinned

    def names(self) -> tuple[str, ...]:
        """How the copy appears at the end of a chain; `hidden` ones hide inside an op and bring their own op's name."""
        name = copy_name(self.direction, pinned=self.pinned, non_blocking=self.non_blocking)
        return ("aten::_to_copy", name) if self.hidden else (name,)

    def forget(self) -> Copy:
        """The same without holding on to the tensors."""
        return Copy(self.direction, self.size_bytes, self.pinned, self.non_blocking, self.hidden)


def find_copy(func: object, args: Sequence[object], kwargs: Mapping[str, object], backend: Backend) -> Copy | None:
    """The copy that `func(*args, **kwargs)` is about to make, or None if it crosses no border."""
    if func is aten.copy_.default:
        target, source = args[0], args[1]
        non_blocking = bool(args[2] if len(args) > 2 else kwargs.get("non_blocking", False))
        if isinstance(target, torch.Tensor) and isinstance(source, torch.Tensor):
            return _between(source, target, non_blocking, backend)
        return None
    if func is aten._to_copy.default:
        source, device = args[0], kwargs.get("device")
        if isinstance(source, torch.Tensor) and isinstance(device, torch.device):
            return _converted(source, device, bool(kwargs.get("non_blocking", False)), backend)
        return None
    if func in INDEX_OPS:
        return _indexed(args, backend)
    return None


def _between(source: torch.Tensor, target: torch.Tensor, non_blocking: bool, backend: Backend) -> Copy | None:
    from_gpu, to_gpu = backend.on_gpu(source), backend.on_gpu(target)
    if from_gpu == to_gpu:
        return None
    host, device = (target, source) if from_gpu else (source, target)
    size = target.numel() * target.element_size()
    return Copy(
        "DtoH" if from_gpu else "HtoD", size, backend.pinned(host), non_blocking, host=host, device=device
    )  # fmt: skip


def _converted(source: torch.Tensor, device: torch.device, non_blocking: bool, backend: Backend) -> Copy | None:
    size = source.numel() * source.element_size()
    if backend.on_gpu(source):
        if device.type != "cpu":
            return None
        # torch allocates the result of a non-blocking conversion to the CPU in pinned memory.
        return Copy("DtoH", size, non_blocking, non_blocking, device=source)
    if device.type != backend.name or source.device.type != "cpu":
        return None
    return Copy("HtoD", size, backend.pinned(source), non_blocking, host=source)


def _indexed(args: Sequence[object], backend: Backend) -> Copy | None:
    table, indices = args[0], args[1]
    if not isinstance(table, torch.Tensor) or not backend.on_gpu(table) or not isinstance(indices, (list, tuple)):
        return None
    for index in indices:
        if isinstance(index, torch.Tensor) and not backend.on_gpu(index):
            return Copy("HtoD", index.numel() * index.element_size(), False, False, hidden=True)
    return None
