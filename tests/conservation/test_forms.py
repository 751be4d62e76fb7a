"""How a file is written, and what else stands in it, changes no number: order, chunks, blanks, keys, strange events."""

from __future__ import annotations

import io
import random
from typing import Any

from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from gapless.ingest import read
from gapless.model import schema

from .programs import any_traces, holds_for
from .traces import Event, load, report, to_json

STRANGE: tuple[Event, ...] = (
    {"ph": "X", "cat": "cuda_driver_v9", "name": "kernel", "pid": 0, "tid": 7, "start": 1_000_500, "dur": 10**9,
     "args": {"stream": 7, "device": 0, "correlation": 1}},
    {"ph": "X", "cat": "hardware_counters", "name": "sm", "pid": 0, "tid": 7, "start": 1_000_500, "dur": 10**9},
    {"ph": "i", "cat": "odd", "name": "instant", "s": "t", "pid": 10, "tid": 11, "start": 1_020_000},
    {"ph": "s", "cat": "ac2g", "id": 1, "name": "ac2g", "pid": 10, "tid": 11, "start": 1_000_000},
    {"ph": "f", "cat": "ac2g", "id": 1, "name": "ac2g", "bp": "e", "pid": 0, "tid": 7, "start": 1_900_000},
    {"ph": "f", "cat": "fwdbwd", "id": 99, "name": "fwdbwd", "pid": 0, "tid": 7, "start": 1_900_000},
    {"ph": "C", "cat": "", "name": "GPU 0 Utilization", "pid": 0, "tid": 7, "start": 1_010_000, "args": {"x": 3}},
    {"ph": "M", "name": "process_name", "pid": 10, "tid": 0, "start": 0, "args": {"name": "python"}},
    {"ph": "M", "name": "process_sort_index", "pid": 10, "tid": 0, "start": 0, "args": {"sort_index": 5}},
    {"ph": "q", "cat": "cpu_op", "name": "who knows", "pid": 10, "tid": 11, "start": 1_000_000, "dur": 10},
)  # fmt: skip


def assert_same_tables(left: bytes, right: bytes, **reading: Any) -> None:
    """All tables as read are equal row by row."""
    one, other = read(io.BytesIO(left)), read(io.BytesIO(right), **reading)
    for table in schema.TABLES:
        assert_frame_equal(getattr(one, table.name), getattr(other, table.name))
    assert one.meta.origin_ns == other.meta.origin_ns


@holds_for(any_traces, st.integers(0, 10**6))
def test_the_order_of_events_in_the_file_does_not_matter(events: list[Event], seed: int) -> None:
    mixed = random.Random(seed).sample(events, len(events))
    assert_same_tables(to_json(events), to_json(mixed))
    assert report(to_json(events)) == report(to_json(mixed))


@holds_for(any_traces, st.sampled_from((1, 300, 1000)))
def test_chunks_of_any_size_give_the_same_tables(events: list[Event], size: int) -> None:
    text = to_json(events)
    assert_same_tables(text, text, chunk_bytes=size, fork=False)


@holds_for(any_traces, st.integers(0, 10**6))
def test_blanks_and_the_order_of_keys_do_not_matter(events: list[Event], seed: int) -> None:
    rng = random.Random(seed)
    written = to_json(events, keys=lambda keys: rng.sample(keys, len(keys)), indent=rng.choice((None, 1, 4)))
    assert_same_tables(to_json(events), written, chunk_bytes=rng.choice((500, 1 << 20)), fork=False)


@holds_for(any_traces, st.lists(st.sampled_from(STRANGE), min_size=1, max_size=6), st.integers(0, 10**6))
def test_events_that_are_no_work_change_no_total(events: list[Event], strange: list[Event], seed: int) -> None:
    rng = random.Random(seed)
    mixed = list(events)
    for event in strange:
        mixed.insert(rng.randrange(len(mixed) + 1), event)
    before, after = report(to_json(events)), report(to_json(mixed))
    assert after["trace"].pop("events") == before["trace"].pop("events") + len(strange)
    for key in ("issues", "trust"):
        # An unknown kind of event is reported as such, and nothing else is.
        assert {row.get("check", row.get("code")) for row in after.pop(key)} >= {
            row.get("check", row.get("code")) for row in before.pop(key)
        }
    assert after == before


@holds_for(any_traces)
def test_reading_twice_gives_the_same_report(events: list[Event]) -> None:
    text = to_json(events)
    assert report(text) == report(text)
    assert load(text).meta.events == len(events)
