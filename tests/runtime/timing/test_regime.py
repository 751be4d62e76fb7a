"""The verdict, from times alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.runtime.timing.regime import Times, disagreements, judge

us = st.floats(1.0, 1e5)


@given(us, us)
def test_consistent_times_are_judged_by_their_ratio(enq, gpu):
    verdict = judge(Times(enq, gpu, max(enq, gpu), gpu + enq), on_gpu=True, gpu_work=True, waits="")
    ratio = enq / gpu
    expected = "launch-bound" if ratio >= 1 else "marginal" if ratio >= 0.7 else "gpu-bound"
    assert verdict.kind == expected
    assert verdict.ratio == pytest.approx(ratio)


@given(us, us)
def test_a_loop_much_slower_than_both_sides_is_inconsistent(enq, gpu):
    times = Times(enq, gpu, 1.5 * max(enq, gpu) + 2, enq + gpu)
    assert judge(times, on_gpu=True, gpu_work=True, waits="").kind == "inconsistent"
    assert len(disagreements(times)) == 1


def test_latency_below_gpu_time_is_inconsistent():
    assert judge(Times(5, 100, 100, 60), on_gpu=True, gpu_work=True, waits="").kind == "inconsistent"


@given(us, us)
def test_waiting_inside_overrules_everything(enq, gpu):
    verdict = judge(Times(enq, gpu, enq, gpu), on_gpu=True, gpu_work=True, waits="train.py:7")
    assert verdict.kind == "host-serialised" and "train.py:7" in verdict.sentence


def test_without_gpu_or_work_only_host_times_are_claimed():
    assert judge(Times(), on_gpu=False, gpu_work=False, waits="").kind == "host-only"
    assert judge(Times(3, 0.1, 3, 4), on_gpu=True, gpu_work=False, waits="").kind == "host-only"
    assert judge(Times(None, None, 3, 4), on_gpu=True, gpu_work=True, waits="").kind == "unknown"


def test_graph_advice_prefers_what_was_measured():
    launch = {"on_gpu": True, "gpu_work": True, "waits": ""}
    assert "measured" in judge(Times(50, 5, 50, 60, graph=6.5), **launch).advice
    assert "predicted 9" in judge(Times(50, 5, 50, 60, graph_floor=9), **launch).advice
    assert "graph" not in judge(Times(50, 5, 50, 60), **launch, graph_ok=False).advice
