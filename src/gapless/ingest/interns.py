"""Which code stands for which text? One dictionary a kind, one set a process; merged when processes join."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

K = TypeVar("K")


class Codes(dict[K, int]):
    """Numbers new keys from zero in order of appearance."""

    def __missing__(self, key: K) -> int:
        code = self[key] = len(self)
        return code


class Dictionaries(NamedTuple):
    """Keys in code order: event names, lanes (pid, tid), texts of arguments (code 0 means "not recorded")."""

    names: list[str]
    lanes: list[tuple[Any, Any]]
    texts: list[bytes]


class Translation(NamedTuple):
    """This process's code for every code of another."""

    names: NDArray[np.int32]
    lanes: NDArray[np.int32]
    texts: NDArray[np.int32]


class Interns:
    """The dictionaries of one process."""

    def __init__(self) -> None:
        self.names: Codes[str] = Codes()
        self.lanes: Codes[tuple[Any, Any]] = Codes()
        self.texts: Codes[bytes] = Codes({b"": 0})

    def snapshot(self) -> Dictionaries:
        """Keys in code order, to be sent to another process."""
        return Dictionaries(list(self.names), list(self.lanes), list(self.texts))

    def absorb(self, other: Dictionaries) -> Translation:
        """Take over the keys of another process."""
        return Translation(
            np.array([self.names[key] for key in other.names], dtype=np.int32),
            np.array([self.lanes[key] for key in other.lanes], dtype=np.int32),
            np.array([self.texts[key] for key in other.texts], dtype=np.int32),
        )
