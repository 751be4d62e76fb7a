"""What are an op's arguments, as far as `Input Dims`, `Input type` and `Concrete Inputs` tell?

The three texts are JSON lists, one entry per argument. A `[]` in the dims is a zero-dimensional tensor, a number, None
or a list that the recorder left out, so the type decides. Lists of tensors carry shapes but no element type.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass

MAX_TEXT = 1_000_000
_MAX_ELEMENTS = 1 << 50

_ELEMENT: dict[str, tuple[str, int]] = {
    "float": ("fp32", 4), "double": ("fp64", 8), "c10::BFloat16": ("bf16", 2), "c10::Half": ("fp16", 2),
    "long int": ("int64", 8), "long": ("int64", 8), "long long": ("int64", 8), "int": ("int32", 4),
    "short int": ("int16", 2), "short": ("int16", 2), "signed char": ("int8", 1), "unsigned char": ("int8", 1),
    "bool": ("bool", 1), "c10::complex<float>": ("complex", 8), "c10::complex<double>": ("complex", 16),
}  # fmt: skip
SIZE = {"fp32": 4, "tf32": 4, "fp64": 8, "bf16": 2, "fp16": 2, "int64": 8, "int32": 4, "int16": 2, "int8": 1, "bool": 1,
        "fp8": 1}  # fmt: skip
"""Bytes of one element, by dtype name."""


@dataclass(frozen=True, slots=True)
class TensorArg:
    """One tensor argument: shape, dtype name, bytes per element, and how many of its elements are distinct: dimensions
    of stride 0 (`expand`) repeat the same memory."""

    shape: tuple[int, ...]
    dtype: str
    element_bytes: int
    distinct: int

    @property
    def count(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        """Bytes of its distinct elements."""
        return self.distinct * self.element_bytes


@dataclass(frozen=True, slots=True)
class TensorListArg:
    """A list of tensors: shapes only, empty where the recorder left them out."""

    shapes: tuple[tuple[int, ...], ...]

    @property
    def count(self) -> int:
        """Elements of all tensors together."""
        return sum(math.prod(shape) for shape in self.shapes)


Arg = TensorArg | TensorListArg | None


@dataclass(frozen=True, slots=True)
class OpArgs:
    """The arguments in order; `concrete` holds the texts of the plain values, '' for tensors and where not recorded."""

    args: tuple[Arg, ...]
    concrete: tuple[str, ...]

    def tensor(self, index: int) -> TensorArg | None:
        """The tensor at this position, None if there is none."""
        found = self.args[index] if 0 <= index < len(self.args) else None
        return found if isinstance(found, TensorArg) else None

    def tensors(self) -> list[TensorArg]:
        """All tensor arguments in order."""
        return [a for a in self.args if isinstance(a, TensorArg)]

    def lists(self) -> list[TensorListArg]:
        """All lists of tensors in order."""
        return [a for a in self.args if isinstance(a, TensorListArg)]

    def numbers(self, index: int) -> tuple[int, ...] | None:
        """The whole numbers of a plain value ("[1, 1]" or "2"); None if it was not recorded."""
        text = self.concrete[index] if 0 <= index < len(self.concrete) else ""
        return tuple(int(n) for n in re.findall(r"-?\d{1,18}", text)) if text else None

    def flag(self, index: int) -> bool | None:
        """A plain True or False; None if it was not recorded."""
        text = self.concrete[index] if 0 <= index < len(self.concrete) else ""
        return {"True": True, "False": False}.get(text)


def read_args(
    dims: str | None, types: str | None, concrete: str | None = None, strides: str | None = None
) -> OpArgs | None:
    """The arguments, or None where the texts are missing, cut off or not what a recorder writes."""
    shapes, kinds = _json_list(dims), _json_list(types)
    if shapes is None or kinds is None or len(shapes) != len(kinds):
        return None
    steps = _json_list(strides) or []
    args: list[Arg] = []
    for index, (shape, kind) in enumerate(zip(shapes, kinds, strict=True)):
        if not isinstance(kind, str) or not isinstance(shape, list):
            return None
        if kind == "TensorList":
            listed = [_shape(item) for item in shape]
            if None in listed:
                return None
            args.append(TensorListArg(tuple(item for item in listed if item is not None)))
            continue
        element = ("fp8", 1) if kind.startswith("c10::Float8") else _ELEMENT.get(kind)
        if element is None:
            args.append(None)
            continue
        sizes = _shape(shape)
        if sizes is None:
            return None
        args.append(TensorArg(sizes, *element, _distinct(sizes, steps[index] if index < len(steps) else None)))
    values = _json_list(concrete) or []
    return OpArgs(tuple(args), tuple(v if isinstance(v, str) else "" for v in values))


def _json_list(text: str | None) -> list[object] | None:
    if not text or len(text) > MAX_TEXT:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def _shape(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, list) or len(value) > 64:
        return None
    if any(type(n) is not int or n < 0 for n in value) or math.prod(value) > _MAX_ELEMENTS:
        return None
    return tuple(value)


def _distinct(shape: tuple[int, ...], strides: object) -> int:
    if not isinstance(strides, list) or len(strides) != len(shape):
        return math.prod(shape)
    return math.prod(size for size, stride in zip(shape, strides, strict=True) if stride != 0 or size == 0)


def broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The shape that tensors of these shapes broadcast to; None if they do not."""
    out: list[int] = []
    for shape in shapes:
        out = [1] * (len(shape) - len(out)) + out
        for back, size in enumerate(reversed(shape), 1):
            if out[-back] == 1:
                out[-back] = size
            elif size not in (1, out[-back]):
                return None
    return tuple(out)
