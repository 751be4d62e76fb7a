"""The packed timeline: everything comes back, whatever its size and sign."""

from __future__ import annotations

from dataclasses import fields, replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.render.html.timelines import small
from tests.render.html.unpack import unpack

from gapless.model.timeline import Queue, Timeline, column
from gapless.render.wire import encode, origin_ns


def test_every_column_comes_back() -> None:
    timeline = small(origin=1_700_000_000_000_000_000)
    header, columns = unpack(encode(timeline))
    origin = origin_ns(timeline)
    assert origin == header["origin_ns"] == 1_700_000_000_000_001_000
    for group in ("boxes", "arrows", "strip", "queue", "chain"):
        table = getattr(timeline, group)
        for one in fields(table):
            shift = origin if one.name in ("start_ns", "time_ns") else 0
            assert columns[group][one.name] == [v - shift for v in getattr(table, one.name)], (group, one.name)
    assert header["strings"] == timeline.strings
    assert [lane["name"] for lane in header["lanes"]] == [lane.name for lane in timeline.lanes]
    assert header["places"] == [[0, 3000, 3000, 2]]
    assert columns["overview"] == {"compute": [500] * 4, "host": [500] * 4}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-(2**52), 2**52), st.integers(-(2**31), 2**40)), max_size=40))
def test_any_numbers_come_back(rows: list[tuple[int, int]]) -> None:
    timeline = replace(
        Timeline(strings=[""], lanes=[], steps=[], shown=[]),
        queue=Queue(column([0] * len(rows)), column(a for a, _ in rows), column(b for _, b in rows)),
    )
    header, columns = unpack(encode(timeline))
    assert [v + header["origin_ns"] for v in columns["queue"]["time_ns"]] == [a for a, _ in rows]
    assert columns["queue"]["depth"] == [b for _, b in rows]


def test_packing_the_same_twice_gives_the_same_text() -> None:
    assert encode(small()) == encode(small())


def test_names_are_made_printable_before_they_travel() -> None:
    timeline = replace(small(), strings=[*small().strings[:-1], "a\u202eb\x1b[31m"])
    header, _ = unpack(encode(timeline))
    assert header["strings"][-1] == "a\\u202eb\\x1b[31m"
