"""What would a user call this torch function or op: `Tensor.item`, `torch.unique`, `aten::nonzero`?"""

from __future__ import annotations

import functools

import torch

_PREFIXES = (
    ("TensorBase.", "Tensor."),
    ("_VariableFunctionsClass.", "torch."),
    ("torch._C._nn.", "torch.nn.functional."),
    ("torch._C._linalg.linalg_", "torch.linalg."),
    ("torch._C._special.special_", "torch.special."),
    ("torch._C._fft.fft_", "torch.fft."),
    ("torch.functional.", "torch."),
    ("torch._tensor.", ""),
)


@functools.lru_cache(maxsize=8192)
def func_name(func: object) -> str:
    """The public name of a torch function or op, without its overload."""
    if isinstance(func, torch._ops.OpOverload):
        return str(func._schema.name)
    name = getattr(func, "__qualname__", None) or getattr(func, "__name__", None) or str(func)
    if "." not in name:
        name = f"{getattr(func, '__module__', '') or 'torch'}.{name}"
    for private, public in _PREFIXES:
        if name.startswith(private):
            return public + name[len(private) :]
    return str(name)
