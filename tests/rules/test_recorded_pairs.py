"""Do the rules name the planted faults of pairs recorded on an H200 after the rules were written?

The pairs come from benchmarks/pairs; labels.json beside them holds the measured times. A case without a kind is healthy
or a trap. Shares are asserted, not single cases: host-bound recordings are noisy.
"""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

import pytest

from gapless import api

PAIRS = Path(__file__).resolve().parents[1] / "data" / "pairs"


@pytest.mark.parametrize("folder", ["host_work", "gpu_work", "compile_work"])
def test_planted_faults_are_among_the_first_three(folder: str) -> None:
    labels: dict[str, Any] = json.loads((PAIRS / folder / "labels.json").read_text())["cases"]
    hits, asked, errors = 0, 0, []
    for name, case in labels.items():
        path = PAIRS / folder / f"{name}.before.json.gz"
        if not path.exists():
            continue
        report = api.report(api.load(path)).report
        if report.step.unprofiled_ms:
            errors.append(abs(math.log(report.step.unprofiled_ms / case["before_ms"])))
        if case["kinds"]:
            asked += 1
            hits += any(finding.kind in case["kinds"] for finding in report.findings[:3])
    assert asked >= 15
    assert hits >= 0.8 * asked
    assert statistics.median(errors) < 0.15


@pytest.mark.parametrize("name", ["sleep_hidden", "decode_graph", "sync_gpu_bound", "wait_moves"])
def test_traps_and_healthy_steps_promise_nothing(name: str) -> None:
    report = api.report(api.load(PAIRS / "host_work" / f"{name}.before.json.gz")).report
    assert all((finding.gain.speedup or 1.0) <= 1.10 for finding in report.findings)


def test_measured_gains_of_compiled_code_lie_in_the_ranges() -> None:
    """Ranges are wide where the trace cannot know; the truth has to be in them all the same."""
    labels: dict[str, Any] = json.loads((PAIRS / "compile_work" / "labels.json").read_text())["cases"]
    met, asked, alarms = 0, 0, []
    for name, case in labels.items():
        before, after = (PAIRS / "compile_work" / f"{name}.{side}.json.gz" for side in ("before", "after"))
        if not case["gain_kinds"] or not before.exists():
            continue
        report = api.report(api.load(before)).report
        mine = next((one for one in report.findings if one.kind in case["gain_kinds"]), None)
        low, high = case["speedup_range"]
        asked += 1
        met += mine is not None and (mine.gain.low or 0) <= high and (mine.gain.high or 0) >= low
        healthy = api.report(api.load(after)).report.findings
        alarms += [name for one in healthy if one.kind in case["alarm_kinds"] and (one.gain.speedup or 1) > 1.05]
    assert asked >= 15
    assert met >= 0.7 * asked
    assert alarms == []
