"""T1: 64 x 64 matmul and add, cold: the host bounds it, the first step is cold, and the profiler's totals are ours.

The text's first step loses 228 us before its first operator. The H200's loses them inside `aten::mm`, before the first
launch, and fewer of them: the file wins.
"""

from __future__ import annotations

import polars as pl
import pytest

from .recorded import Recorded, host_work, left_out, parts, profilers

COLD = "article/mm64_cold_eager"

COUNTED_TWICE = (
    "mm64_cold_eager", "mm64_warm_eager", "mm64_3d", "mm64_compile", "mm4096_cold_eager", "mm4096_warm_eager",
    "mm4096_active20", "mm4096_compile", "linear_eager", "linear_compile", "geglu_eager", "geglu_compile",
    "geglu_cudagraph", "attn_naive", "attn_inplace", "attn_math", "attn_efficient", "attn_flash", "attn_cudnn",
    "graph_breaks", "many_launches",
)  # fmt: skip
"""Not those with sync records or overhead rows, which the profiler's table counts as device time, nor other threads'."""


def test_the_verdict_is_the_host(h200: Recorded) -> None:
    report = h200.report(COLD)
    assert report["verdict"]["bound"] == "host"
    spent = parts(report)
    idle = sum(ns for (state, _), ns in spent.items() if state == "idle")
    assert idle > 0.9 * sum(spent.values())
    assert {cause for _, cause in list(spent)[1:4]} == {"python", "dispatch", "launch"}
    assert report["step"]["syncs"] == 0
    assert report["findings"] == [], "a step of 0.1 ms that only dispatches has no fault to name"


def test_the_gpu_works_for_a_few_percent_of_what_the_table_calls_cpu_time(h200: Recorded) -> None:
    t, table = h200.trace(COLD), h200.tables()["mm64_cold_eager"]
    assert 0.01 < t.kernels.collect()["dur_ns"].sum() / 1e3 / table["self_cpu_us"] < 0.03


def test_cpu_time_of_the_table_is_the_steps_and_the_profilers_own_wait(h200: Recorded) -> None:
    """So what the host worked is the table's total without the waits."""
    for name, table in h200.tables().items():
        t = h200.trace(f"article/{name}")
        steps = t.steps.select(pl.col("end_ns") - pl.col("start_ns")).sum().collect().item()
        waited = int(profilers(t)["dur_ns"].sum())
        assert (steps + waited) / 1e3 == pytest.approx(table["self_cpu_us"], abs=1e-3), name
    assert sum(host_work(h200.trace(COLD))) / 1e3 == pytest.approx(
        h200.tables()["mm64_cold_eager"]["self_cpu_us"] - int(profilers(h200.trace(COLD))["dur_ns"].sum()) / 1e3
    )


@pytest.mark.parametrize("name", COUNTED_TWICE)
def test_device_time_of_the_table_is_ours_counted_twice(name: str, h200: Recorded) -> None:
    """Once as an operator's and once as the kernel's own; kernels without an operator, strays of before, once."""
    work = h200.trace(f"article/{name}").activities.collect()
    linked = work.filter(pl.col("call").is_not_null())["dur_ns"].sum()
    total = (2 * linked + (work["dur_ns"].sum() - linked)) / 1e3
    assert total == pytest.approx(h200.tables()[name]["self_device_us"], abs=1e-3)


def test_the_first_step_is_cold_and_the_time_goes_before_its_first_launch(h200: Recorded) -> None:
    t = h200.trace(COLD)
    why = left_out(h200.report(COLD))
    assert list(why) == ["ProfilerStep#2"]
    assert why["ProfilerStep#2"].startswith("first step: host work 0.2")
    first, *others = host_work(t)
    assert first > 2 * max(others)
    mm = t.ops.filter(pl.col("name").cast(pl.String) == "aten::mm").select("step", began="start_ns")
    launch = t.launches.filter(pl.col("op_name").cast(pl.String) == "aten::mm").select("step", "start_ns")
    before = mm.join(launch, on="step").sort("step").select(pl.col("start_ns") - pl.col("began")).collect()
    cold, *warm = before.to_series().to_list()
    assert cold > 2.4 * max(warm)
