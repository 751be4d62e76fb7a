"""How do the parts of all chunks become one set of columns per table?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gapless.ingest.categories import Group
from gapless.ingest.columns import Chunk
from gapless.ingest.groups import BUILDERS, Arrays
from gapless.ingest.interns import Interns


@dataclass(slots=True)
class Rows:
    """Rows of one or more groups over the whole file, in file order; `part` indexes `groups` and `categories`."""

    start: NDArray[np.int64]
    dur: NDArray[np.int64]
    lane: NDArray[np.int32]
    name: NDArray[np.int32]
    part: NDArray[np.int32]
    groups: list[Group]
    categories: list[str]
    args: Arrays

    def __len__(self) -> int:
        return len(self.start)

    def take(self, index: NDArray[Any]) -> Rows:
        """These rows in the order of `index`, or those where it is true."""
        return Rows(
            self.start[index], self.dur[index], self.lane[index], self.name[index], self.part[index], self.groups,
            self.categories, {name: column[index] for name, column in self.args.items()},
        )  # fmt: skip

    def group_is(self, group: Group) -> NDArray[np.bool_]:
        """Which rows belong to `group`."""
        return np.array([g == group for g in self.groups] or [False], dtype=np.bool_)[self.part]


def gather(chunks: Sequence[Chunk], groups: Sequence[Group]) -> Rows:
    """All rows of `groups`, in file order."""
    parts = [part for chunk in chunks for part in chunk.parts if part.group in groups]

    def joined(arrays: list[NDArray[Any]], empty: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate(arrays) if arrays else empty

    nothing = BUILDERS[groups[0]]([], Interns())
    return Rows(
        joined([p.start for p in parts], np.zeros(0, np.int64)),
        joined([p.dur for p in parts], np.zeros(0, np.int64)),
        joined([p.lane for p in parts], np.zeros(0, np.int32)),
        joined([p.name for p in parts], np.zeros(0, np.int32)),
        np.repeat(np.arange(len(parts), dtype=np.int32), [len(p.start) for p in parts]),
        [p.group for p in parts],
        [p.category for p in parts],
        {name: joined([p.args[name] for p in parts], empty) for name, empty in nothing.items()},
    )
