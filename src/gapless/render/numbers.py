"""How is a number written for people? With its unit, and no more digits than were measured.

Times are measured to the nanosecond at best and repeat to about a percent, so three significant digits are the most
that is ever shown; predictions get two or three. Shares are apportioned so that what is printed adds up to the total.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

UNKNOWN = "unknown"


def significant(value: float, digits: int = 3) -> str:
    """`value` with at most `digits` significant digits and without an exponent."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else UNKNOWN
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}"
    if float(text) != 0 and decimals and math.floor(math.log10(abs(float(text)))) > math.floor(math.log10(abs(value))):
        text = f"{value:.{decimals - 1}f}"
    return text


def milliseconds(value: float | None, digits: int = 3) -> str:
    """A duration given in milliseconds, in the unit that keeps it readable."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    size = abs(value)
    if size == 0:
        return "0 ms"
    if size < 0.0009995:
        return f"{significant(value * 1e6, digits)} ns"
    if size < 0.09995:
        return f"{significant(value * 1e3, digits)} µs"
    if size < 9999.5:
        return f"{_whole(value, digits)} ms"
    return f"{_whole(value / 1e3, digits)} s"


def span(low: float, high: float) -> str:
    """A range of durations given in milliseconds, two digits, in one unit where both fit it."""
    left, right = milliseconds(low, 2), milliseconds(high, 2)
    same = left.split(" ")[-1] == right.split(" ")[-1]
    return f"{left.split(' ')[0]} to {right}" if same else f"{left} to {right}"


def nanoseconds(value: int | None, digits: int = 3) -> str:
    """A duration given in nanoseconds, in the unit that keeps it readable."""
    return milliseconds(None if value is None else value / 1e6, digits)


def size(value: float | None) -> str:
    """Bytes in decimal units, as copy rates are given."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(value) >= scale:
            return f"{significant(value / scale)} {unit}"
    return f"{significant(value)} B"


def count(value: float | None) -> str:
    """A count per step: whole where it is whole, else two or three digits."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if abs(value - round(value)) < 1e-9 or abs(value) >= 100:
        return f"{round(value):,}".replace(",", " ")
    return significant(value, 2)


def speedup(value: float | None) -> str:
    """A ratio before/after."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:.2f}x" if value < 9.995 else f"{_whole(value, 3)}x"


def apportion(weights: Sequence[int], total: int = 100) -> list[int]:
    """Whole shares of `total` that add up to it exactly, by largest remainder; ties go to the earlier one.

    Negative weights count as zero. All zero when there is nothing to share.
    """
    clean = [max(0, int(w)) for w in weights]
    whole = sum(clean)
    if whole == 0:
        return [0] * len(clean)
    shares = [w * total // whole for w in clean]
    order = sorted(range(len(clean)), key=lambda i: (-(clean[i] * total % whole), i))
    for i in order[: total - sum(shares)]:
        shares[i] += 1
    return shares


def plural(n: float, one: str, many: str | None = None) -> str:
    """`1 step`, `2 steps`."""
    return f"{count(n)} {one if n == 1 else many or one + 's'}"


def _whole(value: float, digits: int) -> str:
    return f"{value:.0f}" if abs(value) >= 10 ** (digits - 1) else significant(value, digits)
