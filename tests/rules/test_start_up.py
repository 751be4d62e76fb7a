"""Start-up work inside the window is told apart from steady work: it is a remark on trust, never advice."""

from __future__ import annotations

import pytest
from tests.rules.factory import MUL, Script, context_of, f32, record, window

from gapless.analyses.study import study
from gapless.analyses.trust import trust_checks
from gapless.ingest.raw import RawTrace
from gapless.model.report import TrustCheck
from gapless.replay.predict import predict
from gapless.rules import allocator_churn
from gapless.rules.outcome import Clean, Found

SHAPE = [f32(1024, 1024)]


def cold_check(raw: RawTrace) -> TrustCheck:
    return next(check for check in trust_checks(study(raw)) if check.check == "cold-step")


def work(t: Script) -> None:
    for _ in range(20):
        t.simple("aten::mul", SHAPE, MUL, 10)


def test_a_window_that_creates_a_context_says_so_and_blames_no_allocation() -> None:
    def program(t: Script) -> None:
        t.call("cudaDeviceGetStreamPriorityRange", 2_000_000)
        work(t)
        with t.op("aten::conv2d"):
            t.call("cudaFree", 900_000)
            for _ in range(12):
                t.call("cudaMalloc", 2_000)
                t.call("cudaFree", 10)
        work(t)

    raw = window(program)
    check = cold_check(raw)
    assert check.status == "warn"
    assert "the window holds the program's start: 2.9 of its" in check.detail
    assert isinstance(allocator_churn.check(context_of(raw)), Clean)


def test_even_churn_in_one_window_is_found() -> None:
    def program(t: Script) -> None:
        for _ in range(12):
            t.simple("aten::mul", SHAPE, MUL, 10)
            with t.op("aten::empty"):
                t.call("cudaMalloc", 150)
            t.call("cudaFree", 200)

    raw = window(program)
    assert cold_check(raw).status == "unknown"
    assert isinstance(allocator_churn.check(context_of(raw)), Found)


def test_the_last_marker_is_no_step_where_it_was_cut_short() -> None:
    def program(t: Script) -> None:
        with t.mark("ProfilerStep#1"):
            work(t)
        with t.mark("ProfilerStep#2"):
            t.simple("aten::mul", SHAPE, MUL, 10)

    raw = window(program)
    p = predict(study(raw))
    assert p.recorded is not None
    assert p.recorded.period_ns > 20 * 10_000, "the step that launched twenty kernels, not the one that launched one"
    check = cold_check(raw)
    assert check.status == "warn"
    assert "no warm step is recorded (ProfilerStep#1: first step" in check.detail


@pytest.mark.parametrize("steps", [2, 3, 5])
def test_a_whole_last_marker_is_a_step(steps: int) -> None:
    raw = record(work, steps=steps)
    p = predict(study(raw))
    assert p.program is not None
    assert p.program.aligned_steps == steps
