"""Which code stands for which text? One dictionary a kind, one set a process; merged when processes join."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")


class Codes(dict[K, int]):
    """Numbers new keys from zero in order of appearance."""

    def __missing__(self, key: K) -> int:
        code = self[key] = len(self)
        return code


class Interns:
    """The dictionaries of one process: event names, lanes (pid, tid) and JSON or plain texts of arguments."""

    def __init__(self) -> None:
        self.names: Codes[str] = Codes()
        self.lanes: Codes[tuple[object, object]] = Codes()
        self.texts: Codes[bytes] = Codes()
        self.texts[b""] = 0  # means "not recorded"

    def snapshot(self) -> tuple[list[str], list[tuple[object, object]], list[bytes]]:
        """Keys in code order, to be sent to another process."""
        return list(self.names), list(self.lanes), list(self.texts)
