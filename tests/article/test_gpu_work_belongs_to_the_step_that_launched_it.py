"""Whose is a kernel that runs when its step's marker is long over, and which call, operator and thread does it lead to?"""

from __future__ import annotations

import polars as pl

from .recorded import Recorded


def test_kernels_run_late_and_are_still_their_own_steps(h200: Recorded) -> None:
    """4096: the host finishes all 20 steps when the GPU is in the eighth."""
    t = h200.trace("article/mm4096_active20")
    steps = t.steps.select("step", began="start_ns", ended="end_ns")
    calls = t.calls.select("call", called="start_ns", of_call="step")
    work = t.activities.join(calls, on="call").join(steps, on="step").collect()
    assert work.height == t.activities.collect().height == 60
    assert (work["step"] == work["of_call"]).all()
    assert ((work["began"] <= work["called"]) & (work["called"] < work["ended"])).all()
    assert work.group_by("step").len()["len"].to_list() == [3] * 20
    late = work.filter(pl.col("start_ns") >= pl.col("ended"))
    assert late.height > 50, "nearly all run after their marker has ended"
    by_time = [int((steps.collect()["began"] <= at).sum()) - 1 for at in work["start_ns"]]
    assert sum(a != b for a, b in zip(by_time, work["step"], strict=True)) > 50, "by time they would be another's"


def test_one_graph_launch_leads_to_all_its_kernels(h200: Recorded) -> None:
    t = h200.trace("article/geglu_cudagraph")
    graphs = t.launches.filter(pl.col("call_class").cast(pl.String) == "graph_launch").collect()
    assert graphs["activities"].to_list() == [6, 6, 6]
    assert graphs["step"].to_list() == [0, 1, 2]
    inside = t.activities.filter(pl.col("call").is_in(graphs["call"].to_list())).collect()
    assert inside.group_by("call").len()["len"].to_list() == [6, 6, 6]
    assert set(inside["op_name"].cast(pl.String)) == {"Torch-Compiled Region: 2/1"}
    report = h200.report("article/geglu_cudagraph")
    assert (report["step"]["launches"], report["step"]["graph_launches"]) == (2, 1)
    assert report["step"]["kernels"] == t.kernels.filter(pl.col("step") == 1).collect().height


def test_backward_leads_to_the_forward_operator_of_the_other_thread(h200: Recorded) -> None:
    t = h200.trace("odd/cycle1")
    ops = t.ops.with_columns(pl.col("name").cast(pl.String)).collect()
    nodes = ops.filter(pl.col("name").str.ends_with("Backward0"), ~pl.col("name").str.contains(":"))
    forward = ops.select("name", "seq", "thread", "start_ns", op=pl.col("op"))
    pairs = nodes.join(forward, left_on="forward_op", right_on="op", suffix="_forward")
    assert pairs.height == nodes.height > 20
    assert (pairs["seq"] == pairs["seq_forward"]).all()
    assert (pairs["thread"] != pairs["thread_forward"]).all()
    assert (pairs["start_ns"] > pairs["start_ns_forward"]).all()
    named = dict(pairs.select("name", "name_forward").iter_rows())
    assert named["AddmmBackward0"] == "aten::addmm"
    assert named["GeluBackward0"] == "aten::gelu"
    assert named["MeanBackward0"] == "aten::mean"


def test_two_threads_launch_and_each_keeps_its_own(h200: Recorded) -> None:
    """The markers are on a third thread, which launches nothing; a step is what runs until the next begins."""
    t, report = h200.trace("article/two_threads"), h200.report("article/two_threads")
    threads = t.calls.select("call", "thread")
    counts = t.kernels.join(threads, on="call").group_by("step", "thread").len().sort("step", "thread").collect()
    assert counts["len"].to_list() == [61] * 6
    assert counts["thread"].n_unique() == 2
    roles = [host["role"] for host in report["host"]]
    assert roles == ["main", "other", "other"]
    states = [{part["state"] for part in host["parts"]} for host in report["host"]]
    assert "launch" not in states[0]
    assert all("launch" in s and "outside" in s for s in states[1:])
    (idle,) = [p for p in report["accounting"][0]["parts"] if p["cause"] == "untraced"]
    assert idle["share"] > 0.3, "no operator of theirs was recorded, so between their calls nothing is known"
