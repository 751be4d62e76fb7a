"""When sampling stops, with a clock that only moves when told."""

from __future__ import annotations

import math
import random

import pytest

from gapless.runtime.timing.sampling import StopRule, collect, warm_until_steady


class Clock:
    def __init__(self) -> None:
        self.ns = 0

    def now(self) -> int:
        return self.ns

    def sampler(self, values, cost_ns: int = 1_000_000):
        source = iter(values)

        def sample():
            self.ns += cost_ns
            value = next(source)
            return None if value is None else (value,)

        return sample


def endless(rng, spread):
    while True:
        yield rng.gauss(100, spread)


def test_a_quiet_series_stops_at_the_minimum():
    clock = Clock()
    series = collect(clock.sampler(endless(random.Random(1), 0.1)), StopRule(), clock.now)
    assert series.stop == "precise" and len(series.values) == 30 and series.invalid == 0


def test_a_noisy_series_stops_at_the_budget_and_keeps_everything():
    clock = Clock()
    series = collect(clock.sampler(endless(random.Random(1), 60)), StopRule(budget_s=0.05), clock.now)
    assert series.stop == "budget"
    assert len(series.values) == 50
    assert series.spent_s == pytest.approx(0.05)


def test_noise_that_more_samples_do_not_shrink_is_called_inherent():
    clock = Clock()
    rng = random.Random(3)
    # The level wanders as fast as samples are added: the interval never shrinks like 1/sqrt(n).
    values, level = [], 100.0
    for _ in range(3000):
        level += rng.gauss(0, 3)
        values.append(abs(level) + 10)
    series = collect(clock.sampler(values), StopRule(budget_s=100), clock.now)
    assert series.stop == "noisy"


def test_invalid_samples_are_counted_and_left_out():
    clock = Clock()
    values = [v for pair in zip([100.0] * 200, [None] * 200, strict=True) for v in pair]
    series = collect(clock.sampler(values), StopRule(), clock.now)
    assert series.invalid == 29 and len(series.values) == 30 and set(series.values) == {100.0}


def test_only_invalid_samples_end_soon():
    clock = Clock()
    series = collect(clock.sampler([None] * 100), StopRule(), clock.now)
    assert series.stop == "refused" and series.values == () and series.invalid == 5


def test_the_cap_on_samples_holds():
    clock = Clock()
    rng = random.Random(9)
    series = collect(clock.sampler(endless(rng, 40), 10), StopRule(max_samples=90, target=1e-6), clock.now)
    assert series.stop in ("samples", "noisy") and len(series.values) <= 120


def test_warming_up_ends_when_two_windows_agree():
    clock = Clock()
    made = []

    def batch(calls: int) -> float:
        made.append(calls)
        per_call = 100.0 + 200.0 * math.exp(-sum(made) / 1000)
        clock.ns += int(calls * per_call * 1000)
        return per_call

    warm = warm_until_steady(batch, clock.now, lambda: None)
    assert warm.steady and warm.per_call_us < 115
    assert 0.2 <= warm.spent_s < 2.0
    assert warm.calls == sum(made)


def test_warming_up_gives_up_at_the_cap():
    clock = Clock()
    rng = random.Random(2)

    def batch(calls: int) -> float:
        per_call = rng.uniform(100, 300)
        clock.ns += int(calls * per_call * 1000)
        return per_call

    warm = warm_until_steady(batch, clock.now, lambda: None, tolerance=1e-9)
    assert not warm.steady and warm.spent_s >= 2.0


def test_a_moving_clock_is_not_steady():
    clock = Clock()
    mhz = iter(range(500, 100_000, 100))

    def batch(calls: int) -> float:
        clock.ns += calls * 100_000
        return 100.0

    warm = warm_until_steady(batch, clock.now, lambda: next(mhz), min_s=0.0, cap_s=0.5)
    assert warm.calls > 100, "the clock still rises by more than 2 % between the first windows"
