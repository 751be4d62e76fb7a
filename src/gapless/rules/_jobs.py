"""What is each GPU activity of the representative step: which op launched it, on what tensors, and of what family?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import polars as pl

from gapless.analyses.host import ANNOTATION
from gapless.analyses.op_args import OpArgs, TensorArg, read_args
from gapless.analyses.op_costs import OpCost, base_name, op_cost
from gapless.tables.intervals import as_ns

if TYPE_CHECKING:
    from gapless.analyses.kernel_names import KernelIdentity
    from gapless.rules.context import Context

MATH = frozenset(("gemm", "convolution", "attention"))


@dataclass(frozen=True, slots=True)
class Texts:
    """An op's recorded arguments, as text; None where they were not recorded."""

    dims: str | None
    types: str | None
    concrete: str | None
    strides: str | None


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
        return _args(self.texts)

    @property
    def cost(self) -> OpCost | None:
        """FLOPs and bytes of the op; None without shapes or for unknown ops."""
        return _cost(self.name, self.texts)

    @property
    def strides(self) -> tuple[tuple[int, ...] | None, ...]:
        """Strides of each argument (None for those that are no tensors); empty where not recorded."""
        return strides_of(self.texts.strides)

    @property
    def tensors(self) -> list[TensorArg]:
        """The op's tensor arguments; empty without shapes."""
        return self.args.tensors() if self.args else []


@lru_cache(maxsize=4096)
def _args(texts: Texts) -> OpArgs | None:
    return read_args(texts.dims, texts.types, texts.concrete, texts.strides)


@lru_cache(maxsize=4096)
def _cost(name: str, texts: Texts) -> OpCost | None:
    return op_cost(name, texts.dims, texts.types, texts.concrete, None, texts.strides)


@lru_cache(maxsize=4096)
def strides_of(text: str | None) -> tuple[tuple[int, ...] | None, ...]:
    """The recorded strides of each argument; () where they cannot be read."""
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
    region = forest.nearest_source(ANNOTATION)[call_row]
    blocks = _blocks(s.raw.activities, rows.tolist())
    texts = _texts(c, op.tolist())
    start = as_ns(s.raw.calls["start_ns"].to_numpy())[call]
    jobs = []
    for i, row in enumerate(rows.tolist()):
        one = int(op[i])
        jobs.append(
            Job(
                i, row, int(program.act_item[i]), int(program.act_stream[i]), one,
                int(forest.of_op[one]) if one >= 0 else -1, int(top[i]), int(region[i]),
                base_name(c.op_names[int(c.op_code[one])]) if one >= 0 else "",
                int(start[i]), float(program.act_ns[i]), blocks[i],
                c.identities[int(c.activity_code[row])], texts[one] if one >= 0 else _NO_TEXTS,
            )
        )  # fmt: skip
    return jobs


_NO_TEXTS = Texts(None, None, None, None)


def _texts(c: Context, ops: list[int]) -> dict[int, Texts]:
    wanted = sorted({op for op in ops if op >= 0})
    taken = c.s.raw.ops.select("input_dims", "input_types", "concrete_inputs", "input_strides")[wanted]
    columns = [taken[name].cast(pl.String).to_list() for name in taken.columns]
    return {op: Texts(*row) for op, row in zip(wanted, zip(*columns, strict=True), strict=True)}


def _blocks(activities: pl.DataFrame, rows: list[int]) -> list[int]:
    taken = activities.select("grid_x", "grid_y", "grid_z")[rows].cast(pl.Int64).fill_null(0)
    return [int(x) * int(y) * int(z) for x, y, z in taken.iter_rows()]
