"""How are the numbers of a summary written: no more digits than were measured, with their units?"""

from __future__ import annotations

from collections.abc import Sequence


def ms(value: float) -> str:
    """A duration in milliseconds, three digits, in the unit that keeps it readable."""
    size = abs(value)
    if size >= 10_000:
        return f"{value / 1e3:.0f} s" if size >= 100_000 else f"{value / 1e3:.1f} s"
    if size < 0.1:
        return f"{value * 1e3:.3g} us"
    return f"{value:.0f} ms" if size >= 100 else f"{value:.3g} ms"


def count(value: float) -> str:
    """A count per step: whole where it is (nearly) whole."""
    return f"{value:.0f}" if abs(value - round(value)) < 0.05 or abs(value) >= 100 else f"{value:.2g}"


def ratio(value: float) -> str:
    """A speed-up."""
    return f"{value:.2f}x" if value < 10 else f"{value:.0f}x"


def size(value: float) -> str:
    """Bytes in decimal units."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(value) >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.0f} B"


def plural(n: float, one: str, many: str | None = None) -> str:
    """`1 kernel`, `2 kernels`."""
    return f"{count(n)} {one if count(n) == '1' else many or one + 's'}"


def listed(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
