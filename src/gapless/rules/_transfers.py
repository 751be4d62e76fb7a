"""Which copies between host and GPU does a step make, and under which outermost op?

Where the recorder does not say whether host memory is pinned (ROCm), a copy that blocks counts as pageable.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gapless.analyses.copies import copy_traits
from gapless.rules.context import Context
from gapless.tables.coding import categories
from gapless.tables.intervals import Int, as_ns

SMALL_BYTES = 64 * 1024
"""Up to this size a pageable upload is staged at once (measured on an H200; CUDA documents the same 64 KiB)."""


@dataclass(frozen=True, slots=True)
class Transfers:
    """Copies of the counted steps, one entry a copy: row of `activities`, launching call, forest row of that call and
    of the outermost op above it (the call itself if there is none), bytes, whether the host side is pageable (True also
    where the recorder does not say and the call blocks), whether the call or the one right after it blocks."""

    activity: Int
    call: Int
    call_row: Int
    top_row: Int
    size: Int
    pageable: np.ndarray[tuple[int], np.dtype[np.bool_]]
    blocks: np.ndarray[tuple[int], np.dtype[np.bool_]]

    def where(self, keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Transfers:
        """Those for which `keep` holds."""
        return Transfers(
            self.activity[keep], self.call[keep], self.call_row[keep], self.top_row[keep], self.size[keep],
            self.pageable[keep], self.blocks[keep],
        )  # fmt: skip


def transfers(c: Context, direction: str) -> Transfers:
    """Copies in one direction, 'HtoD' or 'DtoH'."""
    s = c.s
    names = categories(s.raw.activities["name"])
    launch = s.links.launch_of
    rows = np.flatnonzero(
        (launch >= 0) & np.isin(s.steps.step_of_activity, c.counted_steps)
        & np.array([copy_traits(n).direction in (direction, "DtoD") for n in names] or [False])[c.activity_code]
    )  # fmt: skip
    call = launch[rows]
    traits = [
        copy_traits(names[int(c.activity_code[row])], c.call_names[int(c.call_code[one])], _op_name(c, int(one)))
        for row, one in zip(rows.tolist(), call.tolist(), strict=True)
    ]
    right = np.array([t.direction == direction for t in traits], dtype=bool)
    rows, call, traits = rows[right], call[right], [t for t in traits if t.direction == direction]
    size = as_ns(s.raw.activities["size_bytes"].fill_null(0).to_numpy())[rows] if rows.size else as_ns([])
    forest = s.links.forest
    call_row = forest.of_call[call]
    top = c.places.op[call_row]
    blocks = s.blocking[call] | _sync_follows(c, call)
    pageable = np.array([t.host_memory in ("pageable", "unknown") for t in traits], dtype=bool)
    return Transfers(rows, call, call_row, np.where(top >= 0, top, call_row), size, pageable & blocks, blocks)


def _op_name(c: Context, call: int) -> str | None:
    op = int(c.s.links.op_of_call[call])
    return None if op < 0 else c.op_names[int(c.op_code[op])]


def _sync_follows(c: Context, call: Int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Is the next call of the same op a blocking one (`aten::copy_` waits for its stream after a blocking copy)?"""
    s = c.s
    op = s.links.op_of_call
    following = np.minimum(call + 1, max(op.size - 1, 0))
    return np.asarray((call + 1 < op.size) & (op[following] == op[call]) & (op[call] >= 0) & s.blocking[following])
