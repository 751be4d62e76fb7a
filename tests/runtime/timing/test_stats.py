"""Statistics of one series: properties that hold for any numbers, and known answers."""

from __future__ import annotations

import math
import random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.runtime.timing.stats import drift, lag1, median_ci, modes, quantile, summarize, widening

times = st.lists(st.floats(0.01, 1e7, allow_nan=False), min_size=1, max_size=200)


@given(times)
def test_interval_encloses_the_median_and_stays_in_the_data(values):
    low, high = median_ci(values)
    assert min(values) <= low <= median(values) <= high <= max(values)


@given(times, st.randoms(use_true_random=False))
def test_interval_does_not_depend_on_order(values, rng):
    shuffled = values[:]
    rng.shuffle(shuffled)
    assert median_ci(shuffled) == median_ci(values)


@given(times, st.sampled_from([0.125, 2.0, 1024.0]))
def test_summary_scales_with_the_unit(values, factor):
    one, other = summarize(values), summarize([v * factor for v in values])
    assert other.median_us == one.median_us * factor
    assert other.p95_us == pytest.approx(one.p95_us * factor)
    assert other.rho1 == pytest.approx(one.rho1, abs=1e-6)
    assert other.drift_us == pytest.approx(one.drift_us * factor, rel=1e-6, abs=1e-9 * factor)


@given(times, st.floats(0, 1), st.floats(0, 1))
def test_quantiles_are_ordered(values, a, b):
    low, high = sorted((a, b))
    assert quantile(values, low) <= quantile(values, high) * (1 + 1e-12)


@given(times)
def test_autocorrelation_is_bounded(values):
    assert -1.0001 <= lag1(values) <= 1.0001
    assert widening(lag1(values)) >= 1


@given(st.floats(0.1, 1e6), st.integers(1, 300))
def test_a_constant_series_has_no_trend_modes_or_memory(value, count):
    summary = summarize([value] * count)
    assert (summary.median_us, summary.ci_low_us, summary.ci_high_us) == (value, value, value)
    assert summary.modes is None and not summary.drifts and summary.rho1 == 0


@pytest.mark.parametrize("count", [20, 30, 50, 100])
def test_interval_covers_the_true_median_as_claimed(count):
    rng = random.Random(5)
    hits = 0
    for _ in range(600):
        values = [rng.gauss(100, 3) * (2 if rng.random() < 0.03 else 1) for _ in range(count)]
        low, high = median_ci(values)
        hits += low <= 100 <= high
    assert hits / 600 > 0.92


def test_two_modes_are_found_and_measured():
    rng = random.Random(1)
    values = [rng.gauss(100, 1) for _ in range(60)] + [rng.gauss(150, 1) for _ in range(40)]
    rng.shuffle(values)
    found = modes(values)
    assert found is not None
    assert found.fast_us == pytest.approx(100, abs=1) and found.slow_us == pytest.approx(150, abs=1)
    assert found.slow_share == pytest.approx(0.4)


@pytest.mark.parametrize("spread", [0.002, 0.02, 0.1])
def test_one_noisy_mode_is_not_two(spread):
    rng = random.Random(2)
    alarms = sum(modes([rng.lognormvariate(0, spread) for _ in range(60)]) is not None for _ in range(200))
    assert alarms <= 4


def test_a_few_outliers_are_not_a_mode():
    assert modes([100 + i * 0.01 for i in range(97)] + [300, 301, 302]) is None


def test_drift_measures_the_whole_change():
    change, score = drift([100 + 0.1 * i for i in range(51)])
    assert change == pytest.approx(5.0)
    assert score > 3
    rng = random.Random(4)
    assert summarize([100 + 0.1 * i + rng.gauss(0, 0.1) for i in range(400)]).drifts


def test_noise_without_trend_does_not_drift():
    rng = random.Random(3)
    assert not any(summarize([rng.gauss(100, 3) for _ in range(100)]).drifts for _ in range(40))


def test_memory_widens_the_interval():
    rng = random.Random(6)
    walk, level = [], 0.0
    for _ in range(200):
        level = 0.8 * level + rng.gauss(0, 1)
        walk.append(100 + level)
    summary = summarize(walk)
    low, high = median_ci(walk)
    assert summary.rho1 > 0.5
    assert summary.ci_high_us - summary.ci_low_us == pytest.approx((high - low) * widening(summary.rho1))
    assert math.isclose(widening(0.5), math.sqrt(3))
