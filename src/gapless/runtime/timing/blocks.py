"""Is one function faster than another, given interleaved blocks of times? Pure; may answer undecided."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from gapless.runtime.timing.stats import median_ci, quantile

__all__ = ["Decision", "RatioEstimate", "bootstrap_ratio", "decide", "holm_levels", "order_of_block"]

ALPHA = 0.05
BAND = 0.01
RESAMPLES = 2000


def order_of_block(count: int, rng: random.Random) -> list[int]:
    """A random order followed by its mirror image (ABBA for two): linear drift cancels inside the block."""
    order = list(range(count))
    rng.shuffle(order)
    return order + order[::-1]


@dataclass(frozen=True)
class RatioEstimate:
    """Logarithm of (time of one / time of baseline) over blocks, with the bootstrap distribution of its median."""

    log_ratio: float
    resampled: tuple[float, ...]
    per_block: tuple[float, ...]

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return len(self.per_block)

    def interval(self, alpha: float) -> tuple[float, float]:
        """The interval that misses with probability `alpha`: bootstrap percentiles, or order statistics where wider.

        With ten blocks or so the bootstrap of a median is too sure of itself; the ranks are exact for any noise.
        """
        low, high = median_ci(self.per_block, 1 - alpha)
        return min(low, quantile(self.resampled, alpha / 2)), max(high, quantile(self.resampled, 1 - alpha / 2))

    def p_outside(self, band: float) -> float:
        """Evidence against 'no practical difference': share of resamples not beyond the band on the estimate's side."""
        edge = math.log1p(band)
        sign = 1.0 if self.log_ratio >= 0 else -1.0
        short = sum(sign * value <= edge for value in self.resampled)
        return min(1.0, 2 * (short + 1) / (len(self.resampled) + 1))


def bootstrap_ratio(log_ratios: Sequence[float], rng: random.Random, resamples: int = RESAMPLES) -> RatioEstimate:
    """Resample whole blocks, since times inside one block share its conditions."""
    pool = list(log_ratios)
    drawn = tuple(median(rng.choices(pool, k=len(pool))) for _ in range(resamples))
    return RatioEstimate(median(pool), drawn, tuple(pool))


def holm_levels(p_values: Sequence[float], alpha: float = ALPHA) -> list[float]:
    """The level at which each of several comparisons is judged: alpha/m for the smallest p, alpha/(m-1) next, ...

    Once one comparison in that order is not significant at its level, the ones after it keep that level.
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    levels = [alpha] * len(p_values)
    rejected = True
    level = alpha
    for rank, index in enumerate(order):
        if rejected:
            level = alpha / (len(p_values) - rank)
        levels[index] = level
        rejected = rejected and p_values[index] <= level
    return levels


@dataclass(frozen=True)
class Decision:
    """FASTER | SLOWER | SAME | UNDECIDED for one function against the baseline; ratio below 1 is faster."""

    verdict: str
    ratio: float
    low: float
    high: float
    level: float
    more_blocks: int | None
    why: str


def decide(time: RatioEstimate, cycles: RatioEstimate | None, level: float, band: float = BAND) -> Decision:
    """Judge one comparison at `level`; where cycles are known the same must hold for them."""
    low, high = time.interval(level)
    edge_high, edge_low = math.log1p(band), math.log1p(-band)
    raw = _side(low, high, edge_low, edge_high)
    why = {
        "FASTER": f"the interval lies below -{band:.0%}",
        "SLOWER": f"the interval lies above +{band:.0%}",
        "SAME": f"the interval lies inside ±{band:.0%}",
        "UNDECIDED": f"the interval crosses the edge of ±{band:.0%}",
    }[raw]
    verdict = raw
    if cycles is not None and raw in ("FASTER", "SLOWER"):
        in_cycles = _side(*cycles.interval(level), edge_low, edge_high)
        if in_cycles != raw:
            verdict, why = (
                "UNDECIDED",
                f"{raw.lower()} in time but {in_cycles.lower()} in clock cycles: the clock differed",
            )
    more = _more_blocks(time, low, high, edge_low, edge_high) if verdict == "UNDECIDED" and raw == verdict else None
    return Decision(verdict, math.exp(time.log_ratio), math.exp(low), math.exp(high), level, more, why)


def _side(low: float, high: float, edge_low: float, edge_high: float) -> str:
    if high < edge_low:
        return "FASTER"
    if low > edge_high:
        return "SLOWER"
    return "SAME" if edge_low < low and high < edge_high else "UNDECIDED"


def _more_blocks(time: RatioEstimate, low: float, high: float, edge_low: float, edge_high: float) -> int | None:
    half = (high - low) / 2
    room = min(abs(time.log_ratio - edge_low), abs(time.log_ratio - edge_high))
    if room <= 0 or half <= 0:
        return None
    needed = math.ceil(time.blocks * (half / room) ** 2)
    return max(1, needed - time.blocks)
