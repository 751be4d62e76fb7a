"""T2: with three calls before recording the text flags no step. The H200's 64 x 64 run does start slowly; the file wins.

Recording itself begins in that step, so its host work is 2.3 times the others' although nothing is loaded or chosen.
"""

from __future__ import annotations

import pytest

from .recorded import Recorded, host_work, left_out, trust


def test_warming_up_helps_and_is_not_enough_at_64(h200: Recorded) -> None:
    report = h200.report("article/mm64_warm_eager")
    why = left_out(report)
    assert list(why) == ["ProfilerStep#2"]
    assert trust(report, "cold-step") == ("note", f"left out of the numbers: ProfilerStep#2: {why['ProfilerStep#2']}")
    cold, warm = host_work(h200.trace("article/mm64_cold_eager")), host_work(h200.trace("article/mm64_warm_eager"))
    assert warm[0] > 2 * max(warm[1:]), "why it is left out"
    assert warm[0] < 0.7 * cold[0], "less slow than without warming up"


def test_the_step_is_what_the_steady_step_takes(h200: Recorded) -> None:
    report = h200.report("article/mm64_warm_eager")
    steady = {s["name"]: (s["end_ns"] - s["start_ns"]) / 1e6 for s in report["window"]["steps"]}
    assert report["step"]["wall_ms"] == pytest.approx(steady["ProfilerStep#3"])


def test_at_4096_only_the_run_without_warming_up_has_a_cold_step(h200: Recorded) -> None:
    assert list(left_out(h200.report("article/mm4096_cold_eager"))) == ["ProfilerStep#2"]
    warm = h200.report("article/mm4096_warm_eager")
    assert left_out(warm) == {}
    assert trust(warm, "cold-step") == ("ok", "3 steps, none cold")
    first, *others = host_work(h200.trace("article/mm4096_warm_eager"))
    assert first < 1.5 * sum(others) / len(others)
