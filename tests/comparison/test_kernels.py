"""The multiset of kernels on literal groups: equal ones first, then twins, then other sizes."""

from __future__ import annotations

from gapless.analyses.kernel_names import decode
from gapless.comparison.kernels import Group, match, twin_key

from .pieces import ADD, GELU, GEMM, GEMM_ADD, GEMM_OTHER


def group(name: str, count: float, size: int = 1) -> Group:
    return Group(decode(name), name, "kernel", (size, 1, 1, None), None, None, count, count, 1.0, 0.001, None)


def matched(old: list[Group], new: list[Group]) -> list[tuple[str, str, float]]:
    return [(a.name, b.name, n) for a, b, n in match(old, new)]


def test_equal_ones_pair_as_often_as_both_have_them() -> None:
    old, new = [group(ADD, 3)], [group(ADD, 2)]
    assert matched(old, new) == [(ADD, ADD, 2)]
    assert (old[0].left, new[0].left) == (1, 0)


def test_twins_are_the_same_kernel_with_another_epilogue() -> None:
    assert twin_key(decode(GEMM)) == twin_key(decode(GEMM_ADD)) is not None
    assert twin_key(decode(GEMM)) != twin_key(decode(GEMM_OTHER))
    assert twin_key(decode(ADD)) is None
    assert matched([group(GEMM, 1)], [group(GEMM_ADD, 1)]) == [(GEMM, GEMM_ADD, 1)]
    assert matched([group(GEMM, 1)], [group(GEMM_OTHER, 1)]) == []


def test_equal_beats_twin_and_same_size_beats_other_size() -> None:
    old = [group(GEMM, 1, size=1), group(GEMM, 1, size=2)]
    new = [group(GEMM_ADD, 1, size=1), group(GEMM, 1, size=2)]
    assert matched(old, new) == [(GEMM, GEMM, 1), (GEMM, GEMM_ADD, 1)]
    resized = match([group(ADD, 1, size=1)], [group(ADD, 1, size=9)])
    assert [(a.size[0], b.size[0]) for a, b, _ in resized] == [(1, 9)]


def test_swapping_sides_mirrors_the_pairs() -> None:
    def sides() -> tuple[list[Group], list[Group]]:
        return [group(ADD, 2), group(ADD, 3), group(GELU, 1)], [group(ADD, 4), group(ADD, 1), group(GELU, 2)]

    there = [(a.count, b.count, n) for a, b, n in match(*sides())]
    back = [(b.count, a.count, n) for a, b, n in match(*reversed(sides()))]
    assert sorted(there) == sorted(back)
