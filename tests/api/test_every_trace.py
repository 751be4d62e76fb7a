"""Every handed trace gives a report whose accounts are exact, or one clear line."""

from __future__ import annotations

from pathlib import Path

from gapless import api
from gapless.model.errors import GaplessError
from gapless.render import json_, text

NOT_TRACES = {"labels.json", "tables.json", "calibration.json", "goldens.json"}
MOST_BYTES = 3_000_000
"""Larger files take minutes together; benchmarks/report_speed.py reads those."""


def test_every_trace_reports_exactly_or_says_why_not(shared: Path) -> None:
    files = [f for f in sorted(shared.rglob("*.json*")) if f.name not in NOT_TRACES and f.stat().st_size < MOST_BYTES]
    assert len(files) > 150
    refused = set()
    for file in files:
        try:
            report = api.report(api.load(file)).report
        except GaplessError as error:
            assert "\n" not in str(error), file
            refused.add(file.name)
            continue
        for account in [*report.accounting, *report.host]:
            assert sum(part.ns for part in account.parts) == account.wall_ns, file
        assert all(f.gain.speedup is None or f.gain.low <= f.gain.speedup <= f.gain.high for f in report.findings), file
        assert text.render(report, full=True, width=80, color=False)
        assert json_.render(report)
    wrong = {"empty.json", "html.json", "not_a_trace.json"}
    assert {name for name in refused if "_empty.json" not in name} == wrong
