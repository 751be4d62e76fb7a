"""What a page draws: boxes that nest, a strip that owns each instant once, arrows and places that lead somewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gapless import api
from gapless.analyses import timeline as module
from gapless.analyses.timeline import representative_step, timeline
from gapless.model.errors import GaplessError
from gapless.model.timeline import Timeline
from gapless.render.wire import as_array

SAMPLES = Path(api.__file__).resolve().parents[1] / "samples"
PAIRS = Path(__file__).resolve().parents[1] / "data" / "pairs" / "host_work"
BEFORE = SAMPLES / "layer_sync.before.stack.json.gz"


def drawn(file: Path, full: bool = False) -> tuple[api.ReportView, Timeline]:
    trace = api.load(file)
    view = api.report(trace)
    return view, timeline(trace.study(), view.report.findings, full=full)


def check(t: Timeline) -> None:
    """What holds for every timeline."""
    b = t.boxes
    lane, depth, start, dur = (as_array(c) for c in (b.lane, b.depth, b.start_ns, b.dur_ns))
    assert (dur >= 0).all()
    order = np.lexsort((start, depth, lane))
    assert (order == np.arange(order.size)).all()
    same = (lane[1:] == lane[:-1]) & (depth[1:] == depth[:-1])
    assert (start[1:] >= start[:-1] + dur[:-1])[same].all()
    for row, one in enumerate(t.lanes):
        if one.kind != "device":
            assert one.rows == int(depth[lane == row].max(initial=0)) + 1
    for column in (b.kind, b.name, b.words, b.facts, t.strip.state, t.strip.cause, t.strip.doing):
        assert not len(column) or (min(column) >= 0 and max(column) < len(t.strings))
    for column in (t.arrows.source, t.arrows.target, t.chain.box):
        assert not len(column) or (min(column) >= 0 and max(column) < start.size)
    s_lane, s_start, s_dur = (as_array(c) for c in (t.strip.lane, t.strip.start_ns, t.strip.dur_ns))
    follows = s_lane[1:] == s_lane[:-1]
    assert (s_start[1:] >= s_start[:-1] + s_dur[:-1])[follows].all()
    shown = [(r.start_ns, r.end_ns) for r in t.shown]
    assert shown == sorted(shown)
    assert all(a < b for a, b in shown)
    assert all(d >= 0 for d in t.queue.depth)
    chain = as_array(t.chain.start_ns)
    assert (np.diff(chain) >= 0).all()
    for place in t.places:
        assert place.box < 0 or start[place.box] == place.start_ns
    if t.overview:
        assert all(0 <= share <= 1000 for column in t.overview.shares for share in column)


def test_the_strip_repeats_the_accounting_exactly_where_all_is_shown() -> None:
    view, t = drawn(BEFORE, full=True)
    spent: dict[tuple[str, str], int] = {}
    for dur, state, cause in zip(t.strip.dur_ns, t.strip.state, t.strip.cause, strict=True):
        key = t.strings[state], t.strings[cause]
        spent[key] = spent.get(key, 0) + dur
    account = view.report.accounting[0]
    assert spent == {(p.state, p.cause or ""): p.ns for p in account.parts}


def test_a_wait_says_what_it_waited_for_and_points_at_it() -> None:
    _, t = drawn(PAIRS / "three_faults.before.json.gz", full=True)
    waits = [i for i, kind in enumerate(t.boxes.kind) if t.strings[kind] == "wait"]
    assert waits
    assert all(t.strings[t.boxes.words[i]].startswith("The host stands still for") for i in waits)
    assert 1 in t.arrows.kind
    for source, target, kind in zip(t.arrows.source, t.arrows.target, t.arrows.kind, strict=True):
        if kind == 1:
            assert source in waits
            assert t.lanes[t.boxes.lane[target]].kind == "stream"
            assert "It waits for" in t.strings[t.boxes.words[source]]


def test_every_launch_points_at_work_that_begins_after_it() -> None:
    _, t = drawn(BEFORE, full=True)
    launches = [(s, d) for s, d, kind in zip(t.arrows.source, t.arrows.target, t.arrows.kind, strict=True) if kind == 0]
    assert len(launches) == sum(t.lanes[lane].kind == "stream" for lane in t.boxes.lane)
    assert all(t.boxes.start_ns[s] <= t.boxes.start_ns[d] for s, d in launches)


def test_every_finding_of_a_sample_has_a_place_that_a_box_stands_for() -> None:
    view, t = drawn(BEFORE)
    assert {p.finding for p in t.places} == set(range(len(view.report.findings)))
    assert all(p.box >= 0 for p in t.places)


def test_the_shown_step_follows_a_used_one() -> None:
    trace = api.load(BEFORE)
    s = trace.study()
    step = representative_step(s)
    assert s.steps.used[step]
    assert s.steps.used[step - 1]


def test_over_the_limit_short_host_events_go_first_and_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    _, whole = drawn(BEFORE)
    monkeypatch.setattr(module, "MOST_BOXES", 200)
    _, thin = drawn(BEFORE)
    check(thin)
    assert len(thin.boxes.start_ns) <= 200 < len(whole.boxes.start_ns)
    kinds = {thin.strings[k] for k in thin.boxes.kind}
    assert "wait" in kinds
    assert any(k.startswith("kernel:") for k in kinds)
    assert any("are not drawn" in note for note in thin.notes)


def test_frames_of_libraries_are_left_out_and_said_to_be() -> None:
    _, some = drawn(BEFORE)
    _, every = drawn(BEFORE, full=True)
    assert any("Python frames" in note for note in some.notes)
    assert not any("Python frames" in note for note in every.notes)
    assert not any(some.strings[n].startswith("torch/") for n in some.boxes.name)
    assert any(every.strings[n].startswith("torch/") for n in every.boxes.name)


@pytest.mark.parametrize("full", [False, True])
def test_samples_give_sound_timelines(full: bool) -> None:
    for file in sorted(SAMPLES.glob("*.json.gz")):
        check(drawn(file, full)[1])


def test_every_handed_trace_gives_a_sound_timeline(shared: Path) -> None:
    files = [f for f in sorted(shared.rglob("*.json*")) if f.stat().st_size < 400_000]
    made = 0
    for file in files:
        try:
            _, t = drawn(file)
        except GaplessError:
            continue
        check(t)
        made += 1
    assert made > 120
