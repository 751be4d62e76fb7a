from __future__ import annotations

import pytest
from trace_files import codes, kernel, read_events, span

DAY_US = 86_400e6
WINDOW = [
    span("Trace", "PyTorch Profiler (0)", 1000, 5000, "Spans", "PyTorch Profiler"),
    {"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "ts": 7000, "s": "g"},
]
STEADY = [kernel(f"k{i}", 1000 + i * 10, 9, i + 1) for i in range(20)]


def reasons(*events: dict, window: bool = True) -> list[tuple[str, str]]:
    raw = read_events(*(WINDOW if window else []), *STEADY, *events)
    assert raw.activities.height + raw.ops.height + raw.set_aside.height == len(STEADY) + len(events)
    found = raw.set_aside.select("name", "reason").rows()
    for _, reason in found:
        assert codes(raw)[reason] >= 1
    return found


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (kernel("bad", 1500, -5), "negative-duration"),
        (span("user_annotation", "bad", 1500, -11019449199922641), "negative-duration"),
        (kernel("bad", 1500, 7.4e15), "absurd-duration"),
        (kernel("bad", 1500, 8 * DAY_US), "absurd-duration"),
        (kernel("bad", 1500, 60e6), "overruns-window"),
        (span("cpu_op", "bad", 1500, 20_000), "overruns-window"),
        (kernel("bad", 1e18, 1), "bad-time"),
        (kernel("bad", 20 * DAY_US, 1), "bad-time"),
        ({"ph": "X", "cat": "cpu_op", "name": "bad", "pid": 1, "tid": 1, "dur": 1}, "no-time"),
    ],
)
def test_senseless_events(event: dict, reason: str):
    assert reasons(event) == [("bad", reason)]


def test_texts_are_as_written():
    raw = read_events(*STEADY, span("user_annotation", "bad", 1500.25, -11019449199922641))
    assert raw.set_aside.rows() == [("user_annotation", "bad", "1500.25", "-11019449199922641", "negative-duration")]


def test_a_lone_zero_far_from_everything():
    far = [kernel(f"k{i}", 5e12 + i, 1) for i in range(3)]
    raw = read_events(kernel("zero", 0, 0), *far)
    assert raw.set_aside.select("name", "reason").rows() == [("zero", "bad-time")]
    assert raw.meta.origin_ns == 5 * 10**15


def test_zero_is_a_fine_start_for_a_file_that_begins_there():
    raw = read_events(kernel("first", 0, 1), kernel("next", 5_000, 1), kernel("late", 300e6, 1))
    assert raw.set_aside.height == 0


@pytest.mark.parametrize(
    "event",
    [
        span("python_function", "main.py(1): <module>", 900, 6100),
        span("user_annotation", "open", 2000, 5000, finished=False),
        kernel("long", 1200, 5700, 99),
        kernel("past the end a little", 6990, 40, 98),
        kernel("empty", 2000, 0, 97),
    ],
)
def test_long_but_possible_events_stay(event: dict):
    raw = read_events(*WINDOW, *STEADY, event)
    assert raw.set_aside.height == 0


@pytest.mark.parametrize("marker", WINDOW)
def test_one_marker_alone_is_no_window(marker: dict):
    raw = read_events(marker, *STEADY, kernel("long", 1500, 60e6, 50))
    assert raw.set_aside.height == 0


def test_without_a_known_window_long_kernels_stay():
    assert reasons(kernel("collective that waits", 1500, 300e6, 50), window=False) == []


def test_a_record_that_overruns_its_queue_by_orders_of_magnitude():
    assert reasons(kernel("overrun", 1001, 3e6, 50), window=False) == [("overrun", "absurd-duration")]


def test_the_same_on_another_stream_is_a_long_kernel():
    assert reasons(kernel("long", 1001, 3e6, 50, stream=20), window=False) == []


def test_a_long_branch_of_one_graph_launch_stays():
    branches = [kernel(f"g{i}", 1001 + i * 10, 9, 500, stream=30) for i in range(20)]
    raw = read_events(*branches, kernel("long branch", 1000, 3e6, 500, stream=30))
    assert raw.set_aside.height == 0
