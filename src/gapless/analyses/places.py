"""Where in the user's program does a host event lie: which op, module, file and line?

The op is the outermost operator above the event (what the user wrote). The module is the innermost `nn.Module` frame.
File and line are those of the innermost Python frame that is neither torch's, nor an installed package's, nor the
standard library's; the line is the first line of that function, which is what the recorder writes.
All of module, file and line need `with_stack`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from gapless.analyses.host import FRAME, OP
from gapless.analyses.links import Links, user_op_mask
from gapless.ingest.raw import RawTrace
from gapless.tables.coding import categories, codes, matches
from gapless.tables.intervals import Int
from gapless.tables.nesting import nearest, topmost

_FRAME = re.compile(r"^(?P<file>.+)\((?P<line>\d+)\): (?P<func>.*)$", re.DOTALL)
_LIBRARY = ("torch/", "torch\\", "torchvision/", "transformers/", "accelerate/", "pytorch_lightning/", "lightning/", "<")
_STANDARD = (
    "threading.py", "contextlib.py", "runpy.py", "queue.py", "selectors.py", "functools.py", "concurrent/", "asyncio/",
    "multiprocessing/", "importlib/", "logging/", "json/", "_bootstrap", "random.py", "weakref.py", "abc.py", "typing.py",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """One place; None for what the trace does not say."""

    op: str | None
    module: str | None
    file: str | None
    line: int | None


@dataclass(frozen=True, slots=True)
class Places:
    """For every forest row: forest rows of its outermost op, module frame and user frame; -1 for none."""

    op: Int
    module: Int
    frame: Int


def is_user_frame(name: str) -> bool:
    """Is this a frame of the user's own code?"""
    found = _FRAME.match(name)
    if found is None:
        return False
    file = found["file"]
    return not (file.startswith(_LIBRARY + _STANDARD) or "site-packages" in file or "dist-packages" in file)


def find_places(raw: RawTrace, links: Links) -> Places:
    """Places of all rows of a trace's forest."""
    forest = links.forest
    op = topmost(user_op_mask(raw, forest), forest.parent)
    op = np.where(op >= 0, op, nearest(forest.source == OP, forest.parent))
    is_module = np.zeros(forest.source.size, dtype=bool)
    is_user = np.zeros(forest.source.size, dtype=bool)
    if raw.frames.height:
        is_module[forest.of_frame] = matches(raw.frames["name"], lambda name: name.startswith("nn.Module: "))
        is_user[forest.of_frame] = matches(raw.frames["name"], is_user_frame)
    return Places(op, nearest(is_module, forest.parent), nearest(is_user & (forest.source == FRAME), forest.parent))


def place_of(raw: RawTrace, links: Links, places: Places, row: int) -> Place:
    """The place of one forest row."""
    forest = links.forest
    op, module, frame = int(places.op[row]), int(places.module[row]), int(places.frame[row])
    ops, names = categories(raw.ops["name"]), codes(raw.ops["name"])
    file, line = None, None
    if frame >= 0:
        file, line = _file_line(raw, int(forest.row[frame]))
    return Place(
        None if op < 0 else ops[int(names[forest.row[op]])],
        None if module < 0 else _frame_name(raw, int(forest.row[module])).removeprefix("nn.Module: "),
        file,
        line,
    )


def _frame_name(raw: RawTrace, row: int) -> str:
    return str(raw.frames["name"][row])


def _file_line(raw: RawTrace, row: int) -> tuple[str | None, int | None]:
    found = _FRAME.match(_frame_name(raw, row))
    if found is None:
        return None, None
    return found["file"], int(found["line"])
