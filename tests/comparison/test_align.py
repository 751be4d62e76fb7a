"""Alignment on literal sequences: strict keys first, order kept by anchors, the same answer from either side."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gapless.comparison.align import Alignment, align
from gapless.comparison.fusion import mirrored


def words(text: str) -> list[tuple[str | None, str | None]]:
    """Each letter is a piece: its own key first, then its lower case as a looser one; `.` has no key at all."""
    return [(None, None) if c == "." else (c, c.lower()) for c in text]


def pairs(before: str, after: str) -> str:
    """Which piece of `after` each piece of `before` became, `-` for none."""
    return "".join("-" if j < 0 else after[j] for j in align(words(before), words(after)).to_after)


def test_equal_pieces_pair_in_order() -> None:
    assert align(words("abca"), words("abca")).to_after == [0, 1, 2, 3]
    assert align(words("aab"), words("ab")).to_after == [0, -1, 1]


def test_strict_keys_come_before_loose_ones() -> None:
    found = align(words("Aa"), words("aA"))
    assert found.to_after == [1, 0]
    assert pairs("A", "a") == "a"


def test_pieces_without_keys_never_pair() -> None:
    assert pairs("a.b", "a.b") == "a-b"


def test_anchors_keep_the_order_of_most() -> None:
    found = align(words("abcd"), words("bcda"))
    assert found.to_after == [3, 0, 1, 2]
    assert found.anchors == [(1, 0), (2, 1), (3, 2)]


def test_a_swap_of_equals_leaves_no_anchor_to_chance() -> None:
    assert align(words("ab"), words("ba")).anchors == []


def test_nothing_against_something() -> None:
    assert align([], words("ab")) == Alignment([], [-1, -1], [])


@given(st.text("abcAB.", max_size=12), st.text("abcAB.", max_size=12))
def test_the_answer_does_not_depend_on_the_side(before: str, after: str) -> None:
    there, back = align(words(before), words(after)), align(words(after), words(before))
    assert mirrored(there) == Alignment(back.to_after, back.to_before, back.anchors)
    for i, j in enumerate(there.to_after):
        assert j < 0 or there.to_before[j] == i
    firsts, seconds = [i for i, _ in there.anchors], [j for _, j in there.anchors]
    assert firsts == sorted(firsts)
    assert seconds == sorted(seconds)
