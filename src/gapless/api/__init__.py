"""How is gapless used from Python? `load` a trace, look at its tables, `report` on it, `diff` two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gapless.api.loading import load
from gapless.api.reporting import ReportOptions, ReportView, report
from gapless.api.trace import Trace

if TYPE_CHECKING:
    from gapless.api.comparing import DiffOptions, DiffView, diff

__all__ = ["DiffOptions", "DiffView", "ReportOptions", "ReportView", "Trace", "diff", "load", "report"]


def __getattr__(name: str) -> object:
    """What compares traces is fetched when it is first used: a report does without."""
    if name not in ("DiffOptions", "DiffView", "diff"):
        raise AttributeError(f"module 'gapless.api' has no attribute {name!r}")
    from gapless.api import comparing

    return getattr(comparing, name)
