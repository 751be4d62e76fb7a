"""How is gapless used from Python? `load` a trace, look at its tables, `report` on it, `diff` two of them."""

from __future__ import annotations

from gapless.api.comparing import DiffOptions, DiffView, diff
from gapless.api.loading import load
from gapless.api.reporting import ReportOptions, ReportView, report
from gapless.api.trace import Trace

__all__ = ["DiffOptions", "DiffView", "ReportOptions", "ReportView", "Trace", "diff", "load", "report"]
