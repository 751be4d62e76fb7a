"""Does the host read the result of an asynchronous copy too early, or overwrite the source of one too early?

A `non_blocking` copy between the GPU and pinned memory returns before it has run. Its host range is remembered with a
mark behind the copy; an op that touches the range while the mark has not been passed is a race, whatever it read.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import torch

from gapless.model.errors import GateBreachedError
from gapless.runtime.syncs.backend import Backend, Mark
from gapless.runtime.syncs.copies import Copy
from gapless.runtime.syncs.frames import Location, Site, locate
from gapless.runtime.syncs.names import func_name

RaceKind = Literal["read-too-early", "overwritten-too-early", "numpy-view"]

_KEPT = 256
_READERS = frozenset({
    "Tensor.tolist", "Tensor.__array__", "Tensor.untyped_storage", "Tensor.__repr__", "Tensor.__str__",
    "Tensor.__format__", "Tensor.numpy",
})  # fmt: skip
_SHAPE_ONLY = frozenset({
    "aten::empty_like", "aten::zeros_like", "aten::ones_like", "aten::full_like", "aten::rand_like", "aten::randn_like",
    "aten::new_empty", "aten::new_zeros", "aten::new_ones", "aten::new_full", "aten::is_pinned", "aten::is_same_size",
    "aten::detach", "aten::lift_fresh", "aten::set_", "aten::new_empty_strided", "aten::record_stream",
})  # fmt: skip

ADVICE: dict[RaceKind, str] = {
    "read-too-early": "record an event after the copy and call its synchronize() before the read, or take the value "
    "from gapless.streams.to_host(tensor).result()",
    "overwritten-too-early": "record an event after the copy and wait for it before writing, or use two buffers",
    "numpy-view": "take .numpy() after the copy's event: what goes through the view cannot be watched",
}


class HostRaceError(GateBreachedError):
    """The host touched memory that an asynchronous copy was still using."""


@dataclass(slots=True)
class Race:
    """One kind of race between one copy and one access. count: how often it was caught."""

    kind: RaceKind
    copy_site: Site
    access_site: Site
    access: str
    size_bytes: int
    count: int = 1

    def text(self) -> str:
        """One line: what, where, what to do."""
        what = {
            "read-too-early": f"`{self.access}` reads the result of a copy that is still running",
            "overwritten-too-early": f"`{self.access}` overwrites the source of a copy that is still running",
            "numpy-view": f"`{self.access}` hands out memory that a copy is still using",
        }[self.kind]
        return f"{self.access_site}: {what} (started at {self.copy_site}, {self.size_bytes} bytes): {ADVICE[self.kind]}"


@dataclass(frozen=True, slots=True)
class _Pending:
    begin: int
    end: int
    mark: Mark
    direction: str
    where: Location


class RaceGuard:
    """Remembers running copies and looks at what the host touches meanwhile."""

    def __init__(self, backend: Backend, *, deps: bool, strict: bool) -> None:
        self.pending: list[_Pending] = []
        self.races: dict[tuple[RaceKind, Site, Site], Race] = {}
        self._backend = backend
        self._deps = deps
        self._strict = strict
        self._lock = threading.Lock()

    def after_copy(self, copy: Copy, result: object) -> None:
        """A copy between the GPU and pinned memory was queued."""
        host = copy.host if copy.host is not None else result
        device = copy.device if copy.device is not None else result
        if not isinstance(host, torch.Tensor) or not isinstance(device, torch.Tensor):
            return
        extent = _extent(host)
        mark = self._backend.mark(device)
        if extent is None or mark is None:
            return
        entry = _Pending(*extent, mark, copy.direction, locate(sys._getframe(1), deps=self._deps))
        with self._lock:
            kept = [pending for pending in self.pending if not pending.mark.done()]
            self.pending = [*kept[-_KEPT:], entry]

    def before_op(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], copy: Copy | None) -> None:  # noqa: ANN401 - an op or a higher-order op
        """An op is about to run; copies to and from the GPU are in the GPU's own order and never race with it."""
        if copy is not None or not isinstance(func, torch._ops.OpOverload) or func.is_view:
            return
        name = func_name(func)
        if name in _SHAPE_ONLY:
            return
        written = _written(func)
        for key, tensor in _host_tensors(args, kwargs):
            self._check(tensor, name, writes=key in written)

    def before_function(self, func: Callable[..., Any], args: Sequence[Any]) -> None:
        """A torch function is about to run; some read the memory without any op."""
        name = func_name(func)
        if name in _READERS and args and isinstance(args[0], torch.Tensor) and args[0].device.type == "cpu":
            self._check(args[0], name, writes=False)

    def _check(self, tensor: torch.Tensor, name: str, *, writes: bool) -> None:
        extent = _extent(tensor)
        if extent is None:
            return
        begin, end = extent
        for pending in self.pending:
            if pending.end <= begin or end <= pending.begin:
                continue
            numpy_view = name == "Tensor.numpy"
            if pending.direction == "HtoD" and not writes and not numpy_view:
                continue
            if pending.mark.done():
                with self._lock:
                    self.pending = [other for other in self.pending if other is not pending]
                continue
            kind: RaceKind = (
                "numpy-view" if numpy_view else "overwritten-too-early" if writes else "read-too-early"
            )  # fmt: skip
            self._note(kind, pending, name, end - begin)

    def _note(self, kind: RaceKind, pending: _Pending, name: str, size_bytes: int) -> None:
        where = locate(sys._getframe(1), deps=self._deps)
        site = where.via or where.site
        copy_site = pending.where.via or pending.where.site
        key = (kind, copy_site, site)
        with self._lock:
            race = self.races.get(key)
            if race is None:
                race = self.races[key] = Race(kind, copy_site, site, name, size_bytes)
            else:
                race.count += 1
        if self._strict:
            raise HostRaceError(race.text())


def _extent(tensor: torch.Tensor) -> tuple[int, int] | None:
    """First byte and the byte after the last one that the tensor can touch; None where it has no memory."""
    if tensor.layout is not torch.strided or tensor.numel() == 0:
        return None
    try:
        begin = tensor.data_ptr()
    except RuntimeError:
        return None
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return (begin, begin + (int(last) + 1) * tensor.element_size()) if begin else None


def _host_tensors(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[tuple[int | str, torch.Tensor]]:
    keyed: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
    for key, value in keyed:
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, torch.Tensor) and item.device.type == "cpu":
                yield key, item


@lru_cache(maxsize=4096)
def _written(func: torch._ops.OpOverload) -> frozenset[int | str]:
    """Positions and names of the arguments that an op writes."""
    keys: set[int | str] = set()
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            keys.update((position, argument.name))
    return frozenset(keys)
