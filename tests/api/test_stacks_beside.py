"""A timing window takes file and line from the window with stacks that was recorded beside it."""

from __future__ import annotations

import gzip
import json
from importlib.resources import files
from pathlib import Path

import pytest

import gapless
from gapless.analyses.borrowed import borrow_places
from gapless.analyses.places import find_places
from gapless.api.sibling import stack_file_name

SAMPLES = Path(str(files("gapless") / "samples"))
TIMING, STACK = SAMPLES / "layer_sync.before.json.gz", SAMPLES / "layer_sync.before.stack.json.gz"


def recorded(folder: Path, stack_file: object) -> Path:
    """The sample's timing window, with the metadata that `gapless run` writes."""
    trace = json.loads(gzip.decompress(TIMING.read_bytes()))
    trace["gapless"] = {"schema": "gapless.recording/1", "stack_file": stack_file}
    path = folder / "job.rank0.json.gz"
    path.write_bytes(gzip.compress(json.dumps(trace).encode(), 1))
    return path


def test_every_outermost_op_finds_the_place_that_the_window_with_stacks_has() -> None:
    timing, stack = gapless.load(TIMING).study(), gapless.load(STACK).study()
    there = find_places(stack.raw, stack.links)
    borrowed = borrow_places(timing, find_places(timing.raw, timing.links), stack, there)
    assert borrowed.matched == borrowed.outermost.size > 100
    found = {(p.op, p.module, p.file, p.line) for p in borrowed.places.known if p.op == "aten::linear"}
    assert found == {(p.op, p.module, p.file, p.line) for p in there.known if p.op == "aten::linear"}
    assert len({module for _, module, _, _ in found}) == 12, "each layer keeps its own module"


def test_a_report_names_lines_of_the_window_beside_it(tmp_path: Path) -> None:
    path = recorded(tmp_path, "job.rank0.stack.json.gz")
    (tmp_path / "job.rank0.stack.json.gz").write_bytes(STACK.read_bytes())
    report = gapless.report(gapless.load(path)).report
    best = report.findings[0]
    assert best.code == "explicit-sync"
    assert (best.where.file, best.where.line) == ("record.py", 92)
    checks = {check.check: check for check in report.trust}
    assert checks["stacks"].status == "ok"
    assert "no file and line" not in checks["missing-flags"].detail
    alone = gapless.report(gapless.load(TIMING)).report
    assert alone.step == report.step, "timing is that of the window without stacks"


def test_a_missing_window_is_said_and_costs_nothing_else(tmp_path: Path) -> None:
    report = gapless.report(gapless.load(recorded(tmp_path, "gone.stack.json.gz"))).report
    (check,) = [check for check in report.trust if check.check == "stacks"]
    assert check.status == "note"
    assert "gone.stack.json.gz is not beside this file" in check.detail
    assert report.findings[0].where.file is None


def test_a_broken_window_is_as_good_as_none(tmp_path: Path) -> None:
    path = recorded(tmp_path, "job.stack.json.gz")
    (tmp_path / "job.stack.json.gz").write_bytes(b"no trace")
    report = gapless.report(gapless.load(path)).report
    assert report.findings[0].where.file is None
    (check,) = [check for check in report.trust if check.check == "stacks"]
    assert check.status == "note"
    assert "job.stack.json.gz: not a PyTorch profiler trace" in check.detail


@pytest.mark.parametrize("name", ["../other.json.gz", "/etc/passwd", "a\\b.json.gz", "", 7, None, ["x"], "."])
def test_only_a_plain_file_name_is_followed(tmp_path: Path, name: object) -> None:
    trace = gapless.load(recorded(tmp_path, name))
    assert trace.stacks is None
    if name != ".":
        assert stack_file_name(trace.raw) is None


BREAKS = Path(__file__).resolve().parents[1] / "data" / "pairs" / "stacks" / "explicit_breaks.before.json.gz"


@pytest.mark.parametrize("name", ["plain.stack.json.gz", "plain.stack.json"])
def test_a_window_with_stacks_is_found_by_its_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / "plain.json.gz"
    path.write_bytes(TIMING.read_bytes())
    raw = STACK.read_bytes()
    (tmp_path / name).write_bytes(raw if name.endswith(".gz") else gzip.decompress(raw))
    report = gapless.report(gapless.load(path)).report
    assert (report.findings[0].where.file, report.findings[0].where.line) == ("record.py", 92)
    (check,) = [check for check in report.trust if check.check == "stacks"]
    assert check.status == "ok"
    assert name in check.detail


def test_a_trace_with_stacks_needs_no_other(tmp_path: Path) -> None:
    path = tmp_path / "x.json.gz"
    path.write_bytes(STACK.read_bytes())
    (tmp_path / "x.stack.json.gz").write_bytes(STACK.read_bytes())
    assert gapless.load(path).stacks is None


def test_a_window_of_another_program_is_said_and_not_used(tmp_path: Path) -> None:
    path = tmp_path / "x.json.gz"
    path.write_bytes(TIMING.read_bytes())
    (tmp_path / "x.stack.json.gz").write_bytes(BREAKS.with_name("explicit_breaks.before.stack.json.gz").read_bytes())
    report = gapless.report(gapless.load(path)).report
    (check,) = [check for check in report.trust if check.check == "stacks"]
    assert check.status == "note"
    assert "is not used: its steps do other things" in check.detail
    assert report.findings == gapless.report(gapless.load(TIMING, stacks=tmp_path / "none.json")).report.findings


def test_frames_beside_the_trace_show_that_dynamo_gave_up() -> None:
    report = gapless.report(gapless.load(BREAKS)).report
    best = report.findings[0]
    assert best.code == "graph-break"
    assert (best.where.file, best.where.line) == ("more.py", 90)
    assert any("graph_break() is called 10 times a step" in line for line in best.evidence)
    assert best.gain is not None
    assert best.gain.speedup > 5
    alone = gapless.report(gapless.load(BREAKS, stacks=BREAKS.with_name("none.json"))).report
    assert "graph-break" in [check.code for check in alone.checks.cannot_tell]
    assert alone.step == report.step
