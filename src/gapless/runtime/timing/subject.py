"""What is timed: the callable with its arguments, the tensors among them, and copies of them?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping

import torch

from gapless.runtime.timing.backend import Run

__all__ = ["Subject", "tensors_in"]

MAX_DEPTH = 12


def tensors_in(value: object, depth: int = 0) -> Iterator[torch.Tensor]:
    """Tensors in a value, through lists, tuples, sets, mappings and dataclasses."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth >= MAX_DEPTH:
        return
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_in(item, depth + 1)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from tensors_in(item, depth + 1)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from tensors_in(getattr(value, field.name, None), depth + 1)


def _copy(value: object, depth: int = 0) -> object:
    if isinstance(value, torch.Tensor):
        if isinstance(value, torch.nn.Parameter):
            return value
        return value.detach().clone().requires_grad_(value.requires_grad)
    if depth < MAX_DEPTH:
        if isinstance(value, dict):
            return {k: _copy(v, depth + 1) for k, v in value.items()}
        make = getattr(value, "_make", None)
        if isinstance(value, tuple) and make is not None:
            named: object = make(_copy(v, depth + 1) for v in value)
            return named
        if isinstance(value, (list, tuple)):
            return type(value)(_copy(v, depth + 1) for v in value)
    return value


class Subject:
    """One callable with fixed arguments."""

    def __init__(
        self,
        fn: Callable[..., object],
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
        *,
        grad_to_none: bool = False,
    ) -> None:
        self.fn = fn
        self.args = args
        self.kwargs = dict(kwargs or {})
        self.grad_to_none = grad_to_none
        self.inputs = tuple(tensors_in((args, self.kwargs)))
        self.parameters = tuple(self._owner_parameters())
        self.run: Run = self._run_clearing if grad_to_none else self._plain_run()

    @property
    def name(self) -> str:
        """A short name for the screen."""
        return str(getattr(self.fn, "__name__", None) or type(self.fn).__name__)

    def _owner_parameters(self) -> Iterator[torch.nn.Parameter]:
        owner = self.fn if isinstance(self.fn, torch.nn.Module) else getattr(self.fn, "__self__", None)
        for module in (owner, *self.args):
            if isinstance(module, torch.nn.Module):
                yield from module.parameters()

    def _plain_run(self) -> Run:
        fn, args, kwargs = self.fn, self.args, self.kwargs
        if not args and not kwargs:
            return fn
        if not kwargs:
            return lambda: fn(*args)
        return lambda: fn(*args, **kwargs)

    def _run_clearing(self) -> object:
        for tensor in (*self.inputs, *self.parameters):
            tensor.grad = None
        return self.fn(*self.args, **self.kwargs)

    def copies(self, count: int) -> list[Run]:
        """Runs that use their own copies of the tensor arguments; the first uses the originals."""
        runs = [self.run]
        for _ in range(count - 1):
            args = tuple(_copy(value) for value in self.args)
            kwargs = {key: _copy(value) for key, value in self.kwargs.items()}
            runs.append(Subject(self.fn, args, kwargs, grad_to_none=self.grad_to_none).run)
        return runs

    def footprint_bytes(self, output: object = None) -> int:
        """Bytes of distinct storages among tensor arguments, parameters and the given output."""
        seen: dict[int, int] = {}
        for tensor in (*self.inputs, *self.parameters, *tensors_in(output)):
            try:
                storage = tensor.untyped_storage()
                seen[storage.data_ptr()] = min(storage.nbytes(), max(tensor.nbytes, seen.get(storage.data_ptr(), 0)))
            except (RuntimeError, NotImplementedError):
                continue
        return sum(seen.values())

    def device_type(self) -> str | None:
        """Device type of the tensor arguments: the accelerator's if any is there, else cpu, None without tensors."""
        types = {t.device.type for t in (*self.inputs, *self.parameters)}
        others = types - {"cpu"}
        return next(iter(sorted(others)), "cpu" if types else None)
