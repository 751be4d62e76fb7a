"""What does each edit take out of a program, what does it leave, and do edits go together?

The program: 10 ns of host work, a launch (4 ns) of a kernel of 20, 6 of host, a wait (2), 30 of host, a launch (4) of
kernels of 50 on the first and 8 on the second stream, 14 of host, a copy (5) of 40 that waits for its own end, 25 of
host. Places: 0-10, 10-14, 14-20, 20-22, 22-52, 52-56, 56-70, 70-75, 75-100.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from itertools import combinations

import numpy as np
import pytest
from tests.replay.programs import MACHINE, copy, gpu, host, launch, program, wait

from gapless.replay import whatif
from gapless.replay.engine import run
from gapless.replay.program import DEVICE, NONE, STREAM, Program

BASE = program(
    host(10), launch(4, gpu(20)),
    host(6), wait(2),
    host(30), launch(4, gpu(50), gpu(8, 1, after=0)),
    host(14), copy(5, gpu(40)),
    host(25), streams=2,
)  # fmt: skip

Edit = Callable[[Program], Program]


def at(*places: int) -> np.ndarray:
    return np.array(places, dtype=np.int64)


def changed(edited: Program) -> dict[str, list[float]]:
    """The columns that an edit changed."""
    pairs = {f.name: (getattr(BASE, f.name), getattr(edited, f.name)) for f in fields(Program) if f.name != "streams"}
    return {
        name: np.asarray(new).tolist()
        for name, (old, new) in pairs.items()
        if not np.array_equal(np.asarray(old), np.asarray(new))
    }


def period(p: Program) -> float:
    return run(p, MACHINE).period_ns


def test_the_program_as_it_is() -> None:
    # 14 launched, 16-36, the wait returns at 39, 69 + 4 = 73 launched, 75-125 (75-83 beside it), 87 + 5 = 92, the copy
    # 126-166 returns at 169, 194.
    assert period(BASE) == 194
    assert BASE.piece_ns.tolist() == [10, 6, 30, 14, 25]
    assert BASE.item_wait.tolist() == [NONE, DEVICE, NONE, STREAM]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (at(0), at(100), [True] * 4),
        (at(10), at(11), [True, False, False, False]),
        (at(11), at(20), [False] * 4),
        (at(20), at(70), [False, True, True, False]),
        (at(20, 70), at(21, 71), [False, True, False, True]),
        (at(70, 20), at(71, 21), [False, True, False, True]),
        (at(0, 5), at(20, 60), [True, True, True, False]),
        (at(), at(), [False] * 4),
        (at(10), at(10), [False] * 4),
    ],
)
def test_items_lie_where_they_start(start: np.ndarray, end: np.ndarray, expected: list[bool]) -> None:
    assert whatif.inside_items(BASE, start, end).tolist() == expected


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (at(0), at(100), 85 + 15),
        (at(0), at(10), 10),
        (at(0), at(11), 10 + 4),
        (at(22), at(37), 15),
        (at(22, 30), at(37, 40), 18),
        (at(14), at(22), 6 + 2),
        (at(), at(), 0),
    ],
)
def test_host_time_of_a_stretch(start: np.ndarray, end: np.ndarray, expected: float) -> None:
    assert whatif.host_ns(BASE, start, end) == pytest.approx(expected)


def test_host_time_of_a_stretch_is_that_of_the_edited_program() -> None:
    half = replace(BASE, piece_ns=BASE.piece_ns / 2)
    assert whatif.host_ns(half, at(22), at(37)) == pytest.approx(7.5)


def test_cutting_a_stretch_takes_its_host_time_calls_and_work() -> None:
    edited = whatif.cut_host(BASE, at(37), at(60))
    assert changed(edited) == {
        "piece_ns": [10, 6, 15, 10, 25],
        "item_ns": [4, 2, 0, 5],
        "act_row": [0, 3],
        "act_item": [0, 3],
        "act_stream": [0, 0],
        "act_ns": [20, 40],
        "act_nodes": [1, 1],
        "act_after": [-1, -1],
    }
    # Returns at 39, + 15 + 10 + 5 = 69, the copy 71-111, returns at 114, 139.
    assert period(edited) == 139


def test_cutting_a_stretch_can_keep_its_work() -> None:
    edited = whatif.cut_host(BASE, at(37), at(60), keep_work=True)
    assert changed(edited) == {"piece_ns": [10, 6, 15, 10, 25], "item_ns": [4, 2, 0, 5]}
    # Launched at 54, 56-106, the copy 107-147, returns at 150, 175.
    assert period(edited) == 175


def test_cutting_a_wait_lets_the_host_run_on() -> None:
    edited = whatif.cut_host(BASE, at(14), at(22))
    assert changed(edited) == {
        "piece_ns": [10, 0, 30, 14, 25],
        "item_ns": [4, 0, 4, 5],
        "item_wait": [NONE, NONE, NONE, STREAM],
    }
    # 48 launched, 50-100, the copy 101-141, returns at 144, 169.
    assert period(edited) == 169


def test_cutting_twice_is_cutting_once() -> None:
    once = whatif.cut_host(BASE, at(20), at(60))
    whole = whatif.cut_host(whatif.cut_host(BASE, at(20), at(52)), at(52), at(60))
    assert period(once) == period(whole)
    again = whatif.cut_host(whatif.cut_host(BASE, at(0), at(100)), at(0), at(100))
    assert period(again) == 0


def test_dropping_work_keeps_the_order_of_the_rest() -> None:
    edited = whatif.drop_activities(BASE, np.array([True, False, False, False]))
    assert changed(edited) == {
        "act_row": [1, 2, 3],
        "act_item": [2, 2, 3],
        "act_stream": [0, 1, 0],
        "act_ns": [50, 8, 40],
        "act_nodes": [1, 1, 1],
        # Whom the small kernel waited for is gone.
        "act_after": [-1, -1, -1],
    }
    other = whatif.drop_activities(BASE, np.array([False, True, False, False]))
    assert other.act_after.tolist() == [-1, 0, -1]
    moved = replace(BASE, act_after=at(-1, -1, 1, -1))
    assert whatif.drop_activities(moved, np.array([True, False, False, False])).act_after.tolist() == [-1, 0, -1]


def test_dropping_a_call_keeps_the_host_work_round_it() -> None:
    edited = whatif.drop_calls(BASE, np.array([False, True, False, True]))
    assert changed(edited) == {
        "item_ns": [4, 0, 4, 0],
        "item_wait": [NONE] * 4,
        "act_row": [0, 1, 2],
        "act_item": [0, 2, 2],
        "act_stream": [0, 0, 1],
        "act_ns": [20, 50, 8],
        "act_nodes": [1, 1, 1],
        "act_after": [-1, -1, 0],
    }
    assert period(edited) == 85 + 4 + 4


def test_unblocking_keeps_the_host_time_of_the_call() -> None:
    edited = whatif.unblock(BASE, np.array([False, True, False, True]))
    assert changed(edited) == {"item_wait": [NONE] * 4}
    # Nothing waits: 20 + 50 + 40 and a space each, against 100 on the host.
    assert period(edited) == 113


def test_work_can_be_given_another_length() -> None:
    which = np.array([False, True, False, True])
    assert changed(whatif.set_activity_ns(BASE, which, 7.0)) == {"act_ns": [20, 7, 8, 7]}
    assert changed(whatif.set_activity_ns(BASE, which, BASE.act_ns / 2)) == {"act_ns": [20, 25, 8, 20]}
    assert period(whatif.set_activity_ns(BASE, which, BASE.act_ns / 2)) == 194 - 25 - 20


@pytest.mark.parametrize(
    ("places", "ns", "expected"),
    [
        (at(0), 5.0, [15, 6, 30, 14, 25]),
        (at(9), 5.0, [15, 6, 30, 14, 25]),
        (at(30), 5.0, [10, 6, 35, 14, 25]),
        # inside a call: to the piece before it
        (at(53), 5.0, [10, 6, 35, 14, 25]),
        (at(30, 40, 80), np.array([1.0, 2.0, 3.0]), [10, 6, 33, 14, 28]),
        (at(-50, 500), 1.0, [11, 6, 30, 14, 26]),
        (at(30), -5.0, [10, 6, 30, 14, 25]),
        (at(), 5.0, [10, 6, 30, 14, 25]),
    ],
)
def test_host_work_is_added_where_it_belongs(places: np.ndarray, ns: float, expected: list[float]) -> None:
    edited = whatif.add_host(BASE, places, ns)
    assert edited.piece_ns.tolist() == expected
    assert set(changed(edited)) <= {"piece_ns"}


def test_work_is_added_behind_that_of_its_launch() -> None:
    edited = whatif.add_activity(BASE, at(60), 9.0, 1)
    assert changed(edited) == {
        "act_row": [0, 1, 2, -1, 3],
        "act_item": [0, 2, 2, 2, 3],
        "act_stream": [0, 0, 1, 1, 0],
        "act_ns": [20, 50, 8, 9, 40],
        "act_nodes": [1, 1, 1, 1, 1],
        "act_after": [-1, -1, 0, -1, -1],
    }


def test_events_still_tie_the_same_work_when_work_is_added_before() -> None:
    edited = whatif.add_activity(BASE, at(0, 12), np.array([5.0, 6.0]))
    assert edited.act_ns.tolist() == [20, 5, 6, 50, 8, 40]
    assert edited.act_item.tolist() == [0, 0, 0, 2, 2, 3]
    assert edited.act_after.tolist() == [-1, -1, -1, -1, 0, -1]
    later = whatif.add_activity(replace(BASE, act_after=at(-1, -1, 1, -1)), 12, 5.0)
    assert later.act_ns[later.act_after[3]] == 50


def test_no_work_or_no_launch_adds_nothing() -> None:
    assert changed(whatif.add_activity(BASE, at(60), 0.0)) == {}
    without = program(host(10))
    assert whatif.add_activity(without, 5, 10.0) is without
    assert whatif.add_host(program(launch(4)), 0, 10.0).piece_ns.size == 0


def test_work_on_a_stream_of_its_own_waits_for_nobody() -> None:
    edited = whatif.move_to_own_stream(BASE, np.array([False, True, True, False]))
    assert changed(edited) == {"act_stream": [0, 2, 2, 0], "act_after": [-1, -1, -1, -1]}
    assert edited.streams == (*BASE.streams, (-1, 2))
    # Launched at 73, 75-125 and 126-134 there; the copy, launched at 92, 94-134, returns at 137; 162.
    assert period(edited) == 162


def test_a_captured_stretch_is_one_launch_with_all_its_work() -> None:
    p = program(
        host(10), launch(4, gpu(5)), host(10), launch(4, gpu(6), gpu(7, 1)), host(10), launch(4, gpu(8, nodes=3)),
        host(20), wait(1), streams=2,
    )  # fmt: skip
    edited = whatif.capture(p, 14, 42, host_ns=3.0, node_ns=0.5)
    # What starts at 14 or later: the second and third launch; the work of each stream, half a ns more a node.
    assert edited.piece_ns.tolist() == [10, 3, 0, 20]
    assert edited.item_ns.tolist() == [4, 0, 0, 1]
    assert sorted(zip(edited.act_stream.tolist(), edited.act_ns.tolist(), strict=True)) == [
        (0, 5), (0, 6 + 8 + 0.5 * 4), (1, 7.5),
    ]  # fmt: skip
    assert edited.act_item.tolist() == [0, 1, 1]
    # 14 launched, 16-21; at 17 the graph, 22-38; the host goes on to 37; the wait returns at 41.
    assert period(edited) == 41


def test_a_stretch_without_work_cannot_be_captured() -> None:
    assert whatif.capture(BASE, 14, 30, host_ns=3.0, node_ns=0.5) is BASE


EDITS: dict[str, Edit] = {
    "cut the first wait": lambda p: whatif.cut_host(p, at(14), at(22)),
    "unblock the copy": lambda p: whatif.unblock(p, np.arange(p.item_ns.size) == 3),
    "halve the second kernel": lambda p: whatif.set_activity_ns(p, p.act_row == 1, p.act_ns / 2),
    "cut host work": lambda p: whatif.cut_host(p, at(75), at(95)),
    "drop the first kernel": lambda p: whatif.drop_activities(p, p.act_row == 0),
    "move the third kernel": lambda p: whatif.move_to_own_stream(p, p.act_row == 2),
    "add host work": lambda p: whatif.add_host(p, 60, 5.0),
}


@pytest.mark.parametrize(("one", "other"), list(combinations(EDITS, 2)))
def test_edits_of_different_things_go_in_any_order(one: str, other: str) -> None:
    there, back = EDITS[other](EDITS[one](BASE)), EDITS[one](EDITS[other](BASE))
    assert changed(there) == changed(back)
    assert run(there, MACHINE) == run(back, MACHINE)
    assert changed(there) not in (changed(EDITS[one](BASE)), changed(EDITS[other](BASE)))


def test_all_edits_together_gain_no_more_than_taking_everything_out() -> None:
    edited = BASE
    before = period(BASE)
    for name, edit in EDITS.items():
        edited = edit(edited)
        after = period(edited)
        assert after >= 0
        if name != "add host work":
            assert after <= before, name
        before = after
    nothing = whatif.cut_host(BASE, at(BASE.base_start), at(BASE.base_end))
    assert period(nothing) == 0
    assert 0 < before < period(BASE)


@pytest.mark.parametrize("name", [name for name in EDITS if name != "add host work"])
def test_the_gain_of_two_edits_is_at_least_that_of_either(name: str) -> None:
    for other, edit in EDITS.items():
        if other != "add host work":
            assert period(edit(EDITS[name](BASE))) <= min(period(edit(BASE)), period(EDITS[name](BASE)))


def test_edits_leave_their_program_as_it_was() -> None:
    copies = {f.name: np.array(getattr(BASE, f.name)) for f in fields(Program)}
    for edit in EDITS.values():
        edit(BASE)
    whatif.capture(BASE, 0, 100, host_ns=1.0, node_ns=1.0)
    whatif.add_activity(BASE, at(60), 9.0, 1)
    whatif.drop_calls(BASE, np.array([True] * 4))
    assert all(np.array_equal(copies[f.name], np.array(getattr(BASE, f.name))) for f in fields(Program))
