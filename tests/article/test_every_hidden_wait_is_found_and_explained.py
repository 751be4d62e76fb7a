"""T10: `.item()`, `.cpu()`, `nonzero`, an index by a mask, `print`: each wait is found, with its operator, its line where
stacks were recorded, what it waited for, and the GPU's idleness after it.

Each table below is what the program that was recorded does in a step. No recording holds a bare `nonzero` or a printed
tensor with stacks: an index by a mask calls the first, and the print has operators only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

import gapless
from gapless.api import Trace

from .recorded import Recorded

OWN = Path(__file__).resolve().parents[1] / "data" / "pairs" / "host_work"


class Wait(NamedTuple):
    """One site: the operator that the program called, the operator inside it, its line, how often a step."""

    outer: str
    inner: str
    line: int | None
    a_step: int


PROGRAMS = {
    "pairs/item_sync.before.stack": [
        Wait("aten::is_nonzero", "aten::_local_scalar_dense", 80, 1),
        Wait("aten::item", "aten::_local_scalar_dense", 80, 1),
    ],
    "pairs/bool_mask.before.stack": [Wait("aten::index", "aten::nonzero", 103, 20)],
    "article/copies": [Wait("aten::copy_", "aten::copy_", None, 4), Wait("aten::item", "aten::_local_scalar_dense", None, 1)],
}  # fmt: skip


def waits(t: Trace) -> pl.DataFrame:
    """The program's waits with the operators round them."""
    inner = t.calls.select("call", pl.col("op_name").cast(pl.String))
    texts = pl.col("origin", "top_op_name", "name").cast(pl.String)
    return t.syncs.with_columns(texts).filter(pl.col("origin") != "profiler").join(inner, on="call").collect()


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_wait_has_its_operator_and_its_place(name: str, h200: Recorded) -> None:
    t, expected = h200.trace(name), PROGRAMS[name]
    found = waits(t)
    assert set(found["origin"]) == {"hidden"}
    counts = {row[:3]: row[3] for row in found.group_by("step", "top_op_name", "op_name").len().iter_rows()}
    assert counts == {(step, w.outer, w.inner): w.a_step for step in range(3) for w in expected}
    report = h200.report(name)
    assert report["step"]["syncs"] == sum(w.a_step for w in expected)
    rows = [s for s in report["syncs"] if s["origin"] == "hidden"]
    used = sum(s["used"] for s in report["window"]["steps"])
    for w in expected:
        here = [s for s in rows if s["op"] == w.outer]
        assert sum(s["count"] for s in here) == used * w.a_step
        assert {(s["file"], s["line"]) for s in here} == {("record.py", w.line) if w.line else (None, None)}


def test_a_scalar_read_waits_for_its_own_copy_and_leaves_the_gpu_idle(h200: Recorded) -> None:
    """The GPU had caught up: the wait is two copies of a number long, and what costs is the idleness after it."""
    t = h200.trace("pairs/item_sync.before.stack")
    found = waits(t)
    assert set(found["name"]) == {"cudaStreamSynchronize"}
    work = t.activities.with_columns(pl.col("name").cast(pl.String)).collect()
    for row in found.to_dicts():
        copy = work.row(row["waited_activity"], named=True)
        assert copy["name"] == "Memcpy DtoH (Device -> Pinned)"
        assert copy["size_bytes"] <= 4
        assert copy["step"] == row["step"]
        assert row["gpu_work_ns"] == 0
        assert row["copy_ns"] <= copy["dur_ns"]
        following = work.filter(pl.col("start_ns") >= copy["start_ns"] + copy["dur_ns"])["start_ns"].min()
        idle = 0 if following is None else following - copy["start_ns"] - copy["dur_ns"]
        assert row["idle_after_ns"] == idle
    assert found["idle_after_ns"].sum() > 5 * found["dur_ns"].sum()


def test_copying_to_the_cpu_blocks_twice_and_the_first_is_the_copy(h200: Recorded) -> None:
    """`.cpu()` is a copy to pageable memory, which blocks by itself, and a synchronisation that finds nothing left."""
    t = h200.trace("pairs/feature_readback.before.stack")
    found = waits(t).sort("start_ns")
    assert found["name"].to_list() == ["cudaMemcpyAsync", "cudaStreamSynchronize"] * 3
    assert set(found["top_op_name"]) == {"aten::to"}
    copy, after = found.filter(pl.col("name") == "cudaMemcpyAsync"), found.filter(pl.col("name") != "cudaMemcpyAsync")
    assert copy["copy_ns"].sum() > 0.9 * copy["dur_ns"].sum()
    assert (after["overhead_ns"] == after["dur_ns"]).all()
    assert after["dur_ns"].sum() < 1e-3 * copy["dur_ns"].sum()
    rows = h200.report("pairs/feature_readback.before.stack")["syncs"]
    assert {(s["op"], s["file"], s["line"]) for s in rows if s["origin"] == "hidden"} == {("aten::to", "more.py", 11)}
    assert rows[0]["waited_for"][0].startswith("2 x Memcpy DtoH (Device -> Pageable)")


def test_a_wait_for_a_busy_gpu_is_its_work() -> None:
    """`.item()` behind 10 ms of products: GPU work being waited for, with next to nothing to be won."""
    report = gapless.report(gapless.load(OWN / "sync_gpu_bound.before.json.gz")).to_dict()
    (row,) = [s for s in report["syncs"] if s["origin"] == "hidden"]
    assert (row["op"], row["count"]) == ("aten::item", 2)
    assert row["waited"]["gpu_work_ms"] > 0.99 * row["wall_ms"]
    assert row["waited_for"][0].startswith("12 x gemm bf16")
    assert row["idle_after_ms"] < 0.02 * row["wall_ms"]
    assert "hidden-sync" not in report["checks"]["found"]


def test_printing_a_tensor_is_two_dozen_waits() -> None:
    """To choose its format Python asks for each number: those that are finite, the largest, each alone."""
    t = gapless.load(OWN / "print_tensor.before.json.gz")
    found = waits(t)
    a_step = found.group_by("step", "top_op_name").len().sort("step", "len", "top_op_name")
    counts: dict[int, dict[str, int]] = {}
    for step, op, count in a_step.iter_rows():
        counts.setdefault(step, {})[op] = count
    assert list(counts) == [0, 1, 2]
    for ops in counts.values():
        assert ops == {"aten::is_nonzero": 12, "aten::item": 8, "aten::masked_select": 1, "aten::to": 2}
    assert set(found["origin"]) == {"hidden"}
    after = gapless.load(OWN / "print_tensor.after.json.gz")
    assert waits(after).height == 0


@pytest.mark.parametrize("name", [*PROGRAMS, "pairs/feature_readback.before.stack", "article/mm4096_shapes_mem_sync"])
def test_the_parts_of_a_wait_add_up(name: str, h200: Recorded) -> None:
    rows: list[dict[str, Any]] = h200.trace(name).syncs.collect().to_dicts()
    assert rows
    for row in rows:
        assert row["gpu_work_ns"] + row["copy_ns"] + row["untraced_ns"] + row["overhead_ns"] == row["dur_ns"]
