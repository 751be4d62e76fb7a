"""How is a trace reported on: options, the finished report, and how it shows itself in a notebook?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gapless.analyses.study import StudyOptions
from gapless.api.assemble import assemble
from gapless.api.trace import Trace
from gapless.model.calibration import Calibration
from gapless.model.report import Report
from gapless.rules.context import Context


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What to report on. `rank` only chooses among several files; one file is reported on whatever its rank.
    `calibration`: what recording costs on the machine the trace comes from, where the trace does not carry it."""

    step_marker: str | None = None
    step: int | None = None
    device: int | None = None
    rank: int | None = None
    calibration: Calibration | None = None

    def study(self) -> StudyOptions:
        """The part of the options that the analyses need."""
        return StudyOptions(self.step_marker, self.step, self.device)


@dataclass(frozen=True, slots=True)
class ReportView:
    """A report with its trace: `.report` is the data, `.to_dict()` the JSON contract, `.context` what rules saw."""

    trace: Trace
    options: ReportOptions
    report: Report
    context: Context

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract `gapless.report/1` as a dict."""
        from gapless.render.json_ import to_dict

        return to_dict(self.report)

    def __str__(self) -> str:
        from gapless.render.markdown import render

        return render(self.report)

    def _repr_html_(self) -> str:
        from gapless.render.html import compact_html

        return compact_html(self.report)


def report(trace: Trace, *, options: ReportOptions | None = None) -> ReportView:
    """Report on a trace. Raises UsageError where a step marker, step or device does not exist in it."""
    chosen = options or ReportOptions()
    beside = trace.stacks
    made = assemble(trace.study(chosen.study()), beside, chosen.calibration, stacks_unread=trace.stacks_unread)
    return ReportView(trace, chosen, made.report, made.context)
