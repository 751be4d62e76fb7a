"""# hidden-sync: an operator makes the host wait for the GPU

## What it does
Finds operators that need a value of the GPU on the host: `.item()`, `bool(tensor)`, boolean-mask indexing, `nonzero`,
`unique`, `repeat_interleave` without `output_size`, a printed CUDA tensor, one value per parameter. Copies of real size
have rules of their own (`readback`, `pageable-copy`, `small-upload`).

## Why it costs
The host stops until all work queued before the read is done, so it loses its lead; the GPU then idles while the next
ops are dispatched. On a GPU-bound step it may cost nothing at all.

## How the gain is computed
The operator is replaced in the replayed program by its form without the wait. For a value that is only looked at, the
whole read goes; for a printed tensor all that the printing computes and reads goes. For an operation whose *size*
depends on the data, one element-wise kernel over the same data takes its place. Cautious: only the wait goes. The next
blocking call inherits the wait where one follows.

## When it may be wrong
A value that the very next Python line needs (a `while` over a device value) cannot be read later.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from gapless.analyses.blocking import Origin
from gapless.analyses.op_costs import base_name
from gapless.model.sync_fixes import fix_for
from gapless.replay.program import Program
from gapless.replay.whatif import add_activity, add_host, cut_host, inside_items, unblock
from gapless.rules._prints import prints
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Edit, Found, Outcome
from gapless.tables.intervals import Int, Set, as_ns, covered

CODE = KIND = "hidden-sync"
COPY_BYTES = 64 * 1024
"""Reads of more than this move data; they are the copy rules' business."""
VALUE_OPS = {"item", "_local_scalar_dense", "is_nonzero", "equal", "allclose", "__bool__"}
SIZE_OPS = {
    "index", "index_put_", "index_put", "_index_put_impl_", "nonzero", "masked_select", "masked_scatter", "argwhere",
    "where", "_unique2", "unique_dim", "unique_consecutive", "bincount", "repeat_interleave", "histc", "one_hot",
}  # fmt: skip
MASK_READS, MASK_WRITES = {"index", "masked_select"}, {"index_put_", "index_put", "_index_put_impl_", "masked_scatter"}


def check(c: Context) -> Outcome:
    """Are there operators that wait for a value?"""
    s = c.s
    rows = _sites(c)
    if rows.size == 0:
        return Clean()
    base = c.in_base(rows)
    if base.size == 0:
        return Clean()
    count = rows.size / c.step_count
    calls = _sync_calls(c)
    blocked = as_ns(s.raw.calls["dur_ns"].to_numpy())[calls].sum() / c.step_count
    idle = s.syncs.idle_after[c.user_syncs][np.isin(s.syncs.call[c.user_syncs], calls)].sum() / c.step_count
    names = Counter(c.name_of(int(row)) for row in rows)
    main = names.most_common(1)[0][0]
    listed = ", ".join(
        f"{n} x {name}" for name, n in ((k, round(v / c.step_count, 1)) for k, v in names.most_common(4))
    )
    printed = prints(c)
    in_print = np.asarray(covered(printed, s.links.forest.start[base], s.links.forest.end[base]) > 0)
    fix = fix_for(_chain_below(c, int(base[0])))
    who = f"{_said(main, len(names))} the host wait"
    if in_print.sum() * 2 > base.size:
        fix, who = fix_for(["print"]), "Printing a CUDA tensor makes the host wait"
    return Found(
        f"{who} for the GPU {count:.0f} time{'s' if count > 1.5 else ''} a step",
        c.sites(rows),
        _replaced(c, base[~in_print], printed),
        [
            f"per step: {listed}",
            f"the host is blocked {blocked / 1e6:.3f} ms a step in these reads, and the GPU then idles {idle / 1e6:.3f} ms",
            *([f"why: {fix.reason}"] if fix else []),
        ],
        "If the next line of Python needs the value, the read cannot go; then read it one step late. Where a later "
        "blocking call follows, the wait moves there.",
        fix.rewrite if fix else GENERIC_FIX,
        cautious=lambda program: unblock(program, inside_items(program, s.links.forest.start[base], s.links.forest.end[base])),
        hopeful=_joined(c, base[~in_print], printed),
        assumptions=["a size-dependent operation becomes one element-wise kernel over the same data; at best what stands "
                     "between reading and writing under one mask becomes one operator too",
                     *([fix.note] if fix and fix.note else [])],
    )  # fmt: skip


def _said(main: str, ops: int) -> str:
    return f"{main} makes" if ops == 1 else f"{main} and {ops - 1} more op{'s' if ops > 2 else ''} make"


GENERIC_FIX = """\
# Keep the value on the GPU and read it rarely:
total_loss += loss.detach()              # no wait
if step % 50 == 0:
    print(total_loss.item() / 50)        # one wait every 50 steps
"""


def _sync_calls(c: Context) -> Int:
    s = c.s
    calls = s.syncs.call[c.user_syncs]
    size = as_ns(s.raw.activities["size_bytes"].fill_null(0).to_numpy()) if s.raw.activities.height else as_ns([0])
    own = s.links.first_activity[calls]
    moved = np.where(own >= 0, size[np.maximum(own, 0)], 0)
    hidden = (s.origin[calls] == int(Origin.HIDDEN)) & (moved <= COPY_BYTES)
    return as_ns(calls[hidden])


def _sites(c: Context) -> Int:
    """Outermost forest rows of value and size operators that contain a blocking call, in time order."""
    s = c.s
    forest = s.links.forest
    wanted = np.zeros(forest.source.size, dtype=bool)
    for call in _sync_calls(c).tolist():
        row, best = int(forest.parent[forest.of_call[call]]), -1
        while row >= 0:
            name = base_name(c.name_of(row)) if forest.source[row] == 2 else ""
            if name in VALUE_OPS or name in SIZE_OPS:
                best = row
            row = int(forest.parent[row])
        if best >= 0:
            wanted[best] = True
    return np.flatnonzero(wanted)


def _chain_below(c: Context, row: int) -> list[str]:
    """Names from an operator down to the blocking call inside it."""
    s = c.s
    forest = s.links.forest
    calls = _sync_calls(c)
    inner = forest.of_call[calls]
    inside = inner[(forest.start[inner] >= forest.start[row]) & (forest.start[inner] < forest.end[row])]
    return c.chain(int(inside[0])) if inside.size else c.chain(row)


def _replaced(c: Context, rows: Int, printed: Set) -> Edit:
    """These operators without their waits, and without the stretches in which tensors are printed."""
    forest = c.s.links.forest
    start, end = forest.start[rows], forest.end[rows]
    sized = np.array([base_name(c.name_of(int(row))) in SIZE_OPS for row in rows.tolist()], dtype=bool)
    traffic = np.array(
        [_element_wise_ns(c, int(row)) if big else 0.0 for row, big in zip(rows.tolist(), sized, strict=True)],
        dtype=np.float64,
    )
    sized &= ~_written_back(c, rows)
    op_ns = c.typical_op_ns
    stream = int(np.bincount(c.program.act_stream).argmax()) if c.program.act_stream.size else 0

    def edit(program: Program) -> Program:
        edited = cut_host(cut_host(program, *printed), start, end)
        edited = add_host(edited, start[sized], op_ns)
        return add_activity(edited, start[sized], np.maximum(traffic[sized], 2_000.0), stream)

    return edit


def _joined(c: Context, rows: Int, printed: Set) -> Edit:
    """As `_replaced`, but what stands between an `x[mask]` and its `x[mask] = ...` shrinks to one operator too."""
    forest, base = c.s.links.forest, _replaced(c, rows, printed)
    reads = np.flatnonzero(_written_back(c, rows))
    start, end = forest.end[rows[reads]], forest.start[rows[np.minimum(reads + 1, rows.size - 1)]]
    return lambda program: add_host(cut_host(base(program), start, end, keep_work=True), start, c.typical_op_ns)


def _written_back(c: Context, rows: Int) -> NDArray[np.bool_]:
    """Which reads `x[mask]` belong to the `x[mask] = ...` after them? Without the mask the two are one operation."""
    dims = c.s.raw.ops["input_dims"]
    row_of = c.s.links.forest.row

    def first(row: int) -> str:
        text = dims[int(row_of[row])]
        return "" if text is None else text.split("]", 1)[0]

    names = [base_name(c.name_of(row)) for row in rows.tolist()]
    out = np.zeros(rows.size, dtype=bool)
    for i in range(rows.size - 1):
        if names[i] in MASK_READS and names[i + 1] in MASK_WRITES:
            out[i] = bool(first(int(rows[i]))) and first(int(rows[i])) == first(int(rows[i + 1]))
    return out


def _element_wise_ns(c: Context, row: int) -> float:
    """GPU time of one element-wise kernel over the operator's inputs; 2 us where shapes are missing."""
    cost = c.op_cost(int(c.s.links.forest.row[row]))
    if cost is None:
        dims = c.s.raw.ops["input_dims"][int(c.s.links.forest.row[row])]
        return 2_000.0 if dims is None else 5_000.0
    return cost.bytes / c.bandwidth
