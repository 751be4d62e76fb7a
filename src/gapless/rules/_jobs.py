"""What is each GPU activity of the representative step: which op launched it, on what tensors, and of what family?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gapless.analyses.op_args import OpArgs, TensorArg, read_args
from gapless.analyses.op_costs import OpCost, base_name, op_cost
from gapless.tables.coding import categories, codes
from gapless.tables.intervals import as_ns

if TYPE_CHECKING:
    from gapless.analyses.kernel_names import KernelIdentity
    from gapless.rules.context import Context

MATH = frozenset(("gemm", "convolution", "attention"))


@dataclass(frozen=True, eq=False)
class Texts:
    """An op's recorded arguments, as text; None where they were not recorded. Ops with equal texts share one object, so
    that they are read once."""

    dims: str | None
    types: str | None
    concrete: str | None
    strides: str | None

    @cached_property
    def args(self) -> OpArgs | None:
        """The arguments; None without shapes."""
        return read_args(self.dims, self.types, self.concrete, self.strides)

    @cached_property
    def tensors(self) -> list[TensorArg]:
        """The tensor arguments; empty without shapes."""
        return self.args.tensors() if self.args else []

    @cached_property
    def steps(self) -> tuple[tuple[int, ...] | None, ...]:
        """Strides of each argument (None for those that are no tensors); empty where they cannot be read."""
        return _strides(self.strides)


@dataclass(frozen=True, slots=True)
class Job:
    """One activity of the program. `index` in the program, `row` of `activities`, `item` that launched it, `op` row of
    `ops` (-1: none) with its base `name`, `op_row` its forest row, `top` forest row of the outermost op (-1: none),
    `region` forest row of the innermost annotation (-1: none), `start` of the launch (ns of the base step), `ns` of
    GPU time, `blocks` thread blocks (0: not a kernel or not recorded)."""

    index: int
    row: int
    item: int
    stream: int
    op: int
    op_row: int
    top: int
    region: int
    name: str
    start: int
    ns: float
    blocks: int
    kernel: KernelIdentity
    texts: Texts

    @property
    def family(self) -> str:
        """Family of the kernel."""
        return self.kernel.family

    @property
    def args(self) -> OpArgs | None:
        """The op's arguments; None without shapes."""
        return self.texts.args

    @property
    def cost(self) -> OpCost | None:
        """FLOPs and bytes of the op; None without shapes or for unknown ops."""
        return _cost(self.name, self.texts)

    @property
    def strides(self) -> tuple[tuple[int, ...] | None, ...]:
        """Strides of each argument (None for those that are no tensors); empty where not recorded."""
        return self.texts.steps

    @property
    def tensors(self) -> list[TensorArg]:
        """The op's tensor arguments; empty without shapes."""
        return self.texts.tensors


class TextTable:
    """The recorded arguments of every row of `ops`."""

    def __init__(self, ops: pl.DataFrame) -> None:
        columns = [ops[name] for name in ("input_dims", "input_types", "concrete_inputs", "input_strides")]
        self._codes = [codes(column) for column in columns]
        # Code -1 (not recorded) finds the last entry.
        self._texts: list[list[str | None]] = [[*categories(column), None] for column in columns]
        self._known: dict[tuple[int, ...], Texts] = {}

    def of(self, op: int) -> Texts:
        """The arguments of one op."""
        key = tuple(int(column[op]) for column in self._codes)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Texts(*(texts[code] for texts, code in zip(self._texts, key, strict=True)))
        return found


@lru_cache(maxsize=4096)
def _cost(name: str, texts: Texts) -> OpCost | None:
    return op_cost(name, texts.dims, texts.types, texts.concrete, None, texts.strides)


def _strides(text: str | None) -> tuple[tuple[int, ...] | None, ...]:
    try:
        value = json.loads(text) if text and len(text) < 1_000_000 else None
    except (ValueError, RecursionError):
        return ()
    if not isinstance(value, list):
        return ()
    return tuple(
        tuple(one) if isinstance(one, list) and one and all(type(n) is int for n in one) else None for one in value
    )


def jobs_of(c: Context) -> list[Job]:
    """All activities of the program that belong to the trace, in launch order."""
    s, program = c.s, c.program
    if program.act_row.size == 0:
        return []
    rows = program.act_row
    call = s.links.launch_of[rows]
    op = s.links.op_of_call[call]
    forest = s.links.forest
    call_row = forest.of_call[call]
    top = c.places.op[call_row]
    # The entry at the end is found by -1: no annotation.
    region = np.append(forest.of_op, -1)[s.links.annotation_of_call[call]]
    blocks = _blocks(s.raw.activities, rows.tolist())
    start = as_ns(s.raw.calls["start_ns"].to_numpy())[call]
    names = [base_name(name) for name in c.op_names]
    columns = (
        rows, program.act_item, program.act_stream, op, np.append(forest.of_op, -1)[op], top, region,
        np.append(c.op_code, -1)[op], start, program.act_ns, c.activity_code[rows],
    )  # fmt: skip
    return [
        Job(
            i, row, item, stream, one, op_row, above, inside, names[name] if one >= 0 else "", begin, ns, blocks[i],
            c.identities[kernel], c.texts.of(one) if one >= 0 else _NO_TEXTS,
        )
        for i, (row, item, stream, one, op_row, above, inside, name, begin, ns, kernel) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        )
    ]  # fmt: skip


_NO_TEXTS = Texts(None, None, None, None)


def _blocks(activities: pl.DataFrame, rows: list[int]) -> list[int]:
    taken = activities.select("grid_x", "grid_y", "grid_z")[rows].cast(pl.Int64).fill_null(0)
    return [int(x) * int(y) * int(z) for x, y, z in taken.iter_rows()]


def best_seen_bandwidth(c: Context) -> float:
    """Bytes per nanosecond of the best memory-bound kernel of at least 10 us in the base step; 0 if there is none."""
    s, best = c.s, 0.0
    dur = as_ns(s.raw.activities["dur_ns"].to_numpy())
    light = np.array([one.family in ("pointwise", "copy") for one in c.identities] or [False])[c.activity_code]
    launched = (s.links.launch_of >= 0) & (s.steps.step_of_activity == c.program.base_step)
    for row in np.flatnonzero(light & launched & (dur >= 10_000)).tolist():
        op = int(s.links.op_of_call[s.links.launch_of[row]])
        cost = c.op_cost(op) if op >= 0 else None
        if cost is not None and cost.flops < 100 * max(cost.bytes, 1):
            best = max(best, cost.bytes / int(dur[row]))
    return best
