"""Who uses the result of an op next? Told by shape (and strides, where recorded): a trace names no tensors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gapless.analyses.op_args import OpArgs
from gapless.analyses.op_costs import base_name
from gapless.rules.context import Context

VIEWS = frozenset(("view", "_unsafe_view", "reshape", "flatten", "unflatten"))
PERMUTES = frozenset(("permute", "transpose", "t", "movedim", "swapaxes", "mT", "numpy_T"))
SILENT = frozenset(("detach", "alias", "record_stream", "result_type", "empty", "empty_like", "is_leaf", "resize_"))
REACH = 12
"""Outermost ops looked at after a result was made."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """The next op that takes a tensor of this shape: forest row, base name, position among its tensor arguments, and
    its arguments."""

    row: int
    name: str
    position: int
    args: OpArgs


def next_consumer(
    c: Context, root: int, shape: tuple[int, ...], dtype: str, strides: tuple[int, ...] | None = None
) -> Consumer | None:
    """The first outermost op after `root` on its thread with a tensor argument like this; None within reach."""
    forest = c.s.links.forest
    rows = c.root_ops_on(int(forest.thread[root]))
    at = int(np.searchsorted(forest.start[rows], forest.end[root]))
    for row in rows[at : at + REACH].tolist():
        if forest.start[row] >= c.program.base_end:
            return None
        name = base_name(c.name_of(row))
        args = c.args_of(row)
        if name in SILENT or args is None:
            continue
        known = c.texts.of(int(forest.row[row])).steps
        index = -1
        for spot in range(len(args.args)):
            tensor = args.tensor(spot)
            index += tensor is not None
            if tensor is None or tensor.shape != shape or tensor.dtype != dtype:
                continue
            if strides is None or spot >= len(known) or known[spot] is None or known[spot] == strides:
                return Consumer(row, name, index, args)
    return None


def viewable(shape: tuple[int, ...], strides: tuple[int, ...], new: tuple[int, ...]) -> bool:
    """Can a tensor of this shape and strides be seen in another shape without a copy?"""
    if np.prod(shape, dtype=np.int64) != np.prod(new, dtype=np.int64):
        return False
    kept = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    blocks: list[list[int]] = []
    for n, stride in kept:
        if blocks and blocks[-1][1] == n * stride:
            blocks[-1] = [blocks[-1][0] * n, stride]
        else:
            blocks.append([n, stride])
    sizes = [n for n in new if n != 1]
    at = 0
    for whole, _ in blocks:
        left = whole
        while left > 1 and at < len(sizes) and left % sizes[at] == 0:
            left //= sizes[at]
            at += 1
        if left != 1:
            return False
    return at == len(sizes)
