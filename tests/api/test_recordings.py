"""Do reports of what `gapless run` recorded on an H200 say the right thing? Scripts with known faults, two ranks.

The recordings come from benchmarks/gpu/run_h200.py; each folder of tests/data/run is one run with its two windows.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import gapless
from gapless.model.calibration import Calibration
from gapless.model.report import Report
from gapless.replay.overhead import Costs, costs_for

DATA = Path(__file__).resolve().parents[1] / "data"


def timing(case: str, rank: int = 0) -> Path:
    (path,) = [p for p in (DATA / "run" / case).glob(f"*.rank{rank}.*.json.gz") if ".stack." not in p.name]
    return path


def reported(case: str) -> Report:
    return gapless.report(gapless.load(timing(case))).report


@pytest.mark.parametrize(
    ("case", "code", "file", "line"),
    [
        ("layer_sync", "explicit-sync", "record.py", 92),
        ("pageable_h2d", "pageable-copy", "record.py", 118),
        ("dataloader", "input-bound", None, None),
        ("lightning", "input-bound", None, None),
    ],
)
def test_the_planted_fault_comes_first_with_its_line(case: str, code: str, file: str | None, line: int | None) -> None:
    best = reported(case).findings[0]
    assert best.code == code
    assert (best.where.file, best.where.line) == (file, line)


def test_waits_right_after_the_boundary_of_steps_keep_their_line() -> None:
    """The step ends inside the function that goes on with isnan() and item(): its frame crosses the boundary."""
    found = {sync.op: (sync.file, sync.line, sync.count) for sync in reported("item_sync").syncs if sync.op}
    assert found == {"aten::is_nonzero": ("record.py", 80, 10), "aten::item": ("record.py", 80, 10)}


@pytest.mark.parametrize("case", ["layer_sync", "pageable_h2d", "dataloader", "item_sync", "ranks", "lightning"])
def test_the_step_time_is_the_measured_one(case: str) -> None:
    report = reported(case)
    assert report.step.unprofiled_method == "measured"
    assert report.step.unprofiled_ms is not None
    assert report.step.wall_ms is not None
    assert report.step.unprofiled_ms < report.step.wall_ms
    names = [step.name for step in report.window.steps if step.used]
    assert len(names) >= 3
    checks = {check.check: check for check in report.trust}
    assert checks["stacks"].detail.endswith("for 100% of the main thread's ops")
    assert checks["lost-records"].status == "ok"
    assert not any("gapless" in (site.file or "") for finding in report.findings for site in finding.sites)


def test_ranks_record_the_same_steps_and_say_who_they_are() -> None:
    traces = [gapless.load(timing("ranks", rank)) for rank in (0, 1)]
    assert [(t.meta.rank, t.meta.world_size) for t in traces] == [(0, 2), (1, 2)]
    assert traces[0].study().steps.names == traces[1].study().steps.names


def test_the_machine_s_calibration_travels_in_the_trace_and_is_used() -> None:
    trace = gapless.load(timing("item_sync"))
    recorder: dict[str, Any] = trace.meta.recorder or {}
    found = Calibration.from_json(recorder["calibration"])
    assert found.measured
    assert found.machine.startswith("NVIDIA H200")
    costs = costs_for(trace.study())
    assert costs.frame == found.frame_ns
    assert costs.enter != Costs().enter


def test_fixes_in_a_trainer_gain_what_was_measured() -> None:
    cases: dict[str, Any] = json.loads((DATA / "pairs" / "models" / "labels.json").read_text())["cases"]
    loader = gapless.report(gapless.load(DATA / "pairs" / "models" / "trainer_loader.before.json.gz")).report
    (found,) = [finding for finding in loader.findings if finding.kind == "input-bound"]
    low, high = cases["trainer_loader"]["speedup_range"]
    assert found.gain.speedup == pytest.approx(cases["trainer_loader"]["speedup"], rel=0.05)
    assert (found.gain.low or 0) <= high
    assert (found.gain.high or 0) >= low
    trap = gapless.report(gapless.load(DATA / "pairs" / "models" / "trainer_loss_item.before.json.gz")).report
    assert not [f for f in trap.findings if f.kind == "hidden-sync" and (f.gain.speedup or 1) > 1.05]
    decode = gapless.report(gapless.load(DATA / "pairs" / "models" / "decode_compiled.before.json.gz")).report
    assert decode.findings[0].kind == "launch-bound"


def test_a_measured_step_time_is_given_where_nothing_can_be_replayed(tmp_path: Path) -> None:
    """A recording on a CPU holds no GPU work, but its steps were timed without the profiler."""
    trace = json.loads(gzip.decompress(timing("layer_sync").read_bytes()))
    gpu = {"kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver", "ac2g"}
    trace["traceEvents"] = [e for e in trace["traceEvents"] if e.get("cat") not in gpu]
    path = tmp_path / "cpu.json"
    path.write_text(json.dumps(trace))
    report = gapless.report(gapless.load(path)).report
    assert report.step.unprofiled_method == "measured"
    assert report.step.unprofiled_ms == reported("layer_sync").step.unprofiled_ms
    assert any(check.check == "replay" and "withheld" in check.detail for check in report.trust)
    assert not report.findings
    same = gapless.diff(gapless.load(path), gapless.load(timing("layer_sync"))).diff
    assert same.speedup.value == pytest.approx(1.0)
