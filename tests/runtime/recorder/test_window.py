"""The plan of a recording, driven by a clock and a profiler that are made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from gapless.runtime.recorder.options import Options
from gapless.runtime.recorder.window import Window, default_steps, is_steady


class Process:
    """A job whose steps take the times given, and a profiler that writes what it is told."""

    def __init__(self, *, events: int = 100, size: int = 50_000, free: bool = True, lasts: bool = False) -> None:
        self.lasts = lasts
        self.now = 0
        self.events, self.size, self.free = events, size, free
        self.log: list[str] = []
        self.max_s: float | None = None
        self.fail_on = ""

    def clock(self) -> int:
        return self.now

    def note(self, what: str) -> None:
        self.log.append(what)
        if what == self.fail_on:
            raise RuntimeError(what)

    # the surroundings
    def sync(self) -> None:
        self.note("sync")

    def session(self, *, stacks: bool) -> Process:
        self.note("session+stacks" if stacks else "session")
        return self

    def tracer_lasts(self) -> bool:
        return self.lasts

    def profiler_is_free(self) -> bool:
        return self.free

    def work_folder(self) -> Path:
        return Path()

    def trial_done(self, raw: Path) -> tuple[int, int]:
        self.note("trial_done")
        last = len(self.log) - 1 - self.log[::-1].index("begin")
        steps = 1 + sum(entry.startswith("mark") for entry in self.log[last:])
        return self.events * steps, self.size * steps

    def window_opens(self, max_s: float | None) -> None:
        self.max_s = max_s

    def window_closes(self) -> None:
        self.note("closed")

    def timing_done(self, raw: Path) -> None:
        self.note("timing_done")

    def stack_done(self, raw: Path) -> None:
        self.note("stack_done")

    def finished(self) -> None:
        self.note("finished")

    # the session
    def prepare(self) -> None:
        self.note("prepare")

    def begin(self, step: int) -> None:
        self.note("begin")

    def mark(self, step: int) -> None:
        self.note(f"mark {step}")

    def end(self) -> None:
        self.note("end")

    def export(self, folder: Path) -> Path:
        return Path("raw")


def window(process: Process, *, lockstep: bool = False, **options: object) -> Window:
    return Window(Options(**options), process, lockstep=lockstep, clock=process.clock)  # type: ignore[arg-type]


def drive(plan: Window, process: Process, steps: int, ms: float = 10.0, until: str | None = None) -> list[str]:
    """Let steps pass and return the phase each of them ran in."""
    phases = []
    for _ in range(steps):
        plan.boundary()
        phases.append(plan.phase)
        if plan.phase == until:
            break
        process.now += int(ms * 1e6)
    return phases


def test_the_phases_follow_one_another() -> None:
    process = Process()
    plan = window(process, steps=2)
    phases = drive(plan, process, 100)
    assert list(dict.fromkeys(phases)) == [
        "cold",
        "before",
        "trial_warm",
        "trial",
        "stack_warm",
        "stack",
        "again",
        "warm",
        "timing",
        "settle",
        "after",
        "done",
    ]
    assert phases.count("timing") == 3
    assert plan.facts.recorded_steps == 3
    assert plan.baseline.before[0].ms == pytest.approx(10.0)
    assert [s.ms for s in plan.baseline.after] == pytest.approx([10.0, 10.0])


@pytest.mark.parametrize(("ms", "steps"), [(0.04, 2_000), (0.1, 1_000), (1.0, 100), (5.0, 20), (20.0, 5), (900.0, 4)])
def test_where_the_tracer_stays_the_baseline_is_timed_before_any_recording(ms: float, steps: int) -> None:
    process = Process(lasts=True)
    plan = window(process)
    phases = drive(plan, process, 5_000, ms)
    assert "again" not in phases
    assert (phases.count("cold") - 1) * ms > 49 or ms > 50, "short steps are given time to settle"
    assert phases.count("cold") <= 4 or ms < 25
    assert plan.baseline.before[0].steps == steps
    assert process.log.index("prepare") >= 2, "drained twice before the profiler was touched"
    data = plan.baseline.to_json()
    assert data is not None
    assert data["clean"] == ["before_ms"]


def test_elsewhere_both_sides_of_the_window_count() -> None:
    process = Process()
    plan = window(process)
    drive(plan, process, 400, 1.0)
    data = plan.baseline.to_json()
    assert data is not None
    assert data["clean"] == ["before_ms", "after_ms"]


def test_the_device_is_drained_at_the_ends_of_the_baseline_and_before_each_recording_only() -> None:
    process = Process()
    drive(window(process, steps=2, stacks="never"), process, 100)
    # before: 2 segments of 2, trial: 1, timing window: 1, after: 2 segments of 2
    assert process.log.count("sync") == 10


def test_cold_steps_are_left_out_until_they_are_steady() -> None:
    process = Process()
    plan = window(process)
    for ms in (500, 80, 30, 12, 11, 10.5):
        plan.boundary()
        assert plan.phase == "cold"
        process.now += int(ms * 1e6)
    plan.boundary()
    assert plan.phase == "before"
    assert plan.facts.steady
    assert plan.facts.cold_steps == 6


def test_unsteady_steps_are_bounded() -> None:
    process = Process()
    plan = window(process)
    for i in range(51):
        plan.boundary()
        if plan.phase == "before":
            break
        process.now += int((5 + 10 * (i % 2)) * 1e6)
    assert plan.phase == "before"
    assert plan.facts.steady is False
    assert 10 < plan.facts.cold_steps < 50, "steps that never become steady are waited for with less and less patience"


def test_boundaries_that_passed_before_the_choice_count_as_cold_steps() -> None:
    process = Process()
    process.now = 30_000_000
    plan = window(process)
    plan.restart(sliced=False, past_ns=[0, 10_000_000, 20_000_000])
    plan.boundary()
    assert plan.phase == "before"
    assert plan.facts.cold_steps == 3


def test_skip_is_obeyed_exactly() -> None:
    process = Process()
    plan = window(process, skip=7)
    assert drive(plan, process, 8).index("before") == 7


def test_ranks_count_steps_and_look_at_no_clock() -> None:
    plans = []
    for ms in (1.0, 37.0):
        process = Process()
        plan = window(process, lockstep=True, steps=3)
        plans.append(drive(plan, process, 80, ms))
    assert plans[0] == plans[1]


def test_a_budget_shortens_the_window() -> None:
    process = Process(events=300)
    plan = window(process, steps=10, max_events=1000)
    drive(plan, process, 100)
    assert plan.facts.recorded_steps == 3
    assert plan.facts.stopped_by_budget


def test_a_budget_below_one_step_cuts_inside_it() -> None:
    process = Process(events=4000)
    plan = window(process, steps=10, max_events=1000)
    drive(plan, process, 100, ms=1000.0, until="timing")
    assert process.max_s == pytest.approx(0.25)
    plan.cut("one step records more than the budget")
    assert "timing_done" in process.log
    assert plan.facts.cut == "one step records more than the budget"
    assert drive(plan, process, 50, ms=1000.0)[-1] == "done"


@pytest.mark.parametrize("phase", ["trial", "timing"])
def test_an_end_inside_the_window_keeps_what_was_recorded(phase: str) -> None:
    process = Process()
    plan = window(process, steps=5)
    drive(plan, process, 100, until=phase)
    plan.stop("the script raised ValueError")
    assert process.log[-2:] == [f"{phase}_done", "finished"]
    assert plan.facts.cut == "the script raised ValueError"
    assert plan.phase_reached == phase


def test_an_end_before_the_window_says_where() -> None:
    process = Process()
    plan = window(process)
    drive(plan, process, 100, until="before")
    plan.stop("the script ended")
    assert (plan.phase, plan.phase_reached) == ("done", "before")


def test_a_script_with_its_own_profiler_goes_first() -> None:
    process = Process(free=False)
    plan = window(process, steps=2)
    assert set(drive(plan, process, 60)[-20:]) == {"waiting"}
    assert "session" not in process.log
    process.free = True
    assert drive(plan, process, 60)[-1] == "done"


@pytest.mark.parametrize("phase", ["trial", "warm", "timing"])
def test_stepping_aside_without_a_whole_step_tries_again(phase: str) -> None:
    process = Process()
    plan = window(process, steps=2)
    drive(plan, process, 100, until=phase)
    process.free = False
    plan.yield_profiler()
    assert plan.phase == "waiting"
    process.free = True
    drive(plan, process, 100)
    assert process.log.count("timing_done") == 1


def test_stepping_aside_after_a_whole_step_keeps_it() -> None:
    process = Process()
    plan = window(process, steps=5)
    drive(plan, process, 100, until="timing")
    process.now += 10**7
    plan.boundary()
    plan.yield_profiler()
    assert process.log.count("timing_done") == 1
    assert plan.facts.cut == "the script started its own profiler"


def test_long_steps_get_no_second_window() -> None:
    process = Process()
    phases = drive(window(process, steps=2), process, 60, ms=3000.0)
    assert "stack" not in phases
    assert phases[-1] == "done"


def test_slices_of_time_have_no_baseline() -> None:
    process = Process()
    plan = window(process, steps=2)
    plan.restart(sliced=True)
    phases = drive(plan, process, 60, ms=500.0)
    assert "before" not in phases
    assert phases[-1] == "done"
    assert plan.baseline.to_json() is None


def test_an_interrupted_export_is_repeated_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process()
    plan = window(process, steps=2)
    drive(plan, process, 100, until="timing")
    with monkeypatch.context() as patch:

        def interrupted(folder: Path) -> Path:
            raise KeyboardInterrupt

        patch.setattr(process, "export", interrupted)
        with pytest.raises(KeyboardInterrupt):
            drive(plan, process, 10)
    assert "timing_done" not in process.log
    plan.stop("the script raised KeyboardInterrupt")
    assert "timing_done" in process.log


@pytest.mark.parametrize(
    ("step_s", "steady"),
    [([], False), ([1, 1], False), ([9, 1, 1, 1], True), ([1, 1, 1.2], False), ([0, 0, 0], False)],
)
def test_steady(step_s: list[float], steady: bool) -> None:
    assert is_steady(step_s) is steady


@pytest.mark.parametrize(("ms", "steps"), [(100.0, 5), (4.0, 5), (1.0, 20), (0.05, 40), (0.0, 40)])
def test_short_steps_get_more_of_them(ms: float, steps: int) -> None:
    assert default_steps(ms) == steps
