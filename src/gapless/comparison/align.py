"""Which piece of one sequence corresponds to which of the other?

Keys go from strict to loose; under each, the n-th unpaired piece with a key belongs to the n-th unpaired one with the
same key on the other side. Pairs that keep the order of most others are *anchors*: between two of them lies a stretch
that both sides did differently. Everything is linear but for a sort, so that steps of ten thousands of kernels align.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

Keys = Sequence[object | None]


@dataclass(frozen=True, slots=True)
class Alignment:
    """`to_after[i]`: the piece of the after side that piece i of the before side became, -1 if none; `to_before` the
    other way round. `anchors`: pairs in which both sides keep their order, by position."""

    to_after: list[int]
    to_before: list[int]
    anchors: list[tuple[int, int]]


def align(before: Sequence[Keys], after: Sequence[Keys]) -> Alignment:
    """Pair two sequences; each piece is given by its keys, all pieces having as many."""
    to_after, to_before = [-1] * len(before), [-1] * len(after)
    for level in range(max((len(keys) for keys in (*before[:1], *after[:1])), default=0)):
        waiting: dict[object, list[int]] = {}
        for j, keys in enumerate(after):
            if to_before[j] < 0 and keys[level] is not None:
                waiting.setdefault(keys[level], []).append(j)
        taken: dict[object, int] = {}
        for i, keys in enumerate(before):
            key = keys[level]
            if to_after[i] >= 0 or key is None or key not in waiting:
                continue
            turn = taken.get(key, 0)
            if turn < len(waiting[key]):
                j = waiting[key][turn]
                to_after[i], to_before[j], taken[key] = j, i, turn + 1
    pairs = [(i, j) for i, j in enumerate(to_after) if j >= 0]
    return Alignment(to_after, to_before, _in_order(pairs))


def _in_order(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The most pairs whose second members rise with the first: a longest increasing subsequence.

    Where there are several such choices only what two of them share is kept, one found from each side, so that the
    answer does not depend on which side is called before.
    """
    other = {(i, j) for j, i in _rising(sorted((j, i) for i, j in pairs))}
    return [pair for pair in _rising(pairs) if pair in other]


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    tails: list[int] = []
    at: list[int] = []
    previous = [-1] * len(pairs)
    for k, (_, j) in enumerate(pairs):
        spot = bisect_left(tails, j)
        previous[k] = at[spot - 1] if spot else -1
        if spot == len(tails):
            tails.append(j)
            at.append(k)
        else:
            tails[spot], at[spot] = j, k
    out, k = [], at[-1] if at else -1
    while k >= 0:
        out.append(pairs[k])
        k = previous[k]
    return out[::-1]
