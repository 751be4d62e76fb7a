"""What happened to the structure of a step: which stretches of GPU work changed, and which ops went into which region?

Both steps are aligned by what each piece of GPU work is, by its order, shapes and launching ops (see `work`, `align`).
A stretch is what lies between two neighbouring anchors; equal stretches are counted together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Literal

from gapless.comparison.align import Alignment
from gapless.comparison.work import MOST, Work
from gapless.model.diff import RegionRow, Structure, StructureRow

MOST_ROWS, MOST_OPS = 100, 24
_Key = tuple[tuple[str, ...], tuple[str, ...], str | None]


def structure(
    old: Sequence[Work], new: Sequence[Work], pairs: Alignment, taken: dict[int, list[int]], given: dict[int, list[int]]
) -> Structure:
    """The comparison of two steps' pieces. `taken`: kernel of `new` -> pieces of `old` it absorbed; `given` the reverse."""
    rows = _stretches(old, new, pairs)
    regions = [
        *_regions(old, new, pairs.to_before, taken, "after"),
        *_regions(new, old, pairs.to_after, given, "before"),
    ]
    cut = MOST in (len(old), len(new))
    return Structure(
        matched=sum(j >= 0 for j in pairs.to_after),
        only_before=sum(j < 0 for j in pairs.to_after),
        only_after=sum(i < 0 for i in pairs.to_before),
        changed=rows[:MOST_ROWS],
        regions=regions[:MOST_ROWS],
        note=f"only the first {MOST} pieces of GPU work of a step were aligned" if cut else "",
    )


def _stretches(old: Sequence[Work], new: Sequence[Work], pairs: Alignment) -> list[StructureRow]:
    before, after = [i for i, _ in pairs.anchors], [j for _, j in pairs.anchors]
    gaps: dict[int, tuple[list[Work], list[Work]]] = {}
    for i, j in enumerate(pairs.to_after):
        if j < 0:
            gaps.setdefault(bisect_left(before, i), ([], []))[0].append(old[i])
    for j, i in enumerate(pairs.to_before):
        if i < 0:
            gaps.setdefault(bisect_left(after, j), ([], []))[1].append(new[j])
    same: dict[_Key, list[tuple[list[Work], list[Work]]]] = {}
    for _, (mine, other) in sorted(gaps.items()):
        module = next((piece.module for piece in (*mine, *other) if piece.module), None)
        key = (tuple(runs(map(_shown, mine))), tuple(runs(map(_shown, other))), _kind(module))
        same.setdefault(key, []).append((mine, other))
    rows = []
    for (was, became, module), found in same.items():
        olds, news = [p for mine, _ in found for p in mine], [p for _, other in found for p in other]
        first, last = (next((p.region for p in pieces if p.region), None) for pieces in (olds, news))
        rows.append(
            StructureRow(
                list(was[:MOST_OPS]), list(became[:MOST_OPS]), len(found), _ms(olds), _ms(news), first, last, module
            )
        )
    return sorted(rows, key=lambda r: (-abs(r.before_ms - r.after_ms), -(r.before_ms + r.after_ms), r.before, r.after))


def _shown(piece: Work) -> str:
    """The op that launched a kernel; copies and memsets say what they are."""
    if piece.is_kernel:
        return piece.label
    return f"{'memset' if piece.identity.family == 'memset' else 'copy'} in {piece.label}"


def _kind(module: str | None) -> str | None:
    """A module's class, without the number that tells its instances apart."""
    return module.rpartition("_")[0] or module if module and module.rpartition("_")[2].isdigit() else module


def runs(labels: Iterable[str]) -> list[str]:
    """Labels in order, neighbours that repeat written once: `aten::add x3`."""
    out = []
    for label, group in groupby(labels):
        n = sum(1 for _ in group)
        out.append(f"{label} x{n}" if n > 1 else label)
    return out


def _ms(pieces: Iterable[Work]) -> float:
    return sum(piece.ns for piece in pieces) / 1e6


def _regions(
    other: Sequence[Work],
    mine: Sequence[Work],
    partner: list[int],
    taken: dict[int, list[int]],
    side: Literal["before", "after"],
) -> list[RegionRow]:
    """Each compiled region of `mine` with the uncompiled ops of `other` that it took over."""
    found: dict[str, set[int]] = {}
    count: dict[str, int] = {}
    for j, piece in enumerate(mine):
        if piece.region is None:
            continue
        count[piece.region] = count.get(piece.region, 0) + 1
        theirs = [partner[j]] if partner[j] >= 0 else taken.get(j, [])
        eager = (i for i in theirs if other[i].region is None and other[i].identity.family != "memset")
        found.setdefault(piece.region, set()).update(eager)
    return [
        RegionRow(region, side, count[region], runs(_user_op(other[i]) for i in sorted(items))[:MOST_OPS])
        for region, items in sorted(found.items())
        if items
    ]


def _user_op(piece: Work) -> str:
    """The outermost operator of the piece, as the user wrote it."""
    return next((op for op in reversed(piece.ops) if op.startswith("aten::")), piece.label)
