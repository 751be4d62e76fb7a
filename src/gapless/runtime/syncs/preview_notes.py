"""Which waits does a preview note, and which of its tensors would lie on the host?"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakTensorKeyDictionary

from gapless.model.sync_fix import Direction, SyncFix
from gapless.model.sync_fixes import copy_name, fix_by_key, fix_for
from gapless.runtime.syncs.frames import Location, locate

MAX_WAITS = 1000
"""A loop that ends on a value it never gets is left after so many predicted waits."""


class EndlessRunError(BaseException):
    """Ends a run that would go on for ever; no `except Exception` of the user catches it."""


@dataclass(frozen=True, slots=True)
class PredictedWait:
    """A place that would wait: where, in which module, through what, how often in this call, why and what instead."""

    file: str
    line: int
    function: str
    expression: str
    module: str
    op: str
    count: int
    fix: SyncFix

    def text(self) -> str:
        """One line and its fix."""
        module = f" in {self.module}" if self.module else ""
        shown = f" `{self.expression}`" if self.expression else ""
        return (
            f"{self.file}:{self.line}{shown}{module}: {self.op}, {self.count}x a call (predicted)\n"
            f"    why: {self.fix.reason}\n    fix: " + self.fix.rewrite.replace("\n", "\n         ")
        )


class Notes:
    """The waits noted so far, and which tensors lie on the host, pinned or not."""

    def __init__(self, deps: bool) -> None:
        self.device_named = False
        self.function = ""
        self._deps = deps
        self._waits: list[tuple[Location, str, SyncFix]] = []
        self._host: WeakTensorKeyDictionary = WeakTensorKeyDictionary()

    def on_gpu(self, value: object) -> bool:
        """Whether the tensor would lie on the GPU."""
        return isinstance(value, torch.Tensor) and value not in self._host

    def pinned(self, value: torch.Tensor) -> bool:
        """Whether a host tensor would lie in pinned memory."""
        return bool(self._host.get(value, False))

    def place(self, result: object, *, host: bool, pinned: bool = False) -> None:
        """Every tensor in `result` lies on the host, or not."""
        for item in tree_leaves(result):
            if isinstance(item, torch.Tensor):
                if host:
                    self._host[item] = pinned
                elif item in self._host:
                    del self._host[item]

    def add(self, *chain: str, key: str = "") -> None:
        """A wait happens here."""
        if len(self._waits) >= MAX_WAITS:
            raise EndlessRunError
        where = locate(sys._getframe(1), deps=self._deps)
        entries = [name.replace("FakeTensor.", "Tensor.") for name in where.entries]
        functions = [self.function] if self.function else []
        fix = fix_by_key(key) if key else fix_for((*entries, *functions, *chain)) or fix_by_key("unknown-wait")
        # A fake tensor reads a list element by element, a GPU in one copy.
        if fix.key == "tolist" and self._waits and self._waits[-1][2] is fix and self._waits[-1][0].site == where.site:
            return
        self._waits.append((where, chain[-1], fix))

    def copied(self, name: str, source: torch.Tensor, *, to_gpu: bool, target_pinned: bool, non_blocking: bool) -> None:
        """A copy happens here; notes it if it crosses the border and waits."""
        from_gpu = self.on_gpu(source)
        if from_gpu == to_gpu:
            return
        pinned = self.pinned(source) if to_gpu else target_pinned
        if pinned and non_blocking:
            return
        self.add(name, key=fix_for_copy("HtoD" if to_gpu else "DtoH", pinned=pinned, non_blocking=non_blocking))

    def merged(self) -> list[PredictedWait]:
        """One entry a place and cause, in the order of the program."""
        groups: dict[tuple[object, str], list[tuple[Location, str, SyncFix]]] = {}
        for where, op, fix in self._waits:
            groups.setdefault((where.via or where.site, fix.key), []).append((where, op, fix))
        waits = []
        for group in groups.values():
            where, op, fix = group[0]
            site = where.via or where.site
            waits.append(
                PredictedWait(
                    site.file, site.line, site.function, site.expression(), where.module_path, op, len(group), fix
                )
            )
        return waits


def fix_for_copy(direction: Direction, *, pinned: bool, non_blocking: bool) -> str:
    """Key of the entry for a copy that waits."""
    found = fix_for([copy_name(direction, pinned=pinned, non_blocking=non_blocking)])
    return found.key if found is not None else "unknown-wait"
