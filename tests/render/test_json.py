"""JSON is the contract: names, nesting, order, and no value that JSON does not know."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gapless.model.report import StepNumbers
from gapless.render import json_

from . import factories

CONTRACT = {
    "": [
        "schema", "tool", "trace", "trust", "window", "step", "verdict", "accounting", "host", "syncs", "findings",
        "checks",
    ],
    "trace": ["path", "bytes", "sha256", "events", "devices", "rank", "world_size", "flags"],
    "trust.0": ["check", "status", "detail"],
    "window": ["marker", "steps"],
    "window.steps.0": ["name", "start_ns", "end_ns", "used", "why"],
    "step": [
        "wall_ms", "steady_ms", "unprofiled_ms", "gpu_busy_ms", "host_work_ms", "host_wait_ms", "launches", "kernels",
        "graph_launches", "syncs", "copies", "copy_bytes",
    ],
    "verdict": ["bound", "sentence"],
    "accounting.0": ["device", "wall_ns", "parts"],
    "accounting.0.parts.0": ["state", "cause", "ns", "share"],
    "host.0": ["thread", "role", "wall_ns", "parts"],
    "host.0.parts.0": ["state", "detail", "ns"],
    "syncs.0": [
        "name", "origin", "op", "module", "file", "line", "count", "wall_ms", "waited", "idle_after_ms", "gain",
    ],
    "syncs.0.waited": ["gpu_work_ms", "copy_ms", "untraced_ms", "overhead_ms"],
    "findings.0": [
        "code", "kind", "title", "sites", "where", "per_step", "gain", "evidence", "why_it_may_be_wrong", "fix", "docs",
    ],
    "findings.0.sites.0": ["op", "module", "file", "line", "per_step", "share"],
    "findings.0.per_step": ["count", "ms"],
    "findings.0.gain": ["step_ms", "speedup", "low", "high", "method"],
    "checks": ["found", "clean", "cannot_tell"],
    "checks.cannot_tell.0": ["code", "reason", "how"],
}  # fmt: skip


@pytest.mark.parametrize("path", CONTRACT)
def test_every_field_of_the_contract_is_there(path: str) -> None:
    value = json.loads(json_.render(factories.report()))
    for key in filter(None, path.split(".")):
        value = value[int(key)] if key.isdecimal() else value[key]
    assert set(CONTRACT[path]) <= set(value)


def test_schema_comes_first() -> None:
    assert json_.render(factories.report()).startswith('{\n  "schema": "gapless.report/1"')


def test_parts_sum_to_the_wall_in_what_is_written() -> None:
    value = json.loads(json_.render(factories.report()))
    for account in value["accounting"] + value["host"]:
        assert sum(p["ns"] for p in account["parts"]) == account["wall_ns"]


def test_the_same_report_gives_the_same_bytes() -> None:
    assert json_.render(factories.report()) == json_.render(factories.report())


def test_not_a_number_becomes_null() -> None:
    report = factories.report(step=replace(StepNumbers(), wall_ms=float("nan"), steady_ms=float("inf"), syncs=2))
    step = json.loads(json_.render(report), parse_constant=lambda c: pytest.fail(c))["step"]
    assert (step["wall_ms"], step["steady_ms"], step["syncs"]) == (None, None, 2)


def test_code_keeps_its_lines_and_names_do_not() -> None:
    value = json.loads(json_.render(factories.hostile()))
    assert "\n" in value["findings"][0]["fix"]
    assert "\n" not in value["findings"][0]["title"]


def test_hostile_names_do_nothing() -> None:
    raw = json_.render(factories.hostile())
    assert raw.isascii()
    assert len(raw) < 100_000

    def texts(value: object):
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from (t for k, v in value.items() for t in (k, *texts(v)))
        elif isinstance(value, list):
            yield from (t for v in value for t in texts(v))

    assert all(c.isprintable() or c == "\n" for t in texts(json.loads(raw)) for c in t)


def test_only_the_model_is_written() -> None:
    with pytest.raises(TypeError, match="not a report"):
        json_.to_dict(3)
