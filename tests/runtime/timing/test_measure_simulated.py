"""Measuring against a simulated GPU: the truth is known, so verdicts and times can be checked exactly."""

from __future__ import annotations

import pytest
from simulated_gpu import GAP_US, FakeBackend, FakeGpu

from gapless.runtime.timing import Options
from gapless.runtime.timing.compare import compare_with
from gapless.runtime.timing.measure import measure_with
from gapless.runtime.timing.subject import Subject

QUICK = Options(budget_s=0.5, warmup_s=0.01, kernels=True)


def run(fn, gpu: FakeGpu, options: Options = QUICK, **kind):
    backend = FakeBackend(gpu, **kind)
    return measure_with(backend, Subject(fn), options)


def test_gpu_bound_kernel():
    gpu = FakeGpu()
    m = run(lambda: gpu.launch(80.0), gpu)
    assert m.verdict.kind == "gpu-bound"
    assert m["t_gpu"].us == pytest.approx(80 + GAP_US, rel=0.02)
    assert m["t_enq"].us == pytest.approx(4.0, rel=0.05)
    assert m["t_lat"].us > m["t_gpu"].us
    assert m.headline.id == "t_gpu"
    assert m.ok


@pytest.mark.parametrize("kernel_us", [0.9, 3.0, 40.0])
def test_short_calls_share_an_interval_long_enough_for_the_events_own_time(kernel_us: float):
    gpu = FakeGpu()
    m = run(lambda: gpu.launch(kernel_us), gpu)
    assert m["t_gpu"].us * m["t_gpu"].calls_per_sample >= 395
    assert m["t_gpu"].us == pytest.approx(kernel_us + GAP_US, rel=0.01)


@pytest.mark.parametrize("delay_us", [0, 50, 200, 500])
def test_gpu_time_does_not_depend_on_host_delay(delay_us: float):
    gpu = FakeGpu()

    def subject() -> None:
        gpu.host_work(delay_us)
        gpu.launch(3.2)

    m = run(subject, gpu)
    assert m["t_gpu"].us == pytest.approx(3.2 + GAP_US, rel=0.03)
    assert m["t_pair"].us > m["t_gpu"].us + delay_us * 0.9, "the usual event pair does show the delay"
    assert m.verdict.kind == ("launch-bound" if delay_us else m.verdict.kind)


def test_launch_bound_calls_report_the_loop_and_the_graph():
    gpu = FakeGpu()

    def many() -> None:
        for _ in range(20):
            gpu.launch(1.5, host_us=6.0)

    m = run(many, gpu)
    assert m.verdict.kind == "launch-bound"
    assert m.headline.id == "t_tput"
    assert m.us == pytest.approx(120, rel=0.05)
    assert m["t_gpu"].us == pytest.approx(20 * (1.5 + GAP_US), rel=0.05)
    assert m["t_graph"].us == pytest.approx(m["t_gpu"].us, rel=0.1)
    assert "CUDA graph" in m.verdict.advice


def test_marginal_between_the_two():
    gpu = FakeGpu()
    m = run(lambda: gpu.launch(10.0, host_us=9.0), gpu)
    assert m.verdict.kind == "marginal"


def test_sync_inside_is_found_before_any_blocker_is_used():
    gpu = FakeGpu()

    def subject() -> None:
        assert not any(item.gate for item in gpu.streams["main"]), "called behind a closed gate"
        gpu.launch(50.0)
        gpu.synchronize("item")
        gpu.launch(50.0)

    m = run(subject, gpu)
    assert m.verdict.kind == "host-serialised"
    assert m.check("H04").status == "warn"
    assert "user.py:7" in m.check("H04").evidence
    assert not m["t_gpu"].known and not m["t_enq"].known
    assert gpu.timeouts == 0


def test_wait_that_no_detector_sees_is_found_with_a_blocker_that_ends_by_itself():
    gpu = FakeGpu()

    def subject() -> None:
        gpu.launch(50.0)
        gpu.synchronize()
        gpu.launch(5.0)

    m = run(subject, gpu)
    assert m.verdict.kind == "host-serialised"
    assert m.check("H04").status == "warn"
    assert gpu.timeouts == 0
    assert not m["t_gpu"].known


def test_work_on_another_stream_fails_the_check_and_moves_the_headline():
    gpu = FakeGpu()

    def subject() -> None:
        gpu.launch(10.0)
        gpu.launch(400.0, stream="side")

    m = run(subject, gpu)
    assert m.check("H03").status == "fail"
    assert m.headline.id == "t_lat"
    assert m.us > 400


def test_cold_and_warm_cache_are_told_apart():
    gpu = FakeGpu()
    m = run(lambda: gpu.launch(40.0, cold_us=60.0), gpu)
    assert m["t_gpu"].us == pytest.approx(40 + GAP_US, rel=0.02)
    assert m["t_gpu_cold"].us == pytest.approx(60, rel=0.05)
    assert m["t_gpu_again"].us == pytest.approx(41, rel=0.05)
    assert m.check("H17").status == "pass" and "1.4" in m.check("H17").evidence


def test_warm_option_leaves_cold_out():
    gpu = FakeGpu()
    m = run(lambda: gpu.launch(40.0), gpu, Options(l2="warm", budget_s=0.5, warmup_s=0.01))
    assert "t_gpu_cold" not in m.quantities


def test_more_launches_than_the_queue_holds():
    gpu = FakeGpu()

    def subject() -> None:
        for _ in range(1500):
            gpu.launch(2.0, host_us=6.0)

    m = run(subject, gpu, Options(budget_s=0.5, warmup_s=0.01, min_samples=10))
    assert gpu.timeouts == 0
    assert not m["t_gpu"].known
    assert m.verdict.kind == "launch-bound"


def test_no_gpu_work_is_said():
    gpu = FakeGpu()
    m = run(lambda: gpu.host_work(30.0), gpu)
    assert m.verdict.kind == "host-only"
    assert m["t_tput"].us == pytest.approx(30, rel=0.05)


def test_sleep_blocker_gives_the_same_gpu_time():
    gpu = FakeGpu()
    m = run(lambda: gpu.launch(80.0), gpu, blocker="sleep")
    assert m["t_gpu"].us == pytest.approx(80 + GAP_US, rel=0.02)
    assert gpu.flag_holds == 0


def test_a_graph_that_lost_kernels_is_not_timed():
    gpu = FakeGpu()
    m = run(lambda: gpu.launch(80.0), gpu, lost_nodes=3)
    assert m.check("H14").status == "fail"
    assert not m["t_graph"].known and "H14" in m["t_graph"].why


def test_exception_inside_the_call_opens_the_gate():
    gpu = FakeGpu()
    calls = 0

    def subject() -> None:
        nonlocal calls
        calls += 1
        gpu.launch(80.0)
        if gpu.flag_holds > 3:
            raise RuntimeError("from the subject")

    with pytest.raises(RuntimeError, match="from the subject"):
        run(subject, gpu)
    gpu.synchronize()
    assert gpu.timeouts == 0, "an unreleased gate would time out here"


def test_forced_headline_is_said():
    gpu = FakeGpu()
    m = run(lambda: gpu.launch(80.0), gpu, Options(headline="t_lat", budget_s=0.5, warmup_s=0.01))
    assert m.headline.forced and m.headline.id == "t_lat"
    assert "forced" in str(m)


def test_compare_finds_the_faster_one_in_gpu_time():
    gpu = FakeGpu()
    subjects = {"a": Subject(lambda: gpu.launch(80.0)), "b": Subject(lambda: gpu.launch(76.0))}
    c = compare_with(FakeBackend(gpu), subjects, QUICK)
    assert c.quantity == "t_gpu"
    assert c["b"].verdict == "FASTER"
    assert c["b"].ratio == pytest.approx(0.95, abs=0.01)
    assert "confirmed in clock cycles" in str(c)


def test_compare_says_same_and_undecided():
    gpu = FakeGpu()
    subjects = {"a": Subject(lambda: gpu.launch(80.0)), "b": Subject(lambda: gpu.launch(80.0))}
    assert compare_with(FakeBackend(gpu), subjects, QUICK)["b"].verdict == "SAME"
    noisy = FakeGpu(noise=0.3)
    subjects = {"a": Subject(lambda: noisy.launch(900.0)), "b": Subject(lambda: noisy.launch(910.0))}
    decision = compare_with(FakeBackend(noisy), subjects, Options(budget_s=0.01, warmup_s=0.01))["b"]
    assert decision.verdict == "UNDECIDED"


def test_compare_of_launch_bound_functions_uses_the_loop():
    gpu = FakeGpu()
    subjects = {"a": Subject(lambda: gpu.launch(2.0, host_us=8.0)), "b": Subject(lambda: gpu.launch(2.0, host_us=5.0))}
    c = compare_with(FakeBackend(gpu), subjects, QUICK)
    assert c.quantity == "t_tput"
    assert c["b"].verdict == "FASTER"
