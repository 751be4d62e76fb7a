"""Which earlier work does a `StreamWaitEvent` tie an activity to? Tables of launches, streams and recorded times."""

from __future__ import annotations

import numpy as np
import pytest

from gapless.replay.event_waits import TOLERANCE_NS, event_waits

US = 1_000
Row = tuple[int, int, int, int]
"""One activity in order of launch: launched at, stream, start, end; in us."""

PRODUCER, CONSUMER = (0, 0, 5, 100), (20, 1, 102, 150)


def found(rows: list[Row], *waits: float) -> list[int]:
    """Whom each activity waited for, given the times of the wait calls in us."""
    issued, stream, start, end = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    at = np.array([int(w * US) for w in waits], dtype=np.int64)
    return event_waits(at, issued * US, stream, start * US, end * US).tolist()


@pytest.mark.parametrize(
    ("case", "rows", "waits", "expected"),
    [
        ("no wait call", [PRODUCER, CONSUMER], [], [-1, -1]),
        ("a wait before the launch", [PRODUCER, CONSUMER], [10], [-1, 0]),
        ("a wait after the launch", [PRODUCER, CONSUMER], [30], [-1, -1]),
        ("a wait as the launch begins came too late", [PRODUCER, CONSUMER], [20], [-1, -1]),
        ("one stream", [PRODUCER, (20, 0, 102, 150)], [10], [-1, -1]),
        ("what another stream gets later is none that this one waited for", [CONSUMER, (40, 0, 5, 10)], [10], [-1, -1]),
        (
            "the first of a stream inherits an earlier wait, the second does not",
            [PRODUCER, CONSUMER, (30, 1, 151, 160)],
            [10],
            [-1, 0, -1],
        ),
        (
            "a wait between two launches of a stream ties the second",
            [PRODUCER, (10, 1, 12, 20), (30, 1, 102, 150)],
            [25],
            [-1, -1, 0],
        ),
        (
            "of several others the one that ended last",
            [(0, 0, 5, 100), (1, 2, 5, 60), (2, 3, 5, 101), (20, 1, 102, 150)],
            [10],
            [-1, -1, -1, 2],
        ),
        (
            "but only the last of each stream can be waited for",
            [(0, 0, 5, 100), (1, 0, 101, 120), (20, 1, 125, 150)],
            [10],
            [-1, -1, 1],
        ),
        (
            "work that ended after the start was not waited for",
            [(0, 0, 5, 100), (1, 2, 5, 300), (20, 1, 102, 150)],
            [10],
            [-1, -1, 0],
        ),
        ("nothing ended in time", [(0, 0, 5, 300), (20, 1, 102, 150)], [10], [-1, -1]),
        ("two waits are as good as one", [PRODUCER, CONSUMER], [8, 12], [-1, 0]),
        ("waits in any order", [PRODUCER, CONSUMER], [30, 40, 10], [-1, 0]),
        (
            "never the stream's own work, even where that ended last",
            [(0, 0, 5, 50), (10, 1, 12, 100), (30, 1, 102, 150)],
            [25],
            [-1, -1, 0],
        ),
        (
            "there and back",
            [(0, 0, 5, 100), (20, 1, 102, 150), (40, 0, 152, 160)],
            [10, 30],
            [-1, 0, 1],
        ),
        (
            "two streams that wait for each other in turn: never in a circle",
            [(0, 0, 5, 10), (2, 1, 12, 20), (4, 0, 22, 30), (6, 1, 32, 40)],
            [1, 3, 5],
            [-1, 0, 1, 2],
        ),
    ],
)  # fmt: skip
def test_whom_an_activity_waited_for(case: str, rows: list[Row], waits: list[float], expected: list[int]) -> None:
    assert found(rows, *waits) == expected, case


@pytest.mark.parametrize(("late", "tied"), [(0, True), (TOLERANCE_NS, True), (TOLERANCE_NS + 1, False)])
def test_the_clocks_may_differ_a_little(late: int, tied: bool) -> None:
    start = np.array([0, 100 * US])
    end = np.array([100 * US + late, 200 * US])
    after = event_waits(np.array([10]), np.array([0, 20]), np.array([0, 1]), start, end)
    assert after.tolist() == [-1, 0 if tied else -1]


def test_nothing_waits_for_itself_or_for_what_is_launched_later() -> None:
    rng = np.random.default_rng(4)
    for _ in range(200):
        n = int(rng.integers(1, 30))
        issued = np.sort(rng.integers(0, 1_000, n))
        start = rng.integers(0, 5_000, n)
        after = event_waits(
            rng.integers(0, 1_000, 10), issued, rng.integers(0, 4, n), start, start + rng.integers(0, 3_000, n)
        )
        assert (after < np.arange(n)).all()


def test_an_empty_step_has_no_waits() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert event_waits(np.array([5]), none, none, none, none).size == 0
