"""How are two traces compared: options, the finished comparison, and how it shows itself?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gapless.api.reporting import ReportOptions, ReportView, report
from gapless.api.trace import Trace
from gapless.comparison.diffing import CompareOptions, compare
from gapless.comparison.side import Side
from gapless.model.calibration import Calibration
from gapless.model.diff import Diff


@dataclass(frozen=True, slots=True)
class DiffOptions:
    """What to compare: the annotation that marks steps in both, one device of both, what compiling cost outside the
    recorded window, and what recording costs on the machines of before and after (None: see `ReportOptions`)."""

    step_marker: str | None = None
    device: int | None = None
    compile_seconds: float | None = None
    calibrations: tuple[Calibration | None, Calibration | None] = (None, None)

    def reports(self) -> tuple[ReportOptions, ReportOptions]:
        """The part of the options that each side's report needs."""
        before, after = (
            ReportOptions(step_marker=self.step_marker, device=self.device, calibration=one)
            for one in self.calibrations
        )
        return before, after


@dataclass(frozen=True, slots=True)
class DiffView:
    """A comparison with both reports: `.diff` is the data, `.to_dict()` the JSON contract `gapless.diff/1`."""

    before: ReportView
    after: ReportView
    options: DiffOptions
    diff: Diff

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract as a dict."""
        from gapless.render.json_ import to_dict

        return to_dict(self.diff)

    def _repr_html_(self) -> str:
        from gapless.render.html.diff import render_diff_html

        return render_diff_html(self.diff)

    def __str__(self) -> str:
        from gapless.render.build_diff import markdown

        return markdown(self.diff)


def diff(before: Trace, after: Trace, *, options: DiffOptions | None = None) -> DiffView:
    """Compare two traces. Raises UsageError where a step marker or device does not exist in one of them."""
    chosen = options or DiffOptions()
    old_options, new_options = chosen.reports()
    views = report(before, options=old_options), report(after, options=new_options)
    old, new = (Side(v.context.s, v.context.p, v.context.places, v.report) for v in views)
    return DiffView(*views, chosen, compare(old, new, CompareOptions(chosen.compile_seconds)))
