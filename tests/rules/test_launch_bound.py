"""Which steps does the host pace, and which of their stretches is a CUDA graph worth?"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gapless.rules import launch_bound
from gapless.rules.outcome import Clean

from .factory import MUL, Script, context
from .gains import found, gains


def chunks(number: int, launches: int, us: float = 1) -> Callable[[Script], None]:
    """`number` stretches of `launches` kernels of `us`, each but the last ended by a value that the host reads."""

    def step(t: Script) -> None:
        for i in range(number):
            for _ in range(launches):
                t.simple("aten::mul", [], MUL, us)
            if i < number - 1:
                with t.op("aten::item"):
                    t.wait_for_copy()

    return step


@pytest.mark.parametrize(("number", "launches"), [(1, 40), (8, 20), (3, 16), (2, 5)])
def test_stretches_that_a_graph_pays_for_are_found(number: int, launches: int) -> None:
    """A token loop reads one value a token: each token's launches are a graph."""
    c = context(chunks(number, launches))
    one = found(launch_bound.check(c))
    assert f"in {number} stretch" in one.evidence[-1]
    low, middle, high = gains(c, one)
    if launches >= 16:
        assert 1 < low < middle <= high
        assert middle > 2


@pytest.mark.parametrize("program", [chunks(30, 4), chunks(12, 8), chunks(1, 40, us=100), chunks(1, 2)])
def test_waits_after_every_few_launches_long_kernels_and_tiny_steps_are_none(program: Callable[[Script], None]) -> None:
    assert isinstance(launch_bound.check(context(program)), Clean)
