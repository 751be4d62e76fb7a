"""How much work must an op do at least: floating-point operations, and bytes read and written?

Bytes are the minimum traffic: each distinct element crosses the memory bus once, nothing is reused from a cache
before and nothing is spilled. A multiplication and an addition count as two operations. Figures follow from shapes and
types alone; `exact` is False where something that matters (a causal mask, an output size, the element type inside a
list) was not recorded and had to be assumed. What cannot be told is None, never a guess of zero.
"""

from __future__ import annotations

from gapless.analyses.op_args import read_args
from gapless.analyses.op_math import MATH, OpCost
from gapless.analyses.op_traffic import traffic_cost

__all__ = ["OpCost", "base_name", "op_cost"]


def op_cost(
    name: str,
    input_dims: str | None,
    input_types: str | None,
    concrete: str | None = None,
    element: str | None = None,
    strides: str | None = None,
) -> OpCost | None:
    """Cost of one op by its name and the recorded argument texts; None where they do not tell.

    `element` is the dtype of the tensors inside a list (`_foreach_add_`, `cat`), which recorders leave out.
    `strides` is `Input Strides`; with it, expanded tensors count once.
    """
    args = read_args(input_dims, input_types, concrete, strides)
    if args is None:
        return None
    base = base_name(name)
    reader = MATH.get(base) or MATH.get(base.removesuffix("_"))
    return reader(args) if reader is not None else traffic_cost(base, args, element)


def base_name(name: str) -> str:
    """An op's name without namespace and overload: `aten::add.Tensor` -> `add`."""
    return name.removeprefix("aten::").partition(".")[0]
