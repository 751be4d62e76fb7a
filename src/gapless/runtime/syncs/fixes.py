"""Which entry of the table of waits explains this one, and did the user ask for it in so many words?"""

from __future__ import annotations

from collections.abc import Sequence

from gapless.model.sync_fixes import SyncFix, fix_by_key, fix_for
from gapless.runtime.syncs.record import Wait

_BY_KIND = {"device": "device-sync", "event": "event-sync", "stream": "unknown-wait", "pageable": "pageable-upload"}
_EXPLICIT = frozenset({"device-sync", "stream-sync", "event-sync"})


def fix_of(chain: Sequence[str], kind: str) -> SyncFix:
    """The entry for what was running; where the table does not know it, the general one for this kind of wait."""
    return fix_for(chain) or fix_by_key(_BY_KIND[kind])


def is_explicit(wait: Wait) -> bool:
    """Whether the code asked to wait: `synchronize` of a device, stream or event. Everything else is hidden.

    `torch.Stream` and `torch.Event` have no Python frame of their own, so the expression decides where no op runs.
    """
    found = fix_for(wait.chain)
    if found is not None:
        return found.key in _EXPLICIT
    if wait.kind in ("device", "event"):
        return not _inside_op(wait)
    return not _inside_op(wait) and wait.where.site.expression().rstrip("()").endswith("synchronize")


def _inside_op(wait: Wait) -> bool:
    return "A" in wait.layers or "B" in wait.layers
