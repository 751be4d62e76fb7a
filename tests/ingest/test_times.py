from __future__ import annotations

from decimal import Decimal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from trace_files import kernel, read_text, span, text_of

from gapless.ingest.times import needs_text, ns_to_text, text_to_ns, us_to_ns

relative_ns = st.integers(0, 7_900_000_000_000_000)


@given(st.lists(relative_ns, min_size=1, max_size=50))
def test_relative_times_are_exact(values: list[int]):
    us = np.array([float(f"{ns // 1000}.{ns % 1000:03d}") for ns in values])
    assert not needs_text(us)
    assert us_to_ns(us).tolist() == values


def test_multiplying_would_miss_by_one_where_this_does_not():
    rng = np.random.default_rng(7)
    exact = rng.integers(4_400_000_000_000_000, 7_900_000_000_000_000, 200_000)
    us = np.array([float(f"{ns // 1000}.{ns % 1000:03d}") for ns in exact.tolist()])
    assert (us_to_ns(us) == exact).all()
    assert (np.rint(us * 1000).astype(np.int64) != exact).any()


@given(st.integers(-(10**17), 10**18))
def test_decimal_text_is_exact(ns: int):
    assert text_to_ns(ns_to_text(ns)) == ns
    assert text_to_ns(Decimal(ns_to_text(ns))) == ns


def test_text_that_is_no_time():
    for value in ("nan", "inf", "1e400", "1e30", "soon", "9.1e15"):
        assert text_to_ns(value) is None
    assert text_to_ns("1e-40") == 0


def test_whole_microseconds_never_need_text():
    assert not needs_text(np.array([1_796_077_163_066_876.0, 0.0, np.nan]))
    assert needs_text(np.array([1_712_195_495_519_695.8]))


@given(st.integers(1_712_000_000_000_000_000, 1_713_000_000_000_000_000), st.integers(1, 10**9), st.integers(0, 10**9))
def test_absolute_times_with_decimals_keep_their_nanoseconds(start: int, gap: int, dur: int):
    events = text_of(kernel("a", "T0", 1), kernel("b", "T1", "D1"))  # type: ignore[arg-type]
    for mark, ns in (("T0", start), ("T1", start + gap), ("D1", dur)):
        events = events.replace(f'"{mark}"', ns_to_text(ns))
    raw = read_text(events)
    assert raw.meta.origin_ns == start
    assert raw.activities["start_ns"].to_list() == [0, gap]
    assert raw.activities["dur_ns"].to_list() == [1000, dur]


def test_base_after_the_events_and_before():
    events = [span("cpu_op", "a", 5219783276576.361, 1.5)]
    base = 1_790_857_026_000_000_000
    after = read_text(text_of(*events, baseTimeNanoseconds=base))
    assert after.meta.origin_ns == base + 5_219_783_276_576_361
    assert not after.meta.integer_us


def test_integer_microseconds_are_noticed():
    raw = read_text(text_of(span("cpu_op", "a", 1796077163066876, 3)))
    assert raw.meta.integer_us
    assert raw.meta.origin_ns == 1_796_077_163_066_876_000
