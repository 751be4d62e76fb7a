"""What a constant added to all times, or a factor on all of them, may change: absolute times, and nothing but lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from gapless.analyses import syncs as syncs_module
from gapless.analyses.study import Study

from .programs import any_traces, holds_for, proper_traces
from .traces import Event, load, report, scaled, shifted, to_json

SHIFTS = st.sampled_from((1, -1, 999, 123_456_789, 10**15 + 1, 7_900_000_000_000_000))
"""The last is where recorders without a base wrote their times in 2024: doubles are too coarse for it."""


@holds_for(any_traces, SHIFTS)
def test_a_shift_changes_nothing_but_the_origin(events: list[Event], by: int) -> None:
    moved = to_json(shifted(events, by))
    assert report(moved) == report(to_json(events))
    assert load(moved).meta.origin_ns == load(to_json(events)).meta.origin_ns + by


@holds_for(any_traces, SHIFTS)
def test_a_base_time_changes_nothing_but_the_origin(events: list[Event], by: int) -> None:
    moved = to_json(events, baseTimeNanoseconds=abs(by))
    assert report(moved) == report(to_json(events))
    assert load(moved).meta.origin_ns == load(to_json(events)).meta.origin_ns + abs(by)


@holds_for(proper_traces, st.sampled_from((2, 3, 10)))
def test_a_factor_scales_every_time_and_changes_no_count_state_or_cause(events: list[Event], factor: int) -> None:
    """Links, steps, accounting, gaps, syncs and launch figures of traces that nest exactly.

    Two thresholds of these analyses are absolute, and are scaled along: the clock disagreement a sync's end may show,
    and how long a call must block without work to count as untraced. (The third, by how much a child may outlast its
    parent, concerns traces that do not nest.) The replay and the rules know what hosts and GPUs cost in absolute
    terms, so predictions, findings and the verdict are not part of this.
    """
    before = load(to_json(_odd(events))).study()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(syncs_module, "RETURN_TOLERANCE_NS", syncs_module.RETURN_TOLERANCE_NS * factor)
        patch.setattr(syncs_module, "UNTRACED_NS", syncs_module.UNTRACED_NS * factor)
        after = load(to_json(scaled(_odd(events), factor))).study()
    assert _times(after) == {name: (np.array(times) * factor).tolist() for name, times in _times(before).items()}
    assert _facts(after) == _facts(before)


def _odd(events: list[Event]) -> list[Event]:
    """A host event far before all others whose time is no whole microsecond at any scale: whether all times of a file
    are whole is a fact of its own."""
    first = {
        "ph": "X",
        "cat": "python_function",
        "name": "start",
        "pid": 10,
        "tid": 99,
        "start": 1,
        "dur": 1,
        "args": {},
    }
    return [first, *events]


def _times(s: Study) -> dict[str, list[int]]:
    times: dict[str, Any] = {
        "steps": np.concatenate([s.steps.start, s.steps.end, s.steps.until]),
        "host_work": s.host_work,
        "latency": np.maximum(s.launches.latency, 0),
        "delay": np.maximum(s.launches.delay, 0),
        "usual": np.array([s.launches.usual_delay_ns, s.launches.usual_call_ns, s.launches.most_negative_ns]),
        **{f"sync {key}": getattr(s.syncs, key) for key in ("gpu_work", "copy", "untraced", "overhead", "idle_after")},
    }
    for device, account in s.devices.items():
        times[f"line {device}"] = np.concatenate([account.line[0], account.line[1]])
        times[f"parts {device}"] = account.parts["ns"].to_numpy()
        times[f"gaps {device}"] = account.gaps.select("start_ns", "end_ns").to_numpy().ravel()
    for thread, line in enumerate(s.states.shared):
        times[f"thread {thread}"] = np.concatenate([line[0], line[1]])
    return {name: np.asarray(values).tolist() for name, values in times.items()}


def _facts(s: Study) -> dict[str, Any]:
    links, steps, syncs, launches = s.links, s.steps, s.syncs, s.launches
    facts: dict[str, Any] = {
        "links": [getattr(links, key).tolist() for key in ("launch_of", "first_activity", "activity_count", "op_of_call",
                                                           "top_op_of_call", "annotation_of_call", "frame_of_call",
                                                           "forward_op")],
        "forest": [links.forest.parent.tolist(), links.forest.source.tolist()],
        "steps": [steps.names, steps.used.tolist(), steps.step_of_call.tolist(), steps.step_of_activity.tolist()],
        "syncs": [syncs.call.tolist(), syncs.device.tolist(), syncs.waited_activity.tolist()],
        "launches": [launches.depth.tolist(), launches.queue_full.tolist(), launches.negative],
        "lost": s.lost.without_record.tolist(),
        "roles": s.states.roles,
    }  # fmt: skip
    for device, account in s.devices.items():
        facts[f"states {device}"] = account.line[2].tolist()
        facts[f"causes {device}"] = account.gaps["cause"].to_list()
        facts[f"parts {device}"] = account.parts.select("state", "cause").rows()
    for thread, line in enumerate(s.states.shared):
        facts[f"thread {thread}"] = line[2].tolist()
    return facts
