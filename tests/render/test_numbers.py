"""Numbers carry units, no more digits than were measured, and shares add up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.render import numbers


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"),
        (0.000001, "1.00 ns"),
        (0.00085, "850 ns"),
        (0.0552, "55.2 µs"),
        (0.0009996, "1.00 µs"),
        (0.587123, "0.587 ms"),
        (1.0, "1.00 ms"),
        (9.996, "10.0 ms"),
        (187.04, "187 ms"),
        (1234.5, "1234 ms"),
        (12345.6, "12.3 s"),
        (-0.5, "-0.500 ms"),
        (None, "unknown"),
        (float("nan"), "unknown"),
        (float("inf"), "unknown"),
    ],
)
def test_durations(ms: float | None, text: str) -> None:
    assert numbers.milliseconds(ms) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(0.5, 0.7, "0.50 to 0.70 ms"), (0.05, 0.5, "50 µs to 0.50 ms"), (12.4, 130.0, "12 to 130 ms")],
)
def test_ranges_share_a_unit_where_they_can(low: float, high: float, text: str) -> None:
    assert numbers.span(low, high) == text


@pytest.mark.parametrize(
    ("value", "text"), [(24.0, "24"), (3.3333, "3.3"), (0.25, "0.25"), (12345.6, "12 346"), (None, "unknown")]
)
def test_counts(value: float | None, text: str) -> None:
    assert numbers.count(value) == text


@pytest.mark.parametrize(("value", "text"), [(12, "12.0 B"), (4096, "4.10 kB"), (1.5e9, "1.50 GB"), (None, "unknown")])
def test_sizes(value: float | None, text: str) -> None:
    assert numbers.size(value) == text


@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=40), st.sampled_from([100, 1000]))
def test_shares_add_up_exactly(weights: list[int], total: int) -> None:
    shares = numbers.apportion(weights, total)
    assert sum(shares) == (total if sum(weights) else 0)
    assert all(abs(s - w * total / (sum(weights) or 1)) < 1 for s, w in zip(shares, weights, strict=True))


def test_equal_remainders_go_to_the_earlier() -> None:
    assert numbers.apportion([1, 1, 1]) == [34, 33, 33]
