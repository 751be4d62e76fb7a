"""Do our tables reproduce the step-time breakdown that kineto's TensorBoard plugin prints, to its last digit?

Its definition, computed here with our interval algebra: a step begins at its marker, or where the step before it ended
if that is later, and lasts until its marker and all GPU work launched inside the marker have ended. Every instant of a
step belongs to the first kind in `PRIORITY` that is active then, on any thread or stream; to none, it is `Other`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import gapless
from gapless.api import Trace
from gapless.tables.intervals import Set, as_ns, clip, covered, intersect, merge, total
from gapless.tables.segments import paint, split, sums

FILES = ["kineto/resnet50_num_workers_0.json.gz", "kineto/resnet50_num_workers_4.json.gz"]
PRIORITY = ("Kernel", "Memcpy", "Memset", "Runtime", "DataLoader", "CPU", "Other")


@pytest.fixture(scope="module", params=FILES)
def traced(request: pytest.FixtureRequest, shared: Path) -> tuple[Trace, dict[str, Any]]:
    wanted = json.loads((shared / "public" / "goldens.json").read_text())["kineto_step_breakdown_us"]
    assert sorted(wanted) == FILES
    return gapless.load(shared / "public" / request.param), wanted[request.param]


def spans(frame: pl.LazyFrame) -> Set:
    rows = frame.select("start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")).collect()
    return merge(as_ns(rows["start_ns"].to_numpy()), as_ns(rows["end_ns"].to_numpy()))


def of_kind(t: Trace) -> list[Set]:
    """The instants of every kind in `PRIORITY` but the last."""
    name = pl.col("name").cast(pl.String)
    loads = name.str.contains(r"^enumerate\(DataLoader\)#.*\.__next__$")
    memset = t.activities.filter(pl.col("kind").cast(pl.String) == "memset")
    ops = t.ops.filter(~name.str.starts_with("ProfilerStep#"))
    return [spans(f) for f in (t.kernels, t.copies, memset, t.calls, ops.filter(loads), ops.filter(~loads))]


def plugin_steps(t: Trace) -> list[tuple[int, int]]:
    """The steps as the plugin bounds them."""
    calls = t.calls.select("call", c0="start_ns", c1=pl.col("start_ns") + pl.col("dur_ns"))
    work = t.activities.select("call", a1=pl.col("start_ns") + pl.col("dur_ns")).join(calls, on="call").collect()
    found: list[tuple[int, int]] = []
    for low, high in t.steps.select("start_ns", "end_ns").collect().iter_rows():
        inside = work.filter((pl.col("c0") >= low) & (pl.col("c1") <= high))
        found.append((max([low, *(end for _, end in found[-1:])]), max([high, *inside["a1"].to_list()])))
    return found


def test_every_instant_of_a_step_has_one_owner(traced: tuple[Trace, dict[str, Any]]) -> None:
    t, wanted = traced
    steps = plugin_steps(t)
    low, high = steps[0][0], steps[-1][1]
    whole: Set = (as_ns([low]), as_ns([high]))
    line = paint([(s, label) for label, s in enumerate([*of_kind(t), whole])], low, high)
    piece, start, end = split(line, as_ns([a for a, _ in steps]), as_ns([b for _, b in steps]))
    spent = sums((start, end, line[2][piece]), len(PRIORITY))
    assert int(spent.sum()) == sum(b - a for a, b in steps)
    found = {kind: round(int(ns) / len(steps) / 1e3) for kind, ns in zip(PRIORITY, spent, strict=True)}
    assert found == {kind: wanted[kind] for kind in PRIORITY}


def test_steps_are_as_long_as_the_plugin_says(traced: tuple[Trace, dict[str, Any]]) -> None:
    t, wanted = traced
    lengths = [b - a for a, b in plugin_steps(t)]
    assert round(sum(lengths) / len(lengths) / 1e3) == wanted["avg_step"]
    if "steps" in wanted:
        assert [ns / 1e3 for ns in lengths] == wanted["steps"]


def test_use_of_the_gpu_in_percent(traced: tuple[Trace, dict[str, Any]]) -> None:
    t, wanted = traced
    steps = plugin_steps(t)
    low, high = steps[0][0], steps[-1][1]
    inside = clip(spans(t.kernels), low, high)
    assert round(100 * total(inside) / (high - low), 2) == wanted["gpu_util_pct"]
    kernels = t.kernels.with_columns(
        blocks=pl.col("grid_x") * pl.col("grid_y") * pl.col("grid_z"), end_ns=pl.col("start_ns") + pl.col("dur_ns")
    ).collect()
    seen = covered((as_ns([low]), as_ns([high])), as_ns(kernels["start_ns"]), as_ns(kernels["end_ns"]))
    assert seen.sum() == total(inside), "one stream: kernels do not overlap, so time may be summed"
    processors = t.meta.devices[0].num_sms
    filled = (kernels["blocks"] / processors).clip(0, 1)
    assert round(100 * float((filled * seen).sum()) / (high - low), 2) == wanted["sm_eff_pct"]
    assert round(float((kernels["occupancy_pct"] * seen).sum()) / int(seen.sum()), 2) == wanted["occ_pct"]


def test_our_own_account_agrees_on_kernels_and_copies(traced: tuple[Trace, dict[str, Any]]) -> None:
    """Ours cuts steps at the GPU's phase and leaves the last one out, so per step it may differ, but by little."""
    t, wanted = traced
    (account,) = gapless.report(t).to_dict()["accounting"]
    used = t.steps.filter(pl.col("used")).collect().height
    per_step = {s: sum(p["ns"] for p in account["parts"] if p["state"] == s) / used / 1e3 for s in ("compute", "copy")}
    assert per_step["compute"] == pytest.approx(wanted["Kernel"] + wanted["Memset"], rel=0.02)
    assert intersect(spans(t.kernels), spans(t.copies))[0].size == 0
    assert per_step["copy"] == pytest.approx(wanted["Memcpy"], rel=0.1)
