"""Why does this op or idiom make the host wait for the GPU, and which code does the same without waiting?

The table is data: one `SyncFix` per reason, looked up by aten op (`aten::nonzero`), by Python idiom (`Tensor.item`),
by runtime call (`cudaFree`) or by copy direction. A *true* dependency needs the value on the host (read it later,
rarer, or once); a *false* one comes from the choice of API alone and can be written without any wait.
"""

from __future__ import annotations

from collections.abc import Sequence

from gapless.model.sync_fix import Dependency, Direction, SyncFix
from gapless.model.sync_fixes_copies import CALLS, COPIES
from gapless.model.sync_fixes_values import READS, SIZES

__all__ = ["SYNC_FIXES", "Dependency", "Direction", "SyncFix", "copy_name", "fix_by_key", "fix_for"]

SYNC_FIXES: tuple[SyncFix, ...] = (*READS, *SIZES, *COPIES, *CALLS)
"""Every entry; where two share a name, the one with an `inner` condition comes first."""

_BY_KEY = {entry.key: entry for entry in SYNC_FIXES}
_BY_NAME: dict[str, list[SyncFix]] = {}
for _entry in SYNC_FIXES:
    for _name in _entry.names:
        _BY_NAME.setdefault(_name, []).append(_entry)


def fix_for(chain: Sequence[str]) -> SyncFix | None:
    """The entry for a chain of nested idioms, ops and copies, outermost first: the outermost one that the table knows.

    Append `copy:DtoH` or `copy:HtoD` (see `copy_name`) where the wait belongs to a copy. The op that contains the wait
    is the one to change: `repeat_interleave`, not the `_local_scalar_dense` inside it.
    """
    for position, name in enumerate(chain):
        inside = chain[position + 1 :]
        for entry in _BY_NAME.get(name, ()):
            if all(op in inside for op in entry.inner):
                return entry
    return None


def copy_name(direction: Direction, *, pinned: bool | None = None, non_blocking: bool | None = None) -> str:
    """How a copy is called in a chain; None means not known (a trace tells `pinned`, not the flag)."""
    if non_blocking and not pinned:
        return f"copy:{direction}:pageable:non_blocking"
    if pinned and direction == "HtoD":
        return "copy:HtoD:pinned"
    return f"copy:{direction}"


def fix_by_key(key: str) -> SyncFix:
    """The entry with this key; KeyError if there is none."""
    return _BY_KEY[key]
