"""How far a file can be trusted: each check's answers, and the sentences that say how much is missing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gapless.analyses.study import Study, StudyOptions, study
from gapless.analyses.trust import SKEW_NOTE_NS, launches_block, trust_checks
from gapless.ingest.assemble import table_from
from gapless.model import schema

from .literal import SYNC, Row, call, frame, launched, mark, op, overhead, raw, steps, studied, work


def said(check: str, s: Study | None = None, **tables: Any) -> tuple[str, str]:
    """Status and sentence of one check."""
    found = {one.check: (one.status, one.detail) for one in trust_checks(s or studied(**tables))}
    return found[check]


def status(check: str, **tables: Any) -> str:
    return said(check, **tables)[0]


def lossy(kept: int, lost: list[int]) -> dict[str, list[Row]]:
    """So many launches, of which those in `lost` have no record."""
    calls = [call(100 * i, 100 * i + 10, correlation=i + 1) for i in range(kept)]
    activities = [work(100 * i + 20, 100 * i + 50, i + 1) for i in range(kept) if i not in lost]
    return {"calls": calls, "activities": activities}


def test_every_check_answers_once_even_about_nothing() -> None:
    checks = trust_checks(studied())
    names = [one.check for one in checks]
    assert len(names) == len(set(names)) == 11
    assert {one.check for one in checks if one.status == "unknown"} == {
        "lost-records", "gpu-records-stop", "cold-step", "launch-blocking",
    }  # fmt: skip


def test_launches_with_records_are_fine() -> None:
    assert said("lost-records", **lossy(10, [])) == ("ok", "every one of 10 launches has its GPU record")


def test_a_few_scattered_lost_records_are_noted() -> None:
    found, text = said("lost-records", **lossy(10, [2, 3, 7]))
    assert (found, text[:46]) == ("note", "3 of 10 launches (30.0%) have no GPU record; t")


def test_three_in_a_row_are_a_stretch_and_a_third_of_all_a_failure() -> None:
    found, text = said("lost-records", **lossy(20, [4, 5, 6]))
    assert (found, "counts as unrecorded" in text) == ("warn", True)
    assert said("lost-records", **lossy(10, [4, 5, 6]))[0] == "fail"


def test_launches_without_any_gpu_record_fail() -> None:
    found, text = said("lost-records", calls=[call(0, 10, correlation=1)])
    assert (found, "no GPU record at all" in text) == ("fail", True)


def test_copies_without_a_record_are_not_lost() -> None:
    tables = lossy(5, [])
    tables["calls"] += [call(900 + i, 901 + i, "cudaMemcpyAsync", 50 + i) for i in range(5)]
    assert status("lost-records", **tables) == "ok"


def test_launches_under_capture_run_nothing() -> None:
    tables = lossy(5, [])
    capture = [call(600, 610, "cudaStreamBeginCapture_ptsz"), call(800, 810, "cudaStreamEndCapture_ptsz")]
    inside = [call(620 + 20 * i, 630 + 20 * i, correlation=90 + i) for i in range(6)]
    assert status("lost-records", calls=[*tables["calls"], *capture, *inside], activities=tables["activities"]) == "ok"
    assert status("lost-records", calls=[*tables["calls"], *inside], activities=tables["activities"]) == "fail"


def test_gpu_records_that_stop_before_the_launches_do() -> None:
    assert status("gpu-records-stop", **lossy(40, list(range(30, 40)))) == "ok"
    found, text = said("gpu-records-stop", **lossy(40, list(range(29, 40))))
    assert (found, "stop 11 launches before" in text) == ("warn", True)


def test_graph_replays_that_lack_a_tenth_of_their_siblings_kernels() -> None:
    calls = [call(100 * i, 100 * i + 10, "cudaGraphLaunch", i + 1) for i in range(3)]
    nodes = [work(100 * i + 20 + j, 100 * i + 21 + j, i + 1) for i in range(3) for j in range(20)]
    assert said("graph-replays", calls=calls, activities=nodes) == ("ok", "all 3 graph replays are recorded alike")
    assert status("graph-replays", calls=calls, activities=nodes[:-2]) == "ok"
    found, text = said("graph-replays", calls=calls, activities=nodes[:-3])
    assert (found, text[:21]) == ("warn", "1 of 3 graph replays ")


def test_graphs_that_begin_with_another_kernel_are_no_siblings() -> None:
    calls = [call(0, 10, "cudaGraphLaunch", 1), call(100, 110, "cudaGraphLaunch", 2)]
    nodes = [*(work(20 + j, 21 + j, 1) for j in range(20)), work(120, 130, 2, name="another")]
    assert status("graph-replays", calls=calls, activities=nodes) == "ok"


def test_untraced_work_is_told_with_its_time() -> None:
    calls, activities = launched((0, 10, 50, 100))
    found, text = said("untraced-work", calls=[*calls, call(200, 2_000_200, SYNC)], activities=activities)
    assert (found, "blocked for 2.0 ms" in text) == ("warn", True)
    assert status("untraced-work", calls=[*calls, call(200, 300, SYNC)], activities=activities) == "ok"


def test_cold_steps_are_named() -> None:
    ops = [*steps(0, 1000, 2000, 3000, 4000), op(1100, 1900, "compile (dynamo_timed)")]
    found, text = said("cold-step", ops=ops)
    assert (found, "ProfilerStep#1: compiles or autotunes" in text) == ("note", True)
    assert said("cold-step", ops=steps(0, 10, 20, 30)) == ("ok", "3 steps, none cold")
    assert status("cold-step", s=study(raw(ops=steps(0, 10, 20, 30)), StudyOptions(step=1))) == "ok"


def test_one_step_or_none_cannot_be_compared() -> None:
    assert said("cold-step", ops=steps(0, 10))[1].startswith("one recorded step")
    assert said("cold-step", ops=[op(0, 10)])[1].startswith("no ProfilerStep")


def test_what_the_recorder_itself_does_is_noted() -> None:
    calls = [call(110, 150, SYNC), call(200, 210, SYNC)]
    rows = [overhead(10, 2_000_010, "Buffer Flush"), overhead(0, 5, "Command Buffer Full")]
    found, text = said("profiler-artifact", ops=steps(0, 100), calls=calls, overheads=rows)
    assert (found, text) == (
        "note",
        "2 device synchronisations of the recorder itself and 2.00 ms of the recorder's own overhead rows: never blamed on the "
        "program",
    )
    assert status("profiler-artifact", ops=steps(0, 1000), calls=calls) == "ok"


@pytest.mark.parametrize(("early", "expected"), [(0, "ok"), (SKEW_NOTE_NS, "note"), (SKEW_NOTE_NS + 1, "warn")])
def test_work_before_its_launch_shows_clocks_that_disagree(early: int, expected: str) -> None:
    calls, activities = launched((100_000, 100_010, 100_000 - early, 100_100))
    found, text = said("clock-skew", calls=calls, activities=activities)
    assert found == expected
    assert early == 0 or f"1 activities start before their launch, by up to {early / 1e3:.1f} us" in text


def test_launches_that_last_until_their_kernels_end_were_made_to_block() -> None:
    rows = [(100 * i, 100 * i + 60, 100 * i + 10, 100 * i + 50) for i in range(10)]
    for quick, blocks in ((0, True), (1, False), (2, False)):
        made = [(a, a + 5, c, d) if i < quick else (a, b, c, d) for i, (a, b, c, d) in enumerate(rows)]
        calls, activities = launched(*made)
        s = studied(calls=calls, activities=activities)
        assert launches_block(s) is blocks
        assert said("launch-blocking", s)[0] == ("fail" if blocks else "ok")
    calls, activities = launched(*rows[:9])  # too few to say
    assert not launches_block(studied(calls=calls, activities=activities))


def test_unlinked_work_is_counted_and_backlog_told_apart() -> None:
    calls, activities = launched((100, 110, 150, 160), (200, 210, 250, 260))
    assert status("unlinked-work", calls=calls, activities=activities) == "ok"
    backlog = [work(0, 90, 70), work(90, 140, 71)]
    found, text = said("unlinked-work", calls=calls, activities=[*activities, *backlog])
    assert (found, text) == (
        "note",
        "2 of 4 activities have no launch in the file (2 of them were queued before the window began)",
    )
    found, text = said("unlinked-work", calls=calls, activities=[*activities, work(300, 310, 72)])
    assert (found, text) == ("warn", "1 of 3 activities have no launch in the file")


def test_missing_flags_are_named() -> None:
    assert said("missing-flags", ops=[op(0, 5)])[1] == (
        "no stacks (no file and line); no shapes (no bytes, FLOPs or dtypes of ops)"
    )
    assert said("missing-flags", activities=[work(0, 5)])[1] == "no stacks (no file and line); no CPU ops (no op names)"
    full = {"ops": [op(0, 5, input_dims="[[2]]"), mark(6, 9, "x")], "frames": [frame(0, 9, "a.py(1): f")]}
    assert status("missing-flags", **full) == "ok"


def with_issues(*rows: tuple[str, str, int]) -> Study:
    trace = raw(ops=[op(0, 5)])
    table = table_from(schema.ISSUES, [
        {"code": code, "severity": severity, "count": count, "detail": "", "example": ""} for code, severity, count in rows
    ])  # fmt: skip
    return study(replace(trace, issues=table))


def test_defects_of_the_file_are_summed_up() -> None:
    assert said("reading", with_issues(("long-name", "note", 3)))[0] == "ok"
    assert said("reading", with_issues(("invalid-escape", "repaired", 3)))[0] == "note"
    found, text = said("reading", with_issues(("invalid-escape", "repaired", 3), ("bad-time", "loss", 2)))
    assert (found, text) == ("warn", "5 defects in the file (invalid-escape, bad-time); see issues")
    assert said("reading", study(raw(ops=[op(0, 5)], truncated=True)))[0] == "warn"
