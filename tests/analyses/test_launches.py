"""How long launches take, how late work starts, how many wait, and when the queue was full."""

from __future__ import annotations

from gapless.analyses.launches import LONG_LAUNCH_RATIO, NEARLY_FULL, Launches, queue_depth_series
from gapless.analyses.top_tables import top_tables

from .literal import LAUNCH, Row, call, launched, overhead, steps, studied, work


def figures(**tables: object) -> Launches:
    return studied(**tables).launches


def test_latency_is_from_the_calls_start_and_delay_from_its_end() -> None:
    calls, activities = launched((0, 10, 35, 50), (100, 130, 130, 150))
    y = figures(calls=[*calls, call(200, 210)], activities=activities)
    assert y.latency.tolist() == [35, 30, -1]
    assert y.delay.tolist() == [25, 0, -1]


def test_work_that_begins_during_its_call_or_before_it_has_no_delay_and_only_the_latter_is_a_clocks_fault() -> None:
    calls, activities = launched((0, 10, 5, 50), (100, 130, 70, 90), (200, 210, 160, 180))
    y = figures(calls=calls, activities=activities)
    assert y.latency.tolist() == [5, 0, 0]
    assert y.delay.tolist() == [0, 0, 0]
    assert (y.negative, y.most_negative_ns) == (2, -40)


def test_a_graphs_latency_is_to_its_first_node() -> None:
    calls = [call(0, 10, "cudaGraphLaunch", 1)]
    y = figures(calls=calls, activities=[work(90, 100, 1), work(40, 60, 1, stream=8)])
    assert (y.latency.tolist(), y.delay.tolist()) == ([40], [30])


def test_the_usual_delay_is_that_of_launches_onto_an_idle_stream() -> None:
    # The second waits for the first; the fourth is launched when its stream is done.
    calls, activities = launched((0, 10, 20, 500), (30, 40, 500, 600), (700, 710, 722, 800), (900, 910, 916, 950))
    assert figures(calls=calls, activities=activities).usual_delay_ns == 10
    assert figures(calls=calls[:1], activities=activities[:1]).usual_delay_ns == 10
    assert figures(calls=[call(0, 5)]).usual_delay_ns == 0


def test_another_busy_stream_does_not_make_this_one_busy() -> None:
    calls = [call(0, 10, correlation=1), call(20, 30, correlation=2)]
    assert figures(calls=calls, activities=[work(20, 900, 1), work(90, 100, 2, stream=8)]).usual_delay_ns == 35


def test_the_usual_call_is_the_median_launch_of_a_single_activity() -> None:
    calls, activities = launched((0, 4, 10, 20), (30, 36, 40, 50), (60, 80, 90, 100))
    calls.append(call(200, 900, "cudaGraphLaunch", 9))
    y = figures(calls=calls, activities=[*activities, work(1000, 1010, 9), work(1010, 1020, 9)])
    assert y.usual_call_ns == 6


def test_depth_counts_launches_issued_and_not_begun_when_a_call_starts() -> None:
    calls, activities = launched((0, 5, 100, 200), (10, 15, 200, 300), (20, 25, 300, 400), (100, 105, 400, 500))
    y = figures(calls=[*calls, call(600, 605)], activities=activities)
    # At 100 the first begins: begun counts as no longer waiting.
    assert y.depth.tolist() == [0, 1, 2, 2, -1]


def test_depth_is_of_the_calls_device() -> None:
    calls = [call(0, 5, correlation=1), call(10, 15, correlation=2), call(20, 25, correlation=3)]
    y = figures(calls=calls, activities=[work(100, 200, 1), work(100, 200, 2, device=1), work(200, 300, 3)])
    assert y.depth.tolist() == [0, 0, 1]


def test_the_series_of_depth_rises_with_calls_and_falls_with_work() -> None:
    calls, activities = launched((0, 5, 100, 200), (10, 15, 200, 300), (100, 105, 110, 120))
    s = studied(calls=calls, activities=activities)
    assert queue_depth_series(s.raw, s.links).rows() == [
        (0, 0, 1), (0, 10, 2), (0, 100, 1), (0, 100, 2), (0, 110, 1), (0, 200, 0),
    ]  # fmt: skip


def flood(count: int, last_ns: int) -> tuple[list[Row], list[Row]]:
    """So many launches of 10 ns each onto a GPU that is busy until all are made, the last one lasting longer."""
    rows = [(20 * i, 20 * i + 10, 10**6 + 10 * i, 10**6 + 10 * i + 10) for i in range(count)]
    rows[-1] = (rows[-1][0], rows[-1][0] + last_ns, *rows[-1][2:])
    return launched(*rows)


def test_a_long_launch_behind_about_a_thousand_others_found_the_queue_full() -> None:
    long = int(10 * LONG_LAUNCH_RATIO)
    for count, ns, full in (
        (NEARLY_FULL + 1, long + 1, True),
        (NEARLY_FULL + 1, long, False),
        (NEARLY_FULL, long + 1, False),
    ):
        calls, activities = flood(count, ns)
        y = figures(calls=calls, activities=activities)
        assert y.depth[-1] == count - 1
        assert y.queue_full.tolist() == [False] * (count - 1) + [full]


def test_a_launch_that_a_full_buffers_row_covers_by_more_than_half_waited_for_room() -> None:
    calls, activities = launched((0, 100, 150, 200), (300, 400, 450, 500))
    rows = [overhead(0, 50, "Command Buffer Full"), overhead(300, 351, "Command Buffer Full"),
            overhead(0, 100, "Activity Buffer Request")]  # fmt: skip
    y = figures(calls=[*calls, call(600, 700, "cudaMalloc")], activities=activities, overheads=rows)
    assert y.queue_full.tolist() == [False, True, False]


def test_the_table_of_launches_counts_kernels_shorter_than_their_launch() -> None:
    calls, activities = launched((0, 100, 150, 250), (300, 400, 450, 500), (600, 700, 750, 760))
    calls.append(call(800, 900, "cudaGraphLaunch", 9))
    s = studied(ops=steps(0, 1000), calls=calls, activities=[*activities, work(920, 990, 9)])
    rows = {row["name"]: row for row in top_tables(s)["launches"]}
    assert (rows[LAUNCH]["count"], rows[LAUNCH]["shorter_than_launch"], rows[LAUNCH]["call_median_us"]) == (3, 2, 0.1)
    assert (rows["cudaGraphLaunch"]["shorter_than_launch"], rows["cudaGraphLaunch"]["latency_median_us"]) == (1, 0.12)
