"""The export for other viewers: valid JSON, slices that nest on every track, nothing lost, times exact."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.render import factories
from tests.render.html.timelines import small

from gapless import api
from gapless.analyses.timeline import timeline
from gapless.model.errors import GaplessError
from gapless.model.timeline import Timeline, column
from gapless.render.perfetto import export

SAMPLES = Path(api.__file__).resolve().parents[1] / "samples"


def events(of: Timeline, report: Any = None, origin: int = 0) -> list[dict[str, Any]]:
    return json.loads("".join(export(of, report or factories.report(), origin)))["traceEvents"]


def crossings(found: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    """Pairs of slices of one track of which neither holds the other although they overlap, in whole nanoseconds."""
    tracks = defaultdict(list)
    for e in found:
        if e["ph"] == "X":
            start = round(e["ts"] * 1000)
            tracks[e["pid"], e["tid"]].append((start, -round(e["dur"] * 1000), e["name"]))
    bad = []
    for slices in tracks.values():
        stack: list[tuple[int, str]] = []
        for start, negative, name in sorted(slices):
            while stack and stack[-1][0] <= start:
                stack.pop()
            if stack and start - negative > stack[-1][0]:
                bad.append((stack[-1], name))
            stack.append((start - negative, name))
    return bad


def test_a_small_timeline_is_written_with_every_lane() -> None:
    found = events(small(), origin=5)
    slices = [e for e in found if e["ph"] == "X"]
    kernel = next(e for e in slices if e["cat"] == "kernel:gemm")
    assert kernel["name"] == "void gemm<128>(float*)"
    assert (kernel["ts"], kernel["dur"]) == (2.0, 4.0)
    assert kernel["args"]["grid"] == "1 x 2 x 3"
    wait = next(e for e in slices if e["cat"] == "wait")
    assert wait["args"] == {"what": "The host stands still for 3 µs."}
    own = [e for e in slices if e["cat"] == "gapless"]
    assert sorted(e["name"] for e in own) == sorted(
        ["idle: dispatch", "compute", "idle: dispatch", "cudaStreamSynchronize", "cudaLaunchKernel", "gemm 128x64",
         factories.report().findings[0].title]
    )  # fmt: skip
    assert [e["args"]["launches"] for e in found if e["ph"] == "C"] == [1, 0]
    flows = [e for e in found if e["ph"] in "sf"]
    assert [(e["ph"], e["ts"], e["id"]) for e in flows] == [("s", 1.2, 1), ("f", 2.0, 1)]


def test_times_are_exact_nanoseconds_after_a_whole_day() -> None:
    day = 86_400 * 10**9
    shifted = small(origin=day + 1)
    kernel = next(e for e in events(shifted) if e["ph"] == "X" and e["cat"] == "kernel:gemm")
    assert round(kernel["ts"] * 1000) == day + 2001


def test_work_that_overlaps_on_a_stream_gets_a_track_of_its_own() -> None:
    base = small()
    b = base.boxes
    more = replace(
        b,
        **{name: column([*getattr(b, name)[:1], getattr(b, name)[0], *getattr(b, name)[1:]]) for name in b.__slots__},
    )
    depth, start = list(more.depth), list(more.start_ns)
    depth[1], start[1] = 1, start[0] + 10
    lanes = [replace(lane, rows=2) for lane in base.lanes]
    found = events(replace(base, boxes=replace(more, depth=column(depth), start_ns=column(start)), lanes=lanes))
    kernels = {(e["pid"], e["tid"]) for e in found if e["ph"] == "X" and e["cat"] == "kernel:gemm"}
    assert len(kernels) == 2
    named = {(e["pid"], e["tid"]) for e in found if e["ph"] == "M" and e["name"] == "thread_name"}
    assert kernels <= named
    assert crossings(found) == []


def test_hostile_names_stay_text() -> None:
    base = small()
    strings = [factories.HOSTILE[:900] + '"}],\n{"' if i else "" for i, _ in enumerate(base.strings)]
    found = events(replace(base, strings=strings), factories.hostile())
    assert all("\x1b" not in e.get("name", "") for e in found)


@pytest.mark.parametrize("file", sorted(p.name for p in SAMPLES.glob("*.json.gz")))
def test_slices_of_a_recording_nest_on_every_track_and_none_is_lost(file: str) -> None:
    trace = api.load(SAMPLES / file)
    view = api.report(trace)
    found = events(timeline(trace.study(), view.report.findings, full=True), view.report)
    assert crossings(found) == []
    raw = trace.raw
    recorded = [e for e in found if e["ph"] == "X" and e["cat"] != "gapless"]
    assert len(recorded) == raw.ops.height + raw.frames.height + raw.calls.height + raw.activities.height
    tracks = {(e["pid"], e["tid"]) for e in found if e["ph"] == "X"}
    named = {(e["pid"], e["tid"]) for e in found if e["ph"] == "M" and e["name"] == "thread_name"}
    assert tracks <= named


ODD = ["h200/odd", "h200/ddp", "invalid", "public/kineto"]


def test_slices_of_odd_recordings_nest_too(shared: Path) -> None:
    files = [f for folder in ODD for f in sorted((shared / folder).rglob("*.json*")) if f.stat().st_size < 300_000]
    checked = 0
    for file in files:
        try:
            trace = api.load(file)
            view = api.report(trace)
        except GaplessError:
            continue
        assert crossings(events(timeline(trace.study(), view.report.findings, full=True), view.report)) == [], file
        checked += 1
    assert checked > 25
