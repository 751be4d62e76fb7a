"""Where does compiled code break off, and why, as far as the trace shows?

A compiled region inside another continues it after a break. With stacks the function that continues is named after the
line where it broke (`torch_dynamo_resume_in_f_at_62`). The reason is what ran in the outer region between the compiled
pieces: an op that needs a value, a call of `graph_break()`; a break whose cause left no event has none to show.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Literal

import numpy as np

from gapless.analyses.host import ANNOTATION, FRAME, OP
from gapless.comparison.side import Side
from gapless.model.diff import GraphBreak
from gapless.tables.coding import categories, codes, matches
from gapless.tables.intervals import Int, as_ns
from gapless.tables.nesting import nearest

_RESUME = re.compile(
    r"^(?P<file>.+)\((?P<line>\d+)\): torch_dynamo_resume_in_(?P<function>.+)_at_(?P<at>\d+)$", re.DOTALL
)
_INNER = ("## Call CompiledFxGraph", "CompiledFunction")
_VALUE_OPS = ("aten::is_nonzero", "aten::item", "aten::_local_scalar_dense", "aten::equal", "aten::nonzero")
_GUARD = "TorchDynamo Cache Lookup"
_INTERNAL = ("Pregraph bytecode", "AOTDispatcher", "## Call CompiledFxGraph", "Torch-Compiled", "CompiledFunction")  # fmt: skip
UNKNOWN = "the trace does not show why; TORCH_LOGS=graph_breaks does"


def inner_regions(side: Side) -> Int:
    """Compiled regions of counted steps that lie inside another one, by start."""
    forest, rows = side.s.links.forest, side.outermost_regions
    flag = np.zeros(forest.source.size, dtype=bool)
    flag[rows] = True
    above = nearest(flag, forest.parent)
    parent = forest.parent[rows]
    return rows[(parent >= 0) & (above[np.maximum(parent, 0)] >= 0)]


def gave_up(side: Side) -> float:
    """Calls per step that went through torch.compile and ran no compiled region; 0 where no stacks say so."""
    raw, forest = side.s.raw, side.s.links.forest
    if not side.has_stacks:
        return 0.0
    wrapper = matches(
        raw.frames["name"], lambda n: n.startswith("torch/_dynamo/eval_frame.py") and "compile_wrapper" in n
    )
    rows = forest.of_frame[wrapper]
    rows = rows[side.counted[rows]]
    regions = forest.start[side.outermost_regions]
    empty = np.searchsorted(regions, forest.start[rows]) == np.searchsorted(regions, forest.end[rows])
    flag = np.zeros(forest.source.size, dtype=bool)
    flag[rows] = True
    above = nearest(flag, forest.parent)
    outermost = (forest.parent[rows] < 0) | (above[np.maximum(forest.parent[rows], 0)] < 0)
    return float((empty & outermost).sum()) / side.count


def graph_breaks(side: Side, name: Literal["before", "after"]) -> list[GraphBreak]:
    """The breaks of one side's base step, most frequent first."""
    forest = side.s.links.forest
    resume = _resume_frames(side)
    found: Counter[tuple[str | None, int | None, str | None, str]] = Counter()
    rows = inner_regions(side)
    for row in rows[side.step_of_row[rows] == side.base].tolist():
        place = _place(side, row, resume)
        found[(*place, _reason(side, row))] += 1
    explicit = _explicit(side)
    for row in explicit[side.step_of_row[explicit] == side.base].tolist():
        if rows.size == 0 or not _inside_region(side, row):
            caller = int(forest.parent[row])
            found[(*_frame_place(side, caller), "torch._dynamo.graph_break() is called")] += 1
    return [
        GraphBreak(name, file, line, function, reason, float(n))
        for (file, line, function, reason), n in sorted(found.items(), key=lambda item: (-item[1], str(item[0])))
    ]


def _resume_frames(side: Side) -> Int:
    """For each forest row the nearest continuation frame above it, -1 if none."""
    forest = side.s.links.forest
    flag = np.zeros(forest.source.size, dtype=bool)
    if side.has_stacks:
        flag[forest.of_frame] = matches(side.s.raw.frames["name"], lambda n: _RESUME.match(n) is not None)
    return nearest(flag & (forest.source == FRAME), forest.parent)


def _place(side: Side, row: int, resume: Int) -> tuple[str | None, int | None, str | None]:
    """File, line and function of the break that an inner region continues after: the innermost continuation frame
    inside the region that holds it, or above it."""
    forest = side.s.links.forest
    continues = resume == np.arange(forest.source.size)
    within = (forest.start >= forest.start[row]) & (forest.end <= forest.end[row])
    inside = np.flatnonzero(continues & within)
    frame = int(inside[0]) if inside.size else int(resume[row])
    if frame < 0:
        return None, None, None
    found = _RESUME.match(_frame_name(side, frame))
    return (found["file"], int(found["at"]), found["function"]) if found else (None, None, None)


def _frame_name(side: Side, row: int) -> str:
    frames = side.s.raw.frames["name"]
    return categories(frames)[int(codes(frames)[side.s.links.forest.row[row]])]


def _frame_place(side: Side, row: int) -> tuple[str | None, int | None, str | None]:
    """The first user frame at or above a row."""
    place = side.places.place(row) if row >= 0 else None
    return (place.file, place.line, None) if place else (None, None, None)


def _reason(side: Side, row: int) -> str:
    """What ran in the outer region between the end of its compiled code and this inner region."""
    forest = side.s.links.forest
    region = _outer(side, row)
    within = (forest.start >= forest.start[region]) & (forest.end <= forest.start[row])
    inside = np.flatnonzero(within & (forest.source == OP) & (forest.thread == forest.thread[row]))
    for one in inside[::-1].tolist():
        name = side.op_names[int(side.op_code[forest.row[one]])]
        if name.startswith(_GUARD):
            continue
        if name.startswith(_INTERNAL):
            break
        above = _event_above(side, one)
        if above.startswith(_INNER):
            break
        if above and not above.startswith(_INTERNAL):
            continue
        if name.startswith(_VALUE_OPS):
            return f"{name}: Python needs a value of a tensor"
        return f"{name} ran uncompiled"
    explicit = _explicit(side)
    between = (forest.start[explicit] >= forest.start[region]) & (forest.end[explicit] <= forest.start[row])
    return "torch._dynamo.graph_break() is called" if between.any() else UNKNOWN


def _event_above(side: Side, row: int) -> str:
    """Name of the nearest op or annotation above a row, whatever frames lie between; '' if none."""
    forest = side.s.links.forest
    row = int(forest.parent[row])
    while row >= 0:
        if forest.source[row] in (OP, ANNOTATION):
            return side.op_names[int(side.op_code[forest.row[row]])]
        row = int(forest.parent[row])
    return ""


def _outer(side: Side, row: int) -> int:
    """The compiled region that holds an inner one."""
    forest = side.s.links.forest
    row = int(forest.parent[row])
    while not (
        forest.source[row] in (OP, ANNOTATION)
        and side.op_names[int(side.op_code[forest.row[row]])].startswith("Torch-Compiled Region")
    ):
        row = int(forest.parent[row])
    return row


def _explicit(side: Side) -> Int:
    """Frames of `torch._dynamo.graph_break()` in counted steps."""
    if not side.has_stacks:
        return as_ns([])
    flag = matches(side.s.raw.frames["name"], lambda n: n.startswith("torch/_dynamo/") and n.endswith(": graph_break"))
    rows = side.s.links.forest.of_frame[flag]
    return rows[side.counted[rows]]


def _inside_region(side: Side, row: int) -> bool:
    """Does a frame lie inside a compiled region?"""
    forest, regions = side.s.links.forest, side.outermost_regions
    return bool(((forest.start[regions] <= forest.start[row]) & (forest.end[row] <= forest.end[regions])).any())
