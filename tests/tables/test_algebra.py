"""Interval and line algebra against a model of plain sets of integers, and nesting against a plain stack."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gapless.tables import intervals, nesting, segments

spans = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=14)


def arrays(pairs: list[tuple[int, int]]) -> tuple[intervals.Int, intervals.Int]:
    start = intervals.as_ns([s for s, _ in pairs])
    return start, start + intervals.as_ns([d for _, d in pairs])


def instants(start: intervals.Int, end: intervals.Int) -> set[int]:
    return {t for s, e in zip(start.tolist(), end.tolist(), strict=True) for t in range(s, e)}


@given(spans)
def test_merge_covers_the_same_instants_once(pairs: list[tuple[int, int]]) -> None:
    start, end = arrays(pairs)
    merged = intervals.merge(start, end)
    assert instants(*merged) == instants(start, end)
    assert intervals.total(merged) == len(instants(start, end))
    assert (merged[0][1:] > merged[1][:-1]).all()


@given(spans, spans)
def test_set_operations_are_those_of_sets(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    a, b = intervals.merge(*arrays(left)), intervals.merge(*arrays(right))
    in_a, in_b = instants(*a), instants(*b)
    assert instants(*intervals.subtract(a, b)) == in_a - in_b
    assert instants(*intervals.intersect(a, b)) == in_a & in_b
    assert instants(*intervals.complement(a, 5, 40)) == set(range(5, 40)) - in_a


@given(spans, spans)
def test_covered_time_of_each_interval(sets: list[tuple[int, int]], asked: list[tuple[int, int]]) -> None:
    merged, (start, end) = intervals.merge(*arrays(sets)), arrays(asked)
    inside = instants(*merged)
    expected = [len(inside & set(range(s, e))) for s, e in zip(start.tolist(), end.tolist(), strict=True)]
    assert intervals.covered(merged, start, end).tolist() == expected


@given(st.lists(spans, min_size=1, max_size=4))
def test_paint_gives_each_instant_to_the_first_layer_that_has_it(layers: list[list[tuple[int, int]]]) -> None:
    sets = [intervals.merge(*arrays(pairs)) for pairs in layers]
    whole = (intervals.as_ns([0]), intervals.as_ns([80]))
    line = segments.paint([*((one, i) for i, one in enumerate(sets)), (whole, 99)], 0, 80)
    owner = {t: label for s, e, label in zip(*(a.tolist() for a in line), strict=True) for t in range(s, e)}
    members = [instants(*one) for one in sets]
    assert owner == {t: next((i for i, m in enumerate(members) if t in m), 99) for t in range(80)}
    assert int((line[1] - line[0]).sum()) == 80


@given(spans, spans)
def test_split_tiles_what_both_cover(pieces: list[tuple[int, int]], asked: list[tuple[int, int]]) -> None:
    start, end = intervals.merge(*arrays(pieces))
    line = (start, end, np.arange(start.size))
    query = intervals.merge(*arrays(asked))
    _, low, high = segments.split(line, *query)
    assert instants(low, high) == instants(start, end) & instants(*query)
    assert (low[1:] >= high[:-1]).all()


nested = st.recursive(st.just([]), lambda inner: st.lists(inner, max_size=3), max_leaves=12)


def lay_out(tree: list[object], start: int, rows: list[tuple[int, int, int]], parent: int) -> int:
    """Rows (start, end, parent) of a tree, children strictly inside; returns the end."""
    at = start
    for child in tree:
        mine = len(rows)
        rows.append((at + 1, 0, parent))
        finish = lay_out(child, at + 2, rows, mine) + 2  # type: ignore[arg-type]
        rows[mine] = (at + 1, finish, parent)
        at = finish
    return at + 1


@given(nested)
def test_nesting_finds_the_tree_and_flatten_the_innermost(tree: list[object]) -> None:
    rows: list[tuple[int, int, int]] = []
    lay_out(tree, 0, rows, -1)
    start, end = intervals.as_ns([r[0] for r in rows]), intervals.as_ns([r[1] for r in rows])
    group = np.zeros(start.size, dtype=np.int64)
    parent = nesting.parents(group, start, end, tolerance_ns=0)
    assert parent.tolist() == [r[2] for r in rows]
    line = nesting.flatten(start, end, parent)
    owner = {t: label for s, e, label in zip(*(a.tolist() for a in line), strict=True) for t in range(s, e)}
    expected = {}
    for row, (s, e, _) in enumerate(rows):
        expected.update(dict.fromkeys(range(s, e), row))
    assert owner == expected


def test_a_child_that_outlasts_its_parent_within_the_tolerance_is_still_its_child() -> None:
    start, end = intervals.as_ns([0, 10, 50]), intervals.as_ns([100, 60, 100_400])
    group = np.zeros(3, dtype=np.int64)
    assert nesting.parents(group, intervals.as_ns([0, 10]), intervals.as_ns([100, 600]), 1000).tolist() == [-1, 0]
    parent = nesting.parents(group, start, end, 1000)
    assert parent.tolist() == [-1, 0, -1]
    assert nesting.trim(group, start, end, parent).tolist() == [50, 50, 100_400]


@given(st.lists(spans, max_size=5))
def test_a_stack_gives_each_instant_to_the_first_line_that_has_it(layers: list[list[tuple[int, int]]]) -> None:
    sets = [intervals.merge(*arrays(pairs)) for pairs in layers]
    line = segments.stack([(*one, np.full(one[0].size, i)) for i, one in enumerate(sets)])
    owner = {t: label for s, e, label in zip(*(a.tolist() for a in line), strict=True) for t in range(s, e)}
    members = [instants(*one) for one in sets]
    assert owner == {t: next(i for i, m in enumerate(members) if t in m) for t in set().union(*members)}
    assert (line[0][1:] >= line[1][:-1]).all()


@given(nested, st.data())
def test_nearest_and_topmost_are_the_ends_of_the_flagged_ancestors(tree: list[object], data: st.DataObject) -> None:
    rows: list[tuple[int, int, int]] = []
    lay_out(tree, 0, rows, -1)
    parent = intervals.as_ns([r[2] for r in rows])
    flag = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), dtype=bool)
    chains = []
    for row in range(len(rows)):
        chain = []
        while row >= 0:
            if flag[row]:
                chain.append(row)
            row = rows[row][2]
        chains.append(chain or [-1])
    assert nesting.nearest(flag, parent).tolist() == [chain[0] for chain in chains]
    assert nesting.topmost(flag, parent).tolist() == [chain[-1] for chain in chains]
