"""How is a measurement or comparison shown in a notebook? One small table, no scripts, every text escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from gapless.runtime.timing.result import QUANTITIES, Measurement
from gapless.runtime.timing.screen import comparison_screen, headline_text, quantity_text

if TYPE_CHECKING:
    from gapless.runtime.timing.comparison import Comparison

__all__ = ["comparison_page", "measurement_page"]


def measurement_page(measurement: Measurement) -> str:
    """Headline, verdict, quantities; failed and warned checks open, the rest folded."""
    rows = "".join(
        f"<tr><td><code>{name}</code></td><td style='text-align:left'>{escape(quantity_text(measurement[name]))}</td>"
        f"<td style='text-align:left'>{escape(meaning)}</td></tr>"
        for name, meaning in QUANTITIES.items()
        if name in measurement.quantities
    )
    verdict = measurement.verdict
    advice = f" <em>{escape(verdict.advice)}</em>" if verdict.advice else ""
    raised = "".join(
        f"<li><b>{check.status} {check.id} {escape(check.title)}</b>: {escape(check.evidence)} "
        f"<em>{escape(check.advice)}</em></li>"
        for check in measurement.checks
        if check.status in ("fail", "warn") and check.id != "H02"
    )
    rest = "".join(
        f"<li>{check.status} {check.id} {escape(check.title)}: {escape(check.evidence)}</li>"
        for check in measurement.checks
        if check.status in ("pass", "unknown")
    )
    return (
        f"<div><p><b>{escape(headline_text(measurement))}</b><br>{escape(measurement.headline.why)}</p>"
        f"<p><b>{escape(verdict.kind)}</b>: {escape(verdict.sentence)}{advice}</p><table>{rows}</table>"
        f"<ul>{raised}</ul><details><summary>other checks</summary><ul>{rest}</ul></details></div>"
    )


def comparison_page(comparison: Comparison) -> str:
    """The text screen; it is short enough."""
    return f"<pre>{escape(comparison_screen(comparison))}</pre>"
