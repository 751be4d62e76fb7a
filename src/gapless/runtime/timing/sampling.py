"""When are there enough samples, and are the machine's caches and clocks warm? Pure given a sampler and a clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from gapless.runtime.timing.stats import lag1, median_ci, widening

__all__ = ["Series", "StopRule", "WarmUp", "collect", "warm_until_steady"]

Sampler = Callable[[], "tuple[float, ...] | None"]
NowNs = Callable[[], int]

CHECK_EVERY = 10
PLATEAU_SHRINK = 0.90
"""Twice the samples should shrink the interval to 0.71 of itself; above this it does not shrink."""


@dataclass(frozen=True)
class StopRule:
    """Stop at `min_samples` once the interval's half width is `target` of the median, or at the budget."""

    min_samples: int = 30
    target: float = 0.01
    budget_s: float = 2.0
    max_samples: int = 2000


@dataclass(frozen=True)
class Series:
    """Samples kept in the order taken; column 0 decided when to stop.

    `stop`: precise | noisy (the interval no longer shrinks) | budget | samples | refused (every sample was invalid).
    """

    columns: tuple[tuple[float, ...], ...]
    stop: str
    invalid: int
    spent_s: float

    @property
    def values(self) -> tuple[float, ...]:
        """The deciding column."""
        return self.columns[0] if self.columns else ()


def half_width(values: list[float]) -> float:
    """Half the widened confidence interval as a share of the median."""
    low, high = median_ci(values)
    centre = median(values)
    return (high - low) / 2 / centre * widening(lag1(values)) if centre else 0.0


def verdict(values: list[float], rule: StopRule) -> str | None:
    """Why to stop now, or None to go on."""
    count = len(values)
    if count < rule.min_samples:
        return None
    width = half_width(values)
    if width <= rule.target:
        return "precise"
    if count >= 4 * rule.min_samples and width > PLATEAU_SHRINK * half_width(values[: count // 2]):
        return "noisy"
    return "samples" if count >= rule.max_samples else None


def collect(sample: Sampler, rule: StopRule, now_ns: NowNs) -> Series:
    """Take samples until the rule is met; a sample of None was invalid, is counted and left out."""
    rows: list[tuple[float, ...]] = []
    invalid = 0
    start = now_ns()
    stop: str | None = None
    while stop is None:
        row = sample()
        if row is None:
            invalid += 1
            if invalid >= 5 and invalid > 4 * len(rows):
                stop = "refused"
                break
        else:
            rows.append(row)
            if len(rows) % CHECK_EVERY == 0 or len(rows) == rule.min_samples:
                stop = verdict([r[0] for r in rows], rule)
        if stop is None and (now_ns() - start) / 1e9 >= rule.budget_s and (rows or invalid >= 5):
            stop = "budget" if rows else "refused"
    columns = tuple(zip(*rows, strict=True)) if rows else ()
    return Series(columns, stop, invalid, (now_ns() - start) / 1e9)


@dataclass(frozen=True)
class WarmUp:
    """How the subject was warmed: calls made, time spent, whether the last two windows agreed within 1 %."""

    calls: int
    spent_s: float
    steady: bool
    per_call_us: float


def warm_until_steady(
    batch: Callable[[int], float],
    now_ns: NowNs,
    clock_mhz: Callable[[], float | None],
    *,
    min_s: float = 0.2,
    cap_s: float = 2.0,
    tolerance: float = 0.01,
    clock_tolerance: float = 0.02,
) -> WarmUp:
    """Call until two successive windows agree in time (1 %) and clock (2 %), at least `min_s`, at most `cap_s`.

    `batch(n)` makes n calls, waits for the device and returns microseconds per call.
    """
    start = now_ns()
    calls = 3
    per_call = median([batch(1) for _ in range(3)])
    previous: tuple[float, float | None] | None = None
    while True:
        size = max(1, min(1000, int(2000 / max(per_call, 0.1))))
        window = [batch(size) for _ in range(5)]
        calls += 5 * size
        per_call, clock = median(window), clock_mhz()
        spent = (now_ns() - start) / 1e9
        steady = (
            previous is not None
            and abs(per_call - previous[0]) <= tolerance * per_call
            and (clock is None or previous[1] is None or abs(clock - previous[1]) <= clock_tolerance * clock)
        )
        if (steady and spent >= min_s) or spent >= cap_s:
            return WarmUp(calls, spent, steady, per_call)
        previous = per_call, clock
