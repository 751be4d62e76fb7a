"""Comparing by blocks: what is claimed must hold, and nothing is claimed without ground."""

from __future__ import annotations

import math
import random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.runtime.timing.blocks import bootstrap_ratio, decide, holm_levels, order_of_block


@given(st.integers(2, 8), st.integers(0, 1000))
def test_a_block_is_its_own_mirror_image(count, seed):
    order = order_of_block(count, random.Random(seed))
    assert order == order[::-1]
    assert sorted(order) == sorted([*range(count), *range(count)])


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=60), st.floats(0.001, 0.2))
def test_interval_encloses_the_estimate_and_widens_with_certainty(ratios, alpha):
    estimate = bootstrap_ratio(ratios, random.Random(1), 200)
    low, high = estimate.interval(alpha)
    assert low <= median(ratios) <= high
    wider_low, wider_high = estimate.interval(alpha / 10)
    assert wider_low <= low and high <= wider_high


@given(st.lists(st.floats(-0.5, 0.5), min_size=10, max_size=40), st.floats(0.001, 0.2))
def test_swapping_the_functions_swaps_the_verdict(ratios, level):
    one = decide(bootstrap_ratio(ratios, random.Random(1), 300), None, level, band=0.01)
    other = decide(bootstrap_ratio([-r for r in ratios], random.Random(1), 300), None, level, band=0.01)
    opposite = {"FASTER": {"SLOWER"}, "SLOWER": {"FASTER"}}
    if one.low > 1.011 or one.high < 0.989:
        assert other.verdict in opposite[one.verdict]
    assert other.ratio == pytest.approx(1 / one.ratio)


def rate(true: float, blocks: int, tries: int = 150) -> dict[str, float]:
    rng = random.Random(11)
    seen: dict[str, float] = {}
    for _ in range(tries):
        estimate = bootstrap_ratio([rng.gauss(true, 0.02) for _ in range(blocks)], rng, 400)
        verdict = decide(estimate, None, 0.05).verdict
        seen[verdict] = seen.get(verdict, 0) + 1 / tries
    return seen


def test_equal_functions_are_never_called_faster():
    seen = rate(0.0, 10)
    assert seen.get("FASTER", 0) + seen.get("SLOWER", 0) <= 0.02


def test_a_difference_at_the_edge_of_the_band_is_rarely_claimed_either_way():
    seen = rate(math.log(1.01), 40)
    assert seen.get("SLOWER", 0) + seen.get("SAME", 0) <= 0.08


def test_clear_differences_are_found():
    assert rate(math.log(1.05), 20)["SLOWER"] > 0.95
    assert rate(math.log(0.95), 20)["FASTER"] > 0.95
    assert rate(0.0, 200, 30)["SAME"] > 0.9


def test_ten_wild_blocks_decide_nothing():
    # Times that jump between two levels a thousandfold apart, as on an overloaded host.
    rng = random.Random(0)
    claims = 0
    for _ in range(200):
        ratios = [rng.choice([-7.0, 0.0, 0.0, 7.0]) + rng.gauss(0, 0.05) for _ in range(10)]
        claims += decide(bootstrap_ratio(ratios, rng, 300), None, 0.01).verdict != "UNDECIDED"
    assert claims == 0


def test_undecided_says_about_how_many_blocks_are_missing():
    rng = random.Random(4)
    ratios = [rng.gauss(0.03, 0.05) for _ in range(10)]
    decision = decide(bootstrap_ratio(ratios, rng), None, 0.05)
    assert decision.verdict == "UNDECIDED"
    assert decision.more_blocks is not None and decision.more_blocks >= 1


def test_a_claim_that_fails_in_cycles_is_withdrawn():
    rng = random.Random(4)
    time = bootstrap_ratio([rng.gauss(-0.05, 0.002) for _ in range(20)], rng)
    cycles = bootstrap_ratio([rng.gauss(0.0, 0.002) for _ in range(20)], rng)
    assert decide(time, None, 0.05).verdict == "FASTER"
    decision = decide(time, cycles, 0.05)
    assert decision.verdict == "UNDECIDED" and "clock" in decision.why and decision.more_blocks is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=10))
def test_holm_levels_lie_between_bonferroni_and_none(p_values):
    levels = holm_levels(p_values, 0.05)
    count = len(p_values)
    assert all(0.05 / count - 1e-12 <= level <= 0.05 + 1e-12 for level in levels)
    assert levels[p_values.index(min(p_values))] == pytest.approx(0.05 / count)


def test_holm_known_answer():
    assert holm_levels([0.001, 0.04, 0.02], 0.05) == pytest.approx([0.05 / 3, 0.05, 0.025])
    assert holm_levels([0.03, 0.04, 0.02], 0.05) == pytest.approx([0.05 / 3, 0.05 / 3, 0.05 / 3])
