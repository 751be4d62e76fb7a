"""What can be said about one series of times: centre, its confidence interval, trend, memory and number of modes?

All functions are pure, take plain floats and need the standard library alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist, fmean, median

__all__ = [
    "Modes",
    "Summary",
    "coefficient_of_variation",
    "drift",
    "lag1",
    "median_ci",
    "modes",
    "quantile",
    "summarize",
    "widening",
]

CONFIDENCE = 0.95
MIN_MODE_SHARE = 0.10
MIN_MODE_DISTANCE = 0.02
MAX_THEIL_POINTS = 200


def quantile(values: Sequence[float], share: float) -> float:
    """The `share` quantile by linear interpolation between order statistics."""
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    # a + f*(b-a) is exact when a == b, so a constant series keeps its value.
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])


def median_ci(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Distribution-free interval for the median: ranks floor(n/2 - z*sqrt(n)/2) and ceil(n/2 + z*sqrt(n)/2)."""
    ordered = sorted(values)
    count = len(ordered)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    reach = z * math.sqrt(count) / 2
    low = max(1, math.floor(count / 2 - reach))
    high = min(count, math.ceil(count / 2 + reach))
    # For an odd count the lower rank sits half a place nearer to the median than the upper one; keep it enclosing.
    return min(ordered[low - 1], median(ordered)), max(ordered[high - 1], median(ordered))


def lag1(values: Sequence[float]) -> float:
    """Autocorrelation of neighbouring samples, in -1..1; 0 for a constant or very short series."""
    if len(values) < 3:
        return 0.0
    mean = fmean(values)
    spread = math.fsum((v - mean) ** 2 for v in values)
    if spread <= 0.0 or spread < 1e-24 * mean * mean * len(values):
        return 0.0
    return math.fsum((a - mean) * (b - mean) for a, b in pairwise(values)) / spread


def widening(rho: float) -> float:
    """By how much positive autocorrelation widens an interval: sqrt((1+rho)/(1-rho)), at least 1."""
    rho = min(max(rho, 0.0), 0.99)
    return math.sqrt((1 + rho) / (1 - rho))


def drift(values: Sequence[float]) -> tuple[float, float]:
    """Change over the whole series, and how surely it is one.

    First the Theil-Sen slope (median slope of all pairs) times the number of steps; second the Mann-Kendall z score
    of a monotone trend, about normal with deviation 1 where there is none.
    """
    count = len(values)
    if count < 3:
        return 0.0, 0.0
    stride = max(1, math.ceil(count / MAX_THEIL_POINTS))
    points = [(i, values[i]) for i in range(0, count, stride)]
    slopes = [(y2 - y1) / (x2 - x1) for k, (x1, y1) in enumerate(points) for x2, y2 in points[k + 1 :]]
    kept = len(points)
    score = sum((s > 0) - (s < 0) for s in slopes) / math.sqrt(kept * (kept - 1) * (2 * kept + 5) / 18)
    return median(slopes) * (count - 1), score


@dataclass(frozen=True)
class Modes:
    """Two separate clusters of times: their medians and the share of samples in the slower one."""

    fast_us: float
    slow_us: float
    slow_share: float


def modes(values: Sequence[float]) -> Modes | None:
    """Two modes, or None.

    Two, if the largest gap between sorted log-times exceeds 5 median gaps, 2 % of the time and the quartile spread
    of either side, with at least 10 % of the samples on both sides. The last two conditions keep noise of one mode out:
    the largest of n random gaps exceeds 5 median ones quite often.
    """
    ordered = sorted(v for v in values if v > 0)
    count = len(ordered)
    if count < 20:
        return None
    logs = [math.log(v) for v in ordered]
    gaps = [b - a for a, b in pairwise(logs)]
    edge = max(1, math.ceil(MIN_MODE_SHARE * count))
    inner = range(edge - 1, count - edge)
    if not inner:
        return None
    cut = max(inner, key=lambda i: gaps[i])
    gap = gaps[cut]
    left, right = logs[: cut + 1], logs[cut + 1 :]
    spread = max(quantile(side, 0.75) - quantile(side, 0.25) for side in (left, right))
    if gap <= 5 * median(gaps) or gap < math.log1p(MIN_MODE_DISTANCE) or gap <= spread:
        return None
    return Modes(median(ordered[: cut + 1]), median(ordered[cut + 1 :]), len(right) / count)


def coefficient_of_variation(values: Sequence[float]) -> float:
    """Robust spread over centre: 0.7413 * interquartile range / median; 0 for a zero median."""
    centre = median(values)
    return 0.7413 * (quantile(values, 0.75) - quantile(values, 0.25)) / centre if centre else 0.0


@dataclass(frozen=True)
class Summary:
    """One series of times in microseconds, described; nothing was removed from it."""

    count: int
    min_us: float
    p5_us: float
    median_us: float
    p95_us: float
    max_us: float
    share_over_2x: float
    ci_low_us: float
    ci_high_us: float
    rho1: float
    drift_us: float
    trend_z: float
    modes: Modes | None

    @property
    def half_width(self) -> float:
        """Half the confidence interval as a share of the median."""
        return (self.ci_high_us - self.ci_low_us) / 2 / self.median_us if self.median_us else 0.0

    @property
    def drifts(self) -> bool:
        """Whether a trend is sure (z above 3) and larger than both the interval and half a percent."""
        # A trend is itself autocorrelation: the interval that it widened must not hide it.
        width = (self.ci_high_us - self.ci_low_us) / widening(self.rho1)
        return abs(self.trend_z) > 3 and abs(self.drift_us) > max(width, 0.005 * self.median_us)


def summarize(values: Sequence[float]) -> Summary:
    """Describe one series; the interval is widened for positive autocorrelation."""
    centre = median(values)
    low, high = median_ci(values)
    rho = lag1(values)
    factor = widening(rho)
    change, trend = drift(values)
    return Summary(
        count=len(values),
        min_us=min(values),
        p5_us=quantile(values, 0.05),
        median_us=centre,
        p95_us=quantile(values, 0.95),
        max_us=max(values),
        share_over_2x=sum(v > 2 * centre for v in values) / len(values),
        ci_low_us=centre - (centre - low) * factor,
        ci_high_us=centre + (high - centre) * factor,
        rho1=rho,
        drift_us=change,
        trend_z=trend,
        modes=modes(values),
    )
