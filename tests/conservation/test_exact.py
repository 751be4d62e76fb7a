"""Nothing is lost or counted twice, whatever the trace: parts add to their window, shares to 100 %."""

from __future__ import annotations

import itertools
import math
from typing import Any

from .programs import WILD, any_traces, holds_for, proper_traces, traces
from .traces import Event, busy, load, report, to_json

HOST = ("cpu_op", "cuda_runtime", "cuda_driver", "python_function", "user_annotation")


def union(spans: list[tuple[int, int]]) -> int:
    """Nanoseconds that some span covers, by the plainest way there is."""
    covered, reach = 0, None
    for start, end in sorted(spans):
        begin = start if reach is None else max(start, reach)
        covered += max(end - begin, 0)
        reach = end if reach is None else max(reach, end)
    return covered


def step_spans(whole: dict[str, Any]) -> int:
    """Length of the used steps on the host: marker to next marker, the last to its end."""
    steps = whole["window"]["steps"]
    until = [step["start_ns"] for step in steps[1:]] + [steps[-1]["end_ns"]]
    return sum(end - step["start_ns"] for step, end in zip(steps, until, strict=True) if step["used"])


@holds_for(any_traces)
def test_parts_add_to_the_window_on_every_device_and_thread(events: list[Event]) -> None:
    whole = report(to_json(events))
    assert whole["accounting"]
    for account in whole["accounting"]:
        assert sum(part["ns"] for part in account["parts"]) == account["wall_ns"]
        assert all(part["ns"] > 0 for part in account["parts"])
        assert (not account["parts"]) == (account["wall_ns"] == 0)
    for account in whole["host"]:
        assert sum(part["ns"] for part in account["parts"]) == account["wall_ns"] == step_spans(whole)
        assert all(part["ns"] > 0 for part in account["parts"])


@holds_for(any_traces)
def test_shares_add_to_one_hundred(events: list[Event]) -> None:
    whole = report(to_json(events))
    for account in whole["accounting"]:
        shares = [part["share"] for part in account["parts"]]
        assert all(0 <= share <= 1 for share in shares)
        assert not shares or math.isclose(sum(shares), 1, abs_tol=1e-9)
    for finding in whole["findings"]:
        shares = [site["share"] for site in finding["sites"]]
        assert not shares or len(shares) >= 20 or math.isclose(sum(shares), 1, abs_tol=1e-6) or sum(shares) == 0


@holds_for(traces(WILD, markers=False))
def test_a_window_of_everything_holds_exactly_the_union_of_the_activities(events: list[Event]) -> None:
    events = [event for event in events if not event["name"].startswith("ProfilerStep")]
    whole = report(to_json(events))
    for device, states in busy(whole).items():
        spans = [
            (event["start"], event["start"] + event["dur"])
            for event in events
            if event["cat"] in ("kernel", "gpu_memcpy", "gpu_memset") and event["args"]["device"] == device
        ]
        assert sum(states.values()) == union(spans)


@holds_for(traces(WILD, markers=False))
def test_a_device_is_as_busy_without_the_host(events: list[Event]) -> None:
    events = [event for event in events if not event["name"].startswith("ProfilerStep")]
    alone = [event for event in events if event["cat"] not in HOST]
    assert busy(report(to_json(events))) == busy(report(to_json(alone)))


@holds_for(any_traces)
def test_each_sync_splits_into_what_it_waited_for(events: list[Event]) -> None:
    trace = load(to_json(events))
    syncs = trace.study().syncs
    dur = trace.raw.calls["dur_ns"].to_numpy()[syncs.call]
    parts = (syncs.gpu_work, syncs.copy, syncs.untraced, syncs.overhead)
    assert (sum(parts) == dur).all()
    assert all((part >= 0).all() for part in parts)
    assert (syncs.idle_after >= 0).all()


@holds_for(any_traces)
def test_gap_pieces_tile_the_idle_time_in_order(events: list[Event]) -> None:
    study = load(to_json(events)).study()
    for account in study.devices.values():
        start, end = account.gaps["start_ns"].to_numpy(), account.gaps["end_ns"].to_numpy()
        assert (end > start).all()
        pieces = sorted(zip(start.tolist(), end.tolist(), strict=True))
        assert all(left[1] <= right[0] for left, right in itertools.pairwise(pieces))
        idle = account.parts.filter(account.parts["state"] == "idle")["ns"].sum()
        assert int((end - start).sum()) == idle


@holds_for(proper_traces)
def test_every_activity_with_a_recorded_launch_is_linked_to_it(events: list[Event]) -> None:
    launched = {event["args"]["correlation"] for event in events if event["cat"] == "cuda_runtime"}
    work = [event for event in events if event["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    links = load(to_json(events)).study().links
    assert int((links.launch_of >= 0).sum()) == sum(event["args"]["correlation"] in launched for event in work)
