"""How does a run on fake tensors look as if they lay on a GPU: devices, reads without ops, ops that need values?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from gapless.runtime.syncs.names import func_name
from gapless.runtime.syncs.preview_notes import Notes
from gapless.runtime.syncs.preview_restore import Restore
from gapless.runtime.syncs.standins import StandIns, answer, aten

_GPU = torch.device("cuda", 0)
_LIFTS = frozenset({aten.lift_fresh.default, aten.lift_fresh_copy.default})
_MOVES = frozenset({"Tensor.to", "Tensor.cuda", "Tensor.cpu"})
_FROM_VALUES = frozenset({"torch.tensor", "torch.as_tensor", "torch.asarray"})
_READS = frozenset({
    "Tensor.__repr__", "Tensor.__str__", "Tensor.__format__", "Tensor.tolist", "Tensor.numpy", "Tensor.__array__",
})  # fmt: skip


def on_gpu(device: object) -> bool:
    """Whether a device given by the user means the GPU. Fake tensors say `cpu` when asked for their device, so a
    `torch.device` object means the GPU, and only the word `"cpu"` means the host.
    """
    return device is not None and not (isinstance(device, str) and device.startswith(("cpu", "meta")))


class SourcePreview(TorchFunctionMode):
    """Answers for the GPU where user code asks for devices, and notes the idioms that run no op on fake tensors."""

    def __init__(self, notes: Notes, stand_ins: StandIns) -> None:
        super().__init__()
        self._notes = notes
        self._stand_ins = stand_ins

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the wrapped function returns
        """Runs `func` as the GPU's user would see it."""
        given = dict(kwargs or {})
        notes, name = self._notes, func_name(func)
        if name == "getset_descriptor.__get__":
            return self._property(func, args)
        if name in _MOVES:
            return self._move(name, args, given)
        if name == "Tensor.pin_memory":
            notes.add(name)
            result = args[0].clone()
            notes.place(result, host=True, pinned=True)
            return result
        if name in _READS and notes.on_gpu(args[0]):
            notes.add(name)
            return self._read(name, args[0])
        return self._create_or_run(name, func, args, given)

    def _property(self, func: Callable[..., Any], args: Sequence[Any]) -> Any:  # noqa: ANN401 - any property of a tensor
        which = getattr(getattr(func, "__self__", None), "__name__", "")
        if which in ("is_cuda", "is_cpu") and args and self._notes.on_gpu(args[0]):
            return which == "is_cuda"
        return func(*args)

    def _move(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 - a tensor
        source, rest = args[0], list(args[1:])
        target: Any = _GPU if name == "Tensor.cuda" else "cpu" if name == "Tensor.cpu" else None
        if name == "Tensor.to":
            target = kwargs.pop("device", None)
            if target is None and rest and not isinstance(rest[0], torch.dtype):
                target = rest.pop(0)
        else:
            rest = []
        non_blocking = bool(kwargs.pop("non_blocking", False)) or (bool(rest) and rest[-1] is True)
        host = not self._notes.on_gpu(source)
        if isinstance(target, torch.Tensor):
            rest, target = [target.dtype], _GPU if self._notes.on_gpu(target) else "cpu"
        elif target is None:
            target = "cpu" if host else _GPU
        dtype = next((item for item in rest if isinstance(item, torch.dtype)), kwargs.get("dtype", source.dtype))
        to_gpu = on_gpu(target)
        self._notes.copied(name, source, to_gpu=to_gpu, target_pinned=True, non_blocking=non_blocking)
        if to_gpu is not host and dtype == source.dtype:
            return source
        result = source.to(dtype) if dtype != source.dtype else source.clone()
        self._notes.place(result, host=not to_gpu, pinned=not to_gpu and non_blocking)
        return result

    def _read(self, name: str, tensor: torch.Tensor) -> Any:  # noqa: ANN401 - text, lists or an array
        stand_ins = self._stand_ins
        if name == "Tensor.tolist":
            return stand_ins.nested(tensor.shape, tensor.dtype)
        if name in ("Tensor.numpy", "Tensor.__array__"):
            import numpy

            return numpy.full(tuple(tensor.shape), stand_ins.scalar(tensor.dtype))
        return str(stand_ins.scalar(tensor.dtype))

    def _create_or_run(self, name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever the wrapped function returns
        notes = self._notes
        named = on_gpu(kwargs.get("device"))
        if named:
            kwargs["device"] = torch.device("cpu")
        pinned = bool(kwargs.pop("pin_memory", False))
        previous, notes.device_named, notes.function = (notes.device_named, notes.function), named, name
        try:
            result = func(*args, **kwargs)
        finally:
            notes.device_named, notes.function = previous
        if name in _FROM_VALUES:
            if named and not any(notes.on_gpu(arg) for arg in args):
                notes.add(name)
            notes.place(result, host=not named and not any(notes.on_gpu(arg) for arg in args))
        elif pinned:
            notes.place(result, host=True, pinned=True)
        return result


class OpPreview(TorchDispatchMode):
    """Notes ops that need a value or a size, answers with a stand-in, and follows where results lie."""

    def __init__(self, mode: FakeTensorMode, notes: Notes, stand_ins: StandIns, restore: Restore) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._mode = mode
        self._notes = notes
        self._stand_ins = stand_ins
        self._restore = restore

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the op returns
        """Runs the op on fake tensors."""
        kwargs = kwargs or {}
        notes = self._notes
        self._restore.touched(args)
        tensors = [item for item in tree_leaves((args, kwargs)) if isinstance(item, torch.Tensor)]
        host = not any(notes.on_gpu(tensor) for tensor in tensors) if tensors else not notes.device_named
        self._look(func, args, kwargs)
        if func not in _LIFTS:
            # An op on real tensors alone would run for real, and change them.
            args, kwargs = tree_map_only(torch.Tensor, self._fake, (args, kwargs))
        try:
            result = func(*args, **kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException):
            result = answer(func, args, self._stand_ins)
            if result is NotImplemented:
                raise
            if not host:
                notes.add(func_name(func))
        notes.place(result, host=host)
        return result

    def _fake(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor if isinstance(tensor, FakeTensor) else self._mode.from_tensor(tensor)

    def _look(self, func: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        notes = self._notes
        if func is aten.copy_.default:
            target, source = args[0], args[1]
            non_blocking = bool(args[2] if len(args) > 2 else kwargs.get("non_blocking", False))
            notes.copied(
                "aten::copy_", source, to_gpu=notes.on_gpu(target), target_pinned=notes.pinned(target),
                non_blocking=non_blocking,
            )  # fmt: skip
        elif func in (aten.index_put_.default, aten.index_put.default):
            masked = any(index is not None and index.dtype is torch.bool for index in args[1])
            if masked and notes.on_gpu(args[0]) and args[2].numel() != 1:
                notes.add("aten::index_put_")
