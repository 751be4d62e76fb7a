"""How is a measurement or comparison shown on one text screen, with no digit that the samples do not support?"""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from gapless.runtime.timing.result import QUANTITIES, Check, Measurement, Quantity

if TYPE_CHECKING:
    from gapless.runtime.timing.comparison import Comparison

__all__ = ["comparison_screen", "headline_text", "measurement_screen", "quantity_text", "time_text"]

MIN_SAMPLES_FOR_INTERVAL = 6


def time_text(us: float, half_us: float | None = None) -> str:
    """A time with unit; digits end where the half width of its interval begins (three at most without one)."""
    unit, scale = next(
        (u, s) for u, s in (("s", 1e6), ("ms", 1e3), ("us", 1.0), ("ns", 1e-3)) if abs(us) >= s or u == "ns"
    )
    value = us / scale
    if value == 0:
        return f"0 {unit}"
    size = math.floor(math.log10(abs(value)))
    decimals = 2 - size
    if half_us is not None and half_us > 0:
        decimals = min(4 - size, -math.floor(math.log10(half_us / scale)))
    rounded = round(value, decimals)
    return f"{rounded:.{max(0, decimals)}f} {unit}"


def quantity_text(quantity: Quantity) -> str:
    """Median ± half width with spread, or unknown with the reason."""
    summary = quantity.summary
    if summary is None:
        return f"unknown: {quantity.why or 'not measured'}"
    if summary.count < MIN_SAMPLES_FOR_INTERVAL:
        return time_text(summary.median_us)
    half = (summary.ci_high_us - summary.ci_low_us) / 2
    text = f"{time_text(summary.median_us, half)} ±{summary.half_width:.1%}"
    return f"{text:<20} p5 {time_text(summary.p5_us)}, p95 {time_text(summary.p95_us)}, n={summary.count}"


def headline_text(measurement: Measurement) -> str:
    """The headline in one line; two modes are given as two numbers."""
    quantity = measurement[measurement.headline.id]
    summary = quantity.summary
    forced = ", forced" if measurement.headline.forced else ""
    if summary is None:
        return f"{measurement.name}: unknown ({quantity.why or 'not measured'})"
    if summary.modes is not None:
        fast, slow = time_text(summary.modes.fast_us), time_text(summary.modes.slow_us)
        return f"{measurement.name}: {fast} or {slow}: two modes ({quantity.id}{forced})"
    if summary.count < MIN_SAMPLES_FOR_INTERVAL:
        few = f"{summary.count} samples only, no interval"
        return f"{measurement.name}: {time_text(summary.median_us)} ({quantity.id}{forced}; {few})"
    half = (summary.ci_high_us - summary.ci_low_us) / 2
    return f"{measurement.name}: {time_text(summary.median_us, half)} ±{summary.half_width:.1%} ({quantity.id}{forced})"


def measurement_screen(measurement: Measurement) -> str:
    """Everything that matters in about forty lines."""
    lines = [headline_text(measurement), f"  {measurement.headline.why}"]
    lines += ["", f"{measurement.verdict.kind}: {measurement.verdict.sentence}"]
    if measurement.verdict.advice:
        lines.append(f"  -> {measurement.verdict.advice}")
    ratio = _cold_ratio(measurement)
    if ratio:
        lines.append(f"  {ratio}")
    lines.append("")
    lines += _quantity_lines(measurement)
    lines += ["", *_check_lines(measurement.checks)]
    lines += ["", "  " + _fingerprint(measurement)]
    return "\n".join(lines)


def _quantity_lines(measurement: Measurement) -> list[str]:
    """A line for each known quantity; unknown ones together by reason."""
    lines = []
    reasons: dict[str, list[str]] = {}
    for name, meaning in QUANTITIES.items():
        quantity = measurement.quantities.get(name)
        if quantity is None:
            continue
        if quantity.known:
            note = f"; {quantity.note}" if quantity.note else ""
            lines.append(f"  {name:<13}  {quantity_text(quantity):<60}  {meaning}{note}")
        else:
            reasons.setdefault(quantity.why or "not measured", []).append(name)
    return lines + [f"  unknown: {' '.join(names)} ({why})" for why, names in reasons.items()]


def _cold_ratio(measurement: Measurement) -> str:
    cold, again = measurement.quantities.get("t_gpu_cold"), measurement.quantities.get("t_gpu_again")
    if cold is None or again is None or not cold.us or not again.us:
        return ""
    return f"cold L2 / warm L2: {cold.us / again.us:.2f} (single calls, same floor)"


def _check_lines(checks: tuple[Check, ...]) -> list[str]:
    passed = [c.id for c in checks if c.status == "pass"]
    lines = [f"  passed: {' '.join(passed)}" if passed else "  passed: none"]
    for status in ("fail", "warn"):
        for check in checks:
            if check.status == status and check.id != "H02":
                lines.append(f"  {status.upper()} {check.id} {check.title}: {check.evidence}")
                if check.advice:
                    lines.append(f"       -> {check.advice}")
    unknown = [f"{c.id} ({c.evidence})" for c in checks if c.status == "unknown" and c.id != "H02"]
    if unknown:
        lines += textwrap.wrap("  cannot tell: " + "; ".join(unknown), 120, subsequent_indent="    ")
    return lines


def _fingerprint(measurement: Measurement) -> str:
    facts = measurement.fingerprint
    keys = ("gpu", "driver", "cuda", "torch", "python", "sm_mhz", "power_cap_w", "git")
    shown = [f"{key} {facts[key]}" for key in keys if facts.get(key) is not None]
    return ", ".join(shown) + f"; {measurement.warmup}; {measurement.spent_s:.1f} s in all"


def comparison_screen(comparison: Comparison) -> str:
    """One line a function against the baseline."""
    width = max(len(name) for name in comparison.names)
    lines = [f"{comparison.quantity}, baseline {comparison.baseline}: {comparison.why}", ""]
    base = comparison.medians_us[comparison.baseline]
    lines.append(f"  {comparison.baseline:<{width}}  {time_text(base):>9}  baseline")
    for row in comparison.rows:
        decision = row.decision
        span = f"{decision.ratio:.4g}x [{decision.low:.4g}, {decision.high:.4g}]"
        lines.append(
            f"  {row.name:<{width}}  {time_text(comparison.medians_us[row.name]):>9}  {decision.verdict:<9} {span}"
        )
        more = f"; needs about {decision.more_blocks} more blocks" if decision.more_blocks else ""
        lines.append(f"  {'':<{width}}             {decision.why}{more}")
    lines.append("")
    lines.append(
        f"  {comparison.blocks} interleaved blocks, {comparison.confidence} over blocks, "
        f"practical band ±{comparison.band:.0%}; {comparison.cycles_note}; {comparison.spent_s:.1f} s"
    )
    lines += [f"  WARN {note}" for note in comparison.warnings]
    return "\n".join(lines)
