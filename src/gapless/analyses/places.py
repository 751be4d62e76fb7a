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

from gapless.analyses.host import HostForest
from gapless.analyses.links import Links
from gapless.ingest.raw import RawTrace
from gapless.tables.coding import categories, codes, matches
from gapless.tables.intervals import Int, as_ns
from gapless.tables.nesting import nearest

_FRAME = re.compile(r"^(?P<file>.+)\((?P<line>\d+)\): (?P<func>.*)$", re.DOTALL)
_LIBRARY = (
    "torch/",
    "torch\\",
    "torchvision/",
    "transformers/",
    "accelerate/",
    "pytorch_lightning/",
    "lightning/",
    "triton/", "numpy/", "pandas/", "scipy/", "PIL/", "matplotlib/", "tqdm/", "einops/", "diffusers/", "peft/", "timm/",
    "xformers/", "flash_attn/", "deepspeed/", "bitsandbytes/",
    "<",
)  # fmt: skip
_INSTALLED = ("site-packages", "dist-packages", "gapless/runtime/", "gapless\\runtime\\")
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
    """For every forest row: forest rows of its outermost op, module frame and user frame; -1 for none.

    `key` numbers the distinct places (equal op, module and frame names share one), `known[key]` is the place.
    """

    op: Int
    module: Int
    frame: Int
    key: Int
    known: tuple[Place, ...]

    def place(self, row: int) -> Place:
        """The place of one forest row."""
        return self.known[int(self.key[row])]


def is_user_frame(name: str) -> bool:
    """Is this a frame of the user's own code?"""
    found = _FRAME.match(name)
    if found is None:
        return False
    file = found["file"]
    return not (file.startswith(_LIBRARY + _STANDARD) or any(part in file for part in _INSTALLED))


def find_places(raw: RawTrace, links: Links) -> Places:
    """Places of all rows of a trace's forest."""
    forest = links.forest
    is_user = np.zeros(forest.source.size, dtype=bool)
    if raw.frames.height:
        is_user[forest.of_frame] = matches(raw.frames["name"], is_user_frame)
    frame = nearest(is_user, forest.parent)
    key, known = _known_places(raw, forest, links.top_op_above, links.module_above, frame)
    return Places(links.top_op_above, links.module_above, frame, key, known)


def _known_places(raw: RawTrace, forest: HostForest, op: Int, module: Int, frame: Int) -> tuple[Int, tuple[Place, ...]]:
    """Number the distinct (op name, module name, frame name) combinations, and spell each out."""
    ops, frames = categories(raw.ops["name"]), categories(raw.frames["name"]) if raw.frames.height else []
    op_codes, frame_codes = codes(raw.ops["name"]), codes(raw.frames["name"]) if raw.frames.height else as_ns([])
    named = [
        _name_codes(forest, rows, table)
        for rows, table in ((op, op_codes), (module, frame_codes), (frame, frame_codes))
    ]
    width = len(frames) + 1
    combined = ((named[0] + 1) * width + named[1] + 1) * width + named[2] + 1
    # Neighbours in time often share their place.
    heads = np.flatnonzero(np.append(True, combined[1:] != combined[:-1]))[: combined.size]
    distinct, key = np.unique(combined[heads], return_inverse=True)
    key = np.repeat(key.reshape(-1), np.diff(np.append(heads, combined.size)))
    known = []
    for value in distinct.tolist():
        rest, at = divmod(value, width)
        at_op, at_module = divmod(rest, width)
        file, line = _file_line(frames[at - 1]) if at else (None, None)
        known.append(
            Place(
                ops[at_op - 1] if at_op else None,
                frames[at_module - 1].removeprefix("nn.Module: ") if at_module else None,
                file,
                line,
            )
        )
    return as_ns(key), tuple(known)


def _name_codes(forest: HostForest, rows: Int, table: Int) -> Int:
    if table.size == 0:
        return np.full(rows.size, -1, dtype=np.int64)
    return np.where(rows >= 0, table[forest.row[np.maximum(rows, 0)] * (rows >= 0)], -1)


def _file_line(name: str) -> tuple[str | None, int | None]:
    found = _FRAME.match(name)
    return (found["file"], int(found["line"])) if found is not None else (None, None)
