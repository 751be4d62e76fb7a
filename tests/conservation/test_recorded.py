"""The same moves on files that an H200 recorded: neither a shift nor the order of the events changes their reports."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

from .traces import Event, busy, from_json, report, shifted, to_json

PAIRS = Path(__file__).resolve().parents[1] / "data" / "pairs"
FILES = ("gpu_work/two_chains_bf16.after", "host_work/decode_graph.before", "gpu_work/adam_large.before")


def recorded(name: str) -> tuple[list[Event], dict[str, object]]:
    return from_json(gzip.decompress((PAIRS / f"{name}.json.gz").read_bytes()))


@pytest.mark.parametrize("name", FILES)
def test_rewriting_shifting_and_mixing_change_nothing(name: str) -> None:
    events, top = recorded(name)
    original = report((PAIRS / f"{name}.json.gz").read_bytes())
    assert report(to_json(events, **top)) == original
    assert report(to_json(shifted(events, 86_400 * 10**9 + 7), **top)) == original
    # Threads may be named several times, the last time best: metadata keep their order.
    names = [event for event in events if event["ph"] == "M"]
    work = [event for event in events if event["ph"] != "M"]
    random.Random(name).shuffle(work)
    half = len(work) // 2
    assert report(to_json([*work[:half], *names, *work[half:]], **top)) == original


@pytest.mark.parametrize("name", FILES)
def test_the_device_is_busy_as_long_as_the_plain_union_says(name: str) -> None:
    events, top = recorded(name)
    alone = [event for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    covered, reach = 0, 0
    for start, end in sorted((event["start"], event["start"] + event["dur"]) for event in alone):
        covered += max(end - max(start, reach), 0)
        reach = max(reach, end)
    assert sum(busy(report(to_json(alone, **top)))[0].values()) == covered
