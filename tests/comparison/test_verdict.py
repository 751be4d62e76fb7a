"""Verdicts, levelling of the host's speed, moved waits and gates on literal numbers."""

from __future__ import annotations

import pytest
from tests.render.html.diffs import diff

from gapless.comparison import words
from gapless.comparison.faster import _verdict
from gapless.comparison.gates import Gate, judge_gates, parse
from gapless.comparison.host_speed import _weighted_median, differs
from gapless.comparison.waits import _moved
from gapless.model.diff import Compile, CompileSide, CountRow, Speedup, WaitRow
from gapless.model.errors import UsageError


@pytest.mark.parametrize(
    ("ratio", "levelled", "noise", "speed", "verdict"),
    [
        (1.30, 1.30, 0.10, None, "faster"),
        (0.70, 0.70, 0.10, 1.0, "slower"),
        (1.05, 1.05, 0.10, None, "same"),
        (0.71, 1.23, 0.14, 1.73, "undecided"),
        (1.06, 1.41, 0.14, 1.33, "undecided"),
        (0.86, 1.01, 0.14, 1.17, "same"),
        (96.0, 80.0, 0.14, 0.5, "faster"),
        (1.30, 1.30, 0.70, None, "undecided"),
    ],
)
def test_verdicts(ratio: float, levelled: float, noise: float, speed: float | None, verdict: str) -> None:
    low, high = min(ratio, levelled) / (1 + noise), max(ratio, levelled) * (1 + noise)
    assert _verdict(low, high, noise, speed, ratio, levelled)[0] == verdict
    other = {"faster": "slower", "slower": "faster"}.get(verdict, verdict)
    swapped = None if speed is None else 1 / speed
    assert _verdict(1 / high, 1 / low, noise, swapped, 1 / ratio, 1 / levelled)[0] == other


def test_hosts_count_as_equally_fast_within_a_band() -> None:
    assert [differs(x) for x in (None, 0.76, 0.78, 1.0, 1.29, 1.31)] == [False, True, False, False, False, True]


def test_the_weighted_median_flips_its_sign_with_the_sides() -> None:
    values, weights = [-1.0, 0.5, 2.0], [1.0, 1.0, 2.0]
    assert _weighted_median(values, weights) == pytest.approx(1.25)
    assert _weighted_median([-v for v in values], weights) == pytest.approx(-1.25)
    assert _weighted_median([3.0], [20.0]) == 3.0


def test_a_wait_that_moved_is_no_gain() -> None:
    rows = [WaitRow("sync (item)", 5.0, 0.5), WaitRow("sync (cpu)", 1.0, 4.0), WaitRow("sync (to)", 1.0, 1.01)]
    found = {row.cause: row for row in _moved(rows, 10.0)}
    assert (found["sync (item)"].moved_to, found["sync (item)"].moved_ms) == ("sync (cpu)", 3.0)
    assert (found["sync (cpu)"].moved_from, found["sync (to)"].moved_from) == ("sync (item)", None)


@pytest.mark.parametrize(
    ("text", "gate"),
    [
        ("slower", Gate("slower", 0.0, False, "slower")),
        ("slower=5%", Gate("slower", 0.05, True, "slower=5%")),
        ("launches=+2", Gate("launches", 2.0, False, "launches=+2")),
        ("copy-bytes=10%", Gate("copy-bytes", 0.1, True, "copy-bytes=10%")),
    ],
)
def test_gates_are_read(text: str, gate: Gate) -> None:
    assert parse(text) == gate


@pytest.mark.parametrize(
    "text", ["", "faster", "launches=-1", "slower=5", "slower=+5", "syncs=", "syncs=x%", "slower 5%"]
)
def test_what_is_no_gate(text: str) -> None:
    with pytest.raises(UsageError, match="--fail-on"):
        parse(text)


def _speedup(verdict: str, value: float | None, noise: float = 0.1) -> Speedup:
    basis = "none" if value is None else "unprofiled"
    return Speedup(value, None, noise, verdict, basis=basis, why="why")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("speedup", "gate", "result"),
    [
        (_speedup("faster", 1.5), "slower", "pass"),
        (_speedup("same", 0.97), "slower", "pass"),
        (_speedup("slower", 0.8), "slower", "breached"),
        (_speedup("slower", 0.96, 0.02), "slower=5%", "pass"),
        (_speedup("slower", 0.9, 0.02), "slower=5%", "breached"),
        (_speedup("same", 0.93), "slower=5%", "unknown"),
        (_speedup("undecided", 1.5), "slower=50%", "unknown"),
        (_speedup("undecided", None), "slower", "unknown"),
    ],
)
def test_the_gate_on_time_never_passes_on_cannot_tell(speedup: Speedup, gate: str, result: str) -> None:
    (found,) = judge_gates(diff(speedup=speedup), [parse(gate)])
    assert (found.breached, found.unknown) == (result == "breached", result == "unknown"), found.sentence


@pytest.mark.parametrize(
    ("before", "after", "gate", "result"),
    [
        (10, 10, "launches", "pass"),
        (10, 11, "launches", "breached"),
        (10, 12, "launches=+2", "pass"),
        (10, 13, "launches=+2", "breached"),
        (10, 11, "launches=10%", "pass"),
        (10, 12, "launches=10%", "breached"),
        (None, 3, "launches", "unknown"),
        (3, None, "launches=+9", "unknown"),
    ],
)
def test_gates_on_counts(before: float | None, after: float | None, gate: str, result: str) -> None:
    (found,) = judge_gates(diff(counts=[CountRow("launches", before, after)]), [parse(gate)])
    assert (found.breached, found.unknown) == (result == "breached", result == "unknown"), found.sentence


def test_gates_on_graph_breaks() -> None:
    compile_ = Compile(1, 2, 0, 0.0, None, None, None, None, before=CompileSide(), after=CompileSide(graph_breaks=2))
    assert judge_gates(diff(compile=compile_), [parse("graph-breaks")])[0].breached


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0377, "37.7 us"),
        (0.242, "0.242 ms"),
        (2414.0, "2414 ms"),
        (12.5, "12.5 ms"),
        (33_000.0, "33.0 s"),
        (448_000.0, "448 s"),
    ],
)
def test_times_in_words(value: float, text: str) -> None:
    assert words.ms(value) == text


def test_counts_in_words() -> None:
    assert [words.count(x) for x in (2.0, 24.02, 1.5, 1200.4)] == ["2", "24", "1.5", "1200"]
    assert words.plural(1, "kernel") == "1 kernel"
    assert words.listed(["a", "b", "c"]) == "a, b and c"
