"""On which row of its stream is a piece of work drawn? The lowest that is free when it starts."""

from __future__ import annotations

from gapless.analyses.timeline import timeline
from gapless.render.wire import as_array

from .literal import Row, studied, work


def rows(*activities: Row) -> dict[tuple[int, int], int]:
    """Row by (start, duration) of the work of one stream."""
    drawn = timeline(studied(activities=list(activities)), [], full=True)
    lane = next(i for i, one in enumerate(drawn.lanes) if one.kind == "stream")
    b = drawn.boxes
    columns = (as_array(c).tolist() for c in (b.lane, b.start_ns, b.dur_ns, b.depth))
    return {(start, dur): depth for at, start, dur, depth in zip(*columns, strict=True) if at == lane}


def test_work_in_order_shares_one_row() -> None:
    assert set(rows(work(0, 10), work(10, 20), work(25, 30)).values()) == {0}


def test_overlapping_work_takes_the_lowest_row_free() -> None:
    found = rows(work(0, 100), work(10, 20), work(15, 40), work(20, 30), work(35, 99), work(100, 110))
    assert found == {(0, 100): 0, (10, 10): 1, (15, 25): 2, (20, 10): 1, (35, 64): 1, (100, 10): 0}
