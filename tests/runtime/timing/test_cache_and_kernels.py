"""Arithmetic of cache rotation, busy time and hardware bounds."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gapless.runtime.timing.backend import KernelTime, UnavailableError
from gapless.runtime.timing.cache import rotation_copies
from gapless.runtime.timing.explain import busy_ns
from gapless.runtime.timing.nvml import Nvml, reason_names
from gapless.runtime.timing.peaks import peak_bytes_per_s, peak_flops


@given(st.integers(1 << 20, 1 << 32), st.integers(1 << 20, 1 << 28))
def test_copies_fill_the_cache_five_times(footprint, l2):
    assume(5 * l2 <= 512 * footprint)
    copies = rotation_copies(footprint, l2, 1 << 50)
    assert copies * footprint >= 5 * l2
    assert copies == 1 or (copies - 1) * footprint < 5 * l2


@pytest.mark.parametrize(
    ("footprint", "free", "why"),
    [(0, 1 << 40, "no tensor"), (100, 1 << 40, "copies of"), (1 << 24, 1 << 28, "quarter")],
)
def test_rotation_is_refused_with_a_reason(footprint, free, why):
    with pytest.raises(UnavailableError, match=why):
        rotation_copies(footprint, 50 << 20, free)


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 100)), max_size=30))
def test_busy_time_is_the_size_of_the_union(pairs):
    records = [KernelTime("k", start, duration) for start, duration in pairs]
    covered = {t for start, duration in pairs for t in range(start, start + duration)}
    assert busy_ns(records) == len(covered)


def test_bounds_are_known_only_for_known_hardware():
    h200 = SimpleNamespace(
        major=9, minor=0, multi_processor_count=132, memory_clock_rate=3201000, memory_bus_width=6144
    )
    flops = peak_flops(h200, 1980)
    assert flops is not None and 1.9e15 < flops < 2.2e15
    rate = peak_bytes_per_s(h200)
    assert rate is not None and 4.7e12 < rate < 5.1e12
    assert peak_flops(SimpleNamespace(major=99, minor=0, multi_processor_count=1), 1980) is None
    assert peak_bytes_per_s(SimpleNamespace()) is None


def test_throttle_reasons_in_words():
    assert reason_names(0x44) == ["power cap", "hardware thermal"]
    assert reason_names(0) == []


def test_no_driver_is_none_not_an_error():
    assert Nvml.open("no-such-gpu") is None
