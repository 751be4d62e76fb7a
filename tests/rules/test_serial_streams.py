"""Is room beside small kernels seen, and never promised as a gain?"""

from __future__ import annotations

import pytest

from gapless.rules.outcome import Clean
from gapless.rules.serial_streams import MOST_PROMISED, check

from .factory import SGEMM, Script, context, f32
from .gains import found, gains

A = f32(1024, 1024)


def chain(t: Script, *, grid: int = 128, shared: int = 0, streams: int = 1, us: float = 55) -> None:
    for i in range(24):
        t.simple("aten::mm", [A, A], SGEMM, us, grid=grid, shared=shared, stream=7 + i % streams)


def test_small_kernels_on_one_stream() -> None:
    c = context(chain)
    one = found(check(c))
    low, middle, high = gains(c, one)
    assert low == pytest.approx(1.0)
    assert 1.02 < middle <= MOST_PROMISED + 0.01
    assert high <= 2
    assert "independent" in one.why_it_may_be_wrong


def test_blocks_that_take_a_whole_sm_leave_no_room() -> None:
    assert isinstance(check(context(lambda t: chain(t, shared=200_000))), Clean)


def test_full_grids_leave_no_room() -> None:
    assert isinstance(check(context(lambda t: chain(t, grid=4096))), Clean)


def test_two_streams_are_in_use() -> None:
    assert isinstance(check(context(lambda t: chain(t, streams=2))), Clean)


def test_a_host_that_sets_the_pace() -> None:
    assert isinstance(check(context(lambda t: chain(t, us=2))), Clean)
