"""How does a time in a trace become exact int64 nanoseconds?

Kineto writes microseconds with three decimals. Relative times reach 7.9e12, where neighbouring doubles are 0.98 ns
apart: the nanosecond is just recoverable, but only from the whole and the fractional part taken apart, since
`round(us * 1000)` rounds twice and misses by one in 0.3 % of values. From 2**43 us on (absolute times with decimals,
written in spring 2024) doubles are too coarse, and the decimal text itself has to be read: see `needs_text`.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

COARSE_US = float(2**43)
"""From here on neighbouring doubles are more than a nanosecond apart."""

WHOLE_US = float(2**53)
"""From here on doubles cannot even hold every whole number."""

LIMIT_US = 9.0e15
"""Times beyond this (the year 2255) do not fit int64 nanoseconds."""


def needs_text(us: F64) -> bool:
    """Whether some value was too long for its double: decimals beyond `COARSE_US`, or digits beyond `WHOLE_US`."""
    with np.errstate(invalid="ignore"):
        coarse = us[np.abs(us) >= COARSE_US]
        return bool(coarse.size) and bool(((coarse != np.floor(coarse)) | (np.abs(coarse) >= WHOLE_US)).any())


def us_to_ns(us: F64) -> I64:
    """Nanoseconds of finite microseconds below `LIMIT_US`; exact below `COARSE_US` and for whole numbers."""
    whole = np.floor(us)
    return whole.astype(np.int64) * 1000 + np.rint((us - whole) * 1000.0).astype(np.int64)


def text_to_ns(value: Decimal | str | float | int) -> int | None:
    """Nanoseconds of one decimal number of microseconds, half rounded to even; None if it is no usable time."""
    try:
        exact = Decimal(value)
    except (InvalidOperation, ValueError, TypeError):
        return None
    if not exact.is_finite() or (exact and exact.adjusted() > 15):
        return None
    if not exact or exact.adjusted() < -9:
        return 0
    if abs(exact) > LIMIT_US:
        return None
    return round(exact * 1000)


def ns_to_text(ns: int) -> str:
    """Microseconds as Kineto writes them, trailing zeros dropped."""
    sign = "-" if ns < 0 else ""
    whole, rest = divmod(abs(ns), 1000)
    return f"{sign}{whole}.{rest:03d}".rstrip("0").rstrip(".") if rest else f"{sign}{whole}"
