"""Which tensors does a batch hold, and what is the same batch with other tensors in their places?"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import torch

T = TypeVar("T")

MAX_DEPTH = 64
"""Deeper nesting is left as it is: such a batch refers to itself or was never meant for a GPU."""


def map_tensors(function: Callable[[torch.Tensor], torch.Tensor], value: T, _depth: int = 0) -> T:
    """The same structure with `function` applied to each tensor: mappings, lists, tuples, named tuples, dataclasses.

    Everything else (strings, numbers, sets, objects) is passed on untouched. A container without tensors inside comes
    back as an equal one of its own type.
    """
    if isinstance(value, torch.Tensor):
        return cast("T", function(value))
    if _depth >= MAX_DEPTH:
        return value

    def inner(item: Any) -> Any:  # noqa: ANN401 - anything a loader may give
        return map_tensors(function, item, _depth + 1)

    if isinstance(value, torch.nn.utils.rnn.PackedSequence):
        return value
    if isinstance(value, Mapping):
        return cast("T", _mapping(value, {key: inner(item) for key, item in value.items()}))
    if isinstance(value, tuple):
        items = [inner(item) for item in value]
        return cast("T", type(value)(*items) if hasattr(value, "_fields") else type(value)(items))
    if isinstance(value, list):
        return cast("T", type(value)(inner(item) for item in value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return cast("T", _dataclass(value, inner))
    return value


def tensors_of(value: object) -> list[torch.Tensor]:
    """Every tensor in the structure, in order."""
    found: list[torch.Tensor] = []

    def note(tensor: torch.Tensor) -> torch.Tensor:
        found.append(tensor)
        return tensor

    map_tensors(note, value)
    return found


def _mapping(value: Any, items: dict[Any, Any]) -> Any:  # noqa: ANN401 - keeps the type it is given
    if type(value) is dict:
        return items
    try:
        clone = copy.copy(value)
        for key, item in items.items():
            clone[key] = item
    except TypeError:
        return type(value)(items)
    return clone


def _dataclass(value: Any, inner: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - keeps the type it is given
    clone = copy.copy(value)
    for item in dataclasses.fields(value):
        if hasattr(value, item.name):
            object.__setattr__(clone, item.name, inner(getattr(value, item.name)))
    return clone
