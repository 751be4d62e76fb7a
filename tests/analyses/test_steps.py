"""Where steps begin and end, which count, and whose a launch is."""

from __future__ import annotations

import pytest

from gapless.analyses.links import link
from gapless.analyses.steps import WHOLE_WINDOW, Steps, find_steps, mark_cold, pick_step
from gapless.analyses.study import StudyOptions
from gapless.model.errors import UsageError
from gapless.tables.intervals import as_ns

from .literal import AUTOGRAD, OTHER, call, frame, mark, op, raw, steps, studied, work


def found(pattern: str | None = None, **tables: object) -> Steps:
    trace = raw(**tables)  # type: ignore[arg-type]
    return find_steps(trace, link(trace), pattern)


def test_a_step_is_a_profiler_step_and_lasts_until_the_next_begins() -> None:
    s = found(ops=[mark(100, 200, "ProfilerStep#3"), mark(220, 300, "ProfilerStep#4"), mark(0, 900, "other")])
    assert (s.marker, s.thread, s.names) == ("ProfilerStep", 0, ["ProfilerStep#3", "ProfilerStep#4"])
    assert (s.start.tolist(), s.end.tolist(), s.until.tolist()) == ([100, 220], [200, 300], [220, 300])


def test_a_call_belongs_to_the_last_step_begun_and_work_to_the_step_that_launched_it() -> None:
    s = found(
        ops=[mark(100, 200, "ProfilerStep#0"), mark(220, 300, "ProfilerStep#1")],
        calls=[
            call(50, 60, correlation=1),
            call(100, 110, correlation=2),
            call(210, 215, correlation=3),
            call(220, 225, correlation=4, thread=OTHER),
            call(300, 310, correlation=5),
        ],
        activities=[work(400, 410, 1), work(420, 430, 2), work(440, 450, 3), work(460, 470, 4), work(480, 490, 5),
                    work(120, 130, 77)],
    )  # fmt: skip
    # By (thread, start): the call on the other thread is the last row.
    assert s.step_of_call.tolist() == [-1, 0, 0, -1, 1]
    assert s.step_of_activity.tolist() == [-1, -1, 0, 0, 1, -1]


def test_a_pattern_names_other_markers_and_nested_matches_count_once() -> None:
    ops = [mark(0, 100, "train_batch 0"), mark(10, 40, "train_batch inner"), mark(100, 180, "train_batch 1"), op(5, 8)]
    s = found(r"^train_", ops=ops)
    assert (s.marker, s.names) == ("/^train_/", ["train_batch 0", "train_batch 1"])
    assert s.start.tolist() == [0, 100]


def test_a_pattern_may_name_an_op() -> None:
    assert found("relu", ops=[op(0, 5, "aten::relu"), op(10, 15, "aten::relu")]).count == 2


def test_markers_of_one_thread_are_used_the_one_that_has_most() -> None:
    s = found(
        ops=[mark(0, 10, "ProfilerStep#0"), *(mark(i, i + 5, f"ProfilerStep#{i}", AUTOGRAD) for i in (3, 20, 30))]
    )
    assert (s.thread, s.start.tolist()) == (AUTOGRAD, [3, 20, 30])


def test_without_markers_everything_is_one_step_backlog_included() -> None:
    s = found(
        ops=[op(50, 80)], frames=[frame(40, 45, "a.py(1): f")], calls=[call(60, 70, correlation=1)],
        activities=[work(20, 30, 99), work(75, 200, 1)],
    )  # fmt: skip
    assert (s.marker, s.thread, s.names) == (WHOLE_WINDOW, None, [WHOLE_WINDOW])
    assert (s.start.tolist(), s.end.tolist(), s.until.tolist()) == ([20], [200], [200])
    assert s.step_of_activity.tolist() == [0, 0]
    assert s.step_of_call.tolist() == [0]


@pytest.mark.parametrize(("pattern", "what"), [("(", "not a regular expression"), ("nothing", "no annotation or op")])
def test_a_pattern_that_cannot_be_used_says_so(pattern: str, what: str) -> None:
    with pytest.raises(UsageError, match=what) as caught:
        found(pattern, ops=[mark(0, 10, "ProfilerStep#0")])
    assert "\n" not in str(caught.value)


def cold(work_ns: list[int], compiling: list[int] | None = None, loading: list[int] | None = None) -> Steps:
    bounds = range(len(work_ns) + 1)
    none = [0] * len(work_ns)
    return mark_cold(found(ops=steps(*bounds)), as_ns(work_ns), as_ns(compiling or none), as_ns(loading or none))


def test_the_last_step_only_closes_the_window() -> None:
    s = cold([10, 10, 10])
    assert s.used.tolist() == [True, True, False]
    assert [why[:6] for why in s.why] == ["", "", "closes"]


def test_a_first_step_with_half_as_much_work_again_is_cold_and_one_with_less_is_not() -> None:
    assert cold([15_000_000, 10_000_000, 10_000_000]).used.tolist() == [True, True, False]
    s = cold([15_000_001, 10_000_000, 10_000_000])
    assert s.used.tolist() == [False, True, False]
    assert s.why[0] == "first step: host work 15.00 ms, others 10.00 ms"


def test_a_later_slow_step_is_not_cold() -> None:
    assert cold([10, 99, 10, 10]).used.tolist() == [True, True, True, False]


def test_a_step_that_compiles_alone_is_cold_but_not_where_most_do() -> None:
    assert cold([10] * 4, compiling=[0, 5, 0, 0]).used.tolist() == [True, False, True, False]
    assert cold([10] * 4, compiling=[0, 5, 5, 5]).used.tolist() == [True, True, True, False]


def test_a_step_that_alone_loads_modules_for_a_tenth_of_the_work_is_cold() -> None:
    assert cold([100] * 3, loading=[0, 11, 0]).used.tolist() == [True, False, False]
    assert cold([100] * 3, loading=[0, 10, 0]).used.tolist() == [True, True, False]
    assert cold([100] * 3, loading=[11, 11, 0]).used.tolist() == [True, True, False]


def test_where_all_steps_are_cold_they_stay_and_the_reason_is_kept() -> None:
    s = cold([90, 10], compiling=[5, 0])
    assert s.used.tolist() == [True, False]
    assert s.why[0].startswith("compiles")
    assert cold([10]).used.tolist() == [True]


def test_a_step_is_picked_by_its_number_else_by_its_place() -> None:
    s = found(ops=[mark(0, 10, "ProfilerStep#5"), mark(10, 20, "ProfilerStep#6"), mark(20, 30, "ProfilerStep#1")])
    assert pick_step(s, 6).used.tolist() == [False, True, False]
    assert pick_step(s, 1).used.tolist() == [False, False, True]
    assert pick_step(s, 0).used.tolist() == [True, False, False]
    assert pick_step(s, 6).why == ["--step 6 was asked for", "", "--step 6 was asked for"]
    with pytest.raises(UsageError, match="ProfilerStep#5, ProfilerStep#6, ProfilerStep#1"):
        pick_step(s, 3)


def test_a_step_that_compiles_is_left_out_of_a_whole_study() -> None:
    ops = [*steps(0, 1000, 2000, 3000, 4000), op(100, 900, "_compile.compile_inner (dynamo_timed)")]
    s = studied(ops=ops, calls=[call(1, 2, correlation=1)], activities=[work(5, 9, 1)])
    assert s.steps.used.tolist() == [False, True, True, False]
    assert studied(StudyOptions(step=0), ops=ops).steps.used.tolist() == [True, False, False, False]
