"""Which pieces of GPU work does one step consist of, in the order in which they were launched, and who launched each?

The launching op is the innermost one, the user's op the outermost; the compiled region and the module are the nearest
ones round it. Work inside a graph comes in the order in which the GPU ran it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gapless.analyses.host import ANNOTATION, OP
from gapless.analyses.kernel_names import KernelIdentity
from gapless.analyses.op_costs import OpCost, base_name, op_cost
from gapless.comparison.kernels import twin_key
from gapless.comparison.side import Side
from gapless.tables.coding import categories, codes, matches
from gapless.tables.intervals import Int, as_ns
from gapless.tables.nesting import nearest

MOST = 30_000
"""Pieces of one step that are aligned; longer steps are cut, and the answer says so."""
MOST_CHARS = 300
_MATH = ("gemm", "convolution", "attention")


@dataclass(frozen=True, slots=True)
class Work:
    """One activity. `name` is cut to what a person can read; `size` is its grid, or bytes for copies.

    `op` is the innermost op (`op_row`: its row), `shapes` are its shapes; `ops` are all ops from it outwards, with the
    optimizer that they belong to. `kernel_gb`: gigabytes that the compiler says the kernel moves, where recorded.
    """

    identity: KernelIdentity
    name: str
    size: tuple[int | None, ...]
    op_row: int
    op: str | None
    ops: tuple[str, ...]
    shapes: str | None
    cost: OpCost | None
    region: str | None
    module: str | None
    in_graph: bool
    ns: int
    bytes: float | None
    kernel_gb: float | None

    @property
    def is_kernel(self) -> bool:
        """Is it neither a copy nor a memset?"""
        return self.identity.family not in ("memcpy", "memset")

    @property
    def label(self) -> str:
        """The op's name, else the kernel's."""
        return self.op or self.identity.short

    def keys(self) -> tuple[object | None, ...]:
        """What a piece on the other side must share with it to be the same, strictest first; None: no such key."""
        known = self.identity
        twin = twin_key(known)
        flops = self.cost.flops if self.cost is not None and known.family in _MATH else 0.0
        same_op = (base_name(self.op), self.shapes, known.family) if self.op and self.shapes else None
        return (
            (known.canonical, self.size),
            (twin, self.size) if twin else None,
            (known.family, round(flops)) if flops > 0 else None,
            same_op,
            known.canonical if self.is_kernel else None,
            twin,
        )


def works(side: Side) -> list[Work]:
    """The pieces of the side's base step."""
    s = side.s
    rows = np.flatnonzero((s.steps.step_of_activity == side.base) & (s.links.launch_of >= 0))
    if rows.size == 0:
        return []
    launch = s.links.launch_of[rows]
    start = as_ns(s.raw.activities["start_ns"].to_numpy())[rows]
    order = np.lexsort((start, as_ns(s.raw.calls["start_ns"].to_numpy())[launch]))[:MOST]
    rows, launch = rows[order], launch[order]
    return _make(side, rows, launch)


def _region_name(name: str) -> str:
    return name.removeprefix("Torch-Compiled Region").removeprefix(": ") or "compiled"


def _make(side: Side, rows: Int, launch: Int) -> list[Work]:
    s, forest, raw = side.s, side.s.links.forest, side.s.raw
    call_row = forest.of_call[launch]
    is_region = np.zeros(forest.source.size, dtype=bool)
    is_region[forest.of_op] = matches(
        raw.ops["name"], lambda n: n.startswith(("Torch-Compiled Region", "CompiledFunctionBackward"))
    )
    region = nearest(is_region, forest.parent)[call_row]
    modules = s.links.module_of_call[launch]
    texts = {c: categories(raw.ops[c]) for c in ("input_dims", "input_types", "concrete_inputs", "input_strides")}
    columns = {c: codes(raw.ops[c]) for c in texts}
    costs: dict[tuple[int, ...], OpCost | None] = {}
    frames = categories(raw.frames["name"]) if raw.frames.height else []
    frame_code = codes(raw.frames["name"]) if raw.frames.height else as_ns([])
    chains: dict[int, tuple[str, ...]] = {}
    dur, size = as_ns(raw.activities["dur_ns"].to_numpy()), raw.activities["size_bytes"].to_list()
    grid = [raw.activities[f"grid_{axis}"].to_list() for axis in "xyz"]
    graph = s.links.activity_count[launch] > 1
    names = [text[:MOST_CHARS] for text in categories(raw.activities["name"])]
    gigabytes = (
        dict(zip(raw.triton["op"].to_list(), raw.triton["num_gb"].to_list(), strict=True)) if raw.triton.height else {}
    )
    found = []
    for i, (row, call) in enumerate(zip(rows.tolist(), launch.tolist(), strict=True)):
        op = int(s.links.op_of_call[call])
        identity = side.identities[int(side.activity_code[row])]
        kernel = identity.family not in ("memcpy", "memset")
        cost = None
        if op >= 0 and not graph[i]:
            key = (int(side.op_code[op]), *(int(columns[c][op]) for c in columns))
            if key not in costs:
                given = [texts[c][columns[c][op]] if columns[c][op] >= 0 else None for c in texts]
                costs[key] = op_cost(side.op_names[key[0]], given[0], given[1], given[2], None, given[3])
            cost = costs[key]
        dims = int(columns["input_dims"][op]) if op >= 0 else -1
        found.append(
            Work(
                identity, names[int(side.activity_code[row])], tuple(axis[row] for axis in grid) if kernel else (size[row],),
                op, side.name_of_op(op) if not graph[i] else None, _chain(side, op, chains) if not graph[i] else (),
                texts["input_dims"][dims] if dims >= 0 and not graph[i] else None, cost,
                _region_name(side.name_of_op(int(forest.row[region[i]])) or "") if region[i] >= 0 else None,
                frames[frame_code[modules[i]]].removeprefix("nn.Module: ") if modules[i] >= 0 else None,
                bool(graph[i]), int(dur[row]), size[row], gigabytes.get(op),
            )
        )  # fmt: skip
    return found


def _chain(side: Side, op: int, known: dict[int, tuple[str, ...]]) -> tuple[str, ...]:
    """Names of an op and those round it, from inside out."""
    if op < 0:
        return ()
    if op not in known:
        forest = side.s.links.forest
        row = int(forest.of_op[op])
        chain: list[str] = []
        while row >= 0 and len(chain) < 12:
            if forest.source[row] in (OP, ANNOTATION):
                name = side.op_names[int(side.op_code[forest.row[row]])]
                if forest.source[row] == OP or name.startswith("Optimizer."):
                    chain.append(name)
            row = int(forest.parent[row])
        known[op] = tuple(chain)
    return known[op]
