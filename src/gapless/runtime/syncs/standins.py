"""What does a preview answer where the GPU's values or sizes would be read?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class StandIns:
    """number: what `item()` gives. truth: what a condition gives. size: rows of a result whose size depends on data."""

    number: float = 1.0
    truth: bool = True
    size: int = 4

    def scalar(self, dtype: torch.dtype) -> bool | int | float | complex:
        """The stand-in for one element."""
        if dtype is torch.bool:
            return self.truth
        if dtype.is_complex:
            return complex(self.number)
        return self.number if dtype.is_floating_point else int(self.number)

    def nested(self, shape: Sequence[int], dtype: torch.dtype) -> Any:  # noqa: ANN401 - a number or lists of lists
        """The stand-in for `tolist()`."""
        if not shape:
            return self.scalar(dtype)
        return [self.nested(shape[1:], dtype) for _ in range(shape[0])]


STANDINS = StandIns()


def answer(func: object, args: Sequence[Any], stand_ins: StandIns) -> Any:  # noqa: ANN401 - what the op would return
    """The result of an op that cannot run without values, at the stand-in's size; NotImplemented if it is unknown."""
    rule = _RULES.get(func)
    return NotImplemented if rule is None else rule(args, stand_ins)


def _long(tensor: torch.Tensor, *shape: int) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.long, device=tensor.device)


def _index(args: Sequence[Any], stand_ins: StandIns) -> torch.Tensor:
    table, indices = args[0], args[1]
    replaced: list[torch.Tensor | None] = []
    for index in indices:
        if index is not None and index.dtype in (torch.bool, torch.uint8):
            replaced.extend(_long(table, stand_ins.size) for _ in range(index.dim()))
        else:
            replaced.append(index)
    result: torch.Tensor = aten.index.Tensor(table, replaced)
    return result


def _unique(args: Sequence[Any], stand_ins: StandIns) -> tuple[torch.Tensor, ...]:
    values = args[0]
    return values.new_empty(stand_ins.size), _long(values, *values.shape), _long(values, stand_ins.size)


def _unique_dim(args: Sequence[Any], stand_ins: StandIns) -> tuple[torch.Tensor, ...]:
    values, dim = args[0], args[1]
    shape = list(values.shape)
    shape[dim] = stand_ins.size
    return values.new_empty(shape), _long(values, values.shape[dim]), _long(values, stand_ins.size)


_RULES: dict[object, Callable[[Sequence[Any], StandIns], Any]] = {
    aten._local_scalar_dense.default: lambda args, stand_ins: stand_ins.scalar(args[0].dtype),
    aten.equal.default: lambda _, stand_ins: stand_ins.truth,
    aten.allclose.default: lambda _, stand_ins: stand_ins.truth,
    aten.is_nonzero.default: lambda _, stand_ins: stand_ins.truth,
    aten.nonzero.default: lambda args, stand_ins: _long(args[0], stand_ins.size, args[0].dim()),
    aten.masked_select.default: lambda args, stand_ins: args[0].new_empty(stand_ins.size),
    aten.index.Tensor: _index,
    aten._unique2.default: _unique,
    aten.unique_consecutive.default: _unique,
    aten.unique_dim.default: _unique_dim,
    aten.repeat_interleave.Tensor: lambda args, stand_ins: _long(args[0], stand_ins.size),
    aten.bincount.default: lambda args, stand_ins: _long(args[0], stand_ins.size),
}
