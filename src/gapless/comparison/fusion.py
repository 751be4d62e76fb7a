"""Which kernels do the work of several kernels of the other side, and did anything fuse at all?

A generated kernel names the ops that the compiler put into it (`triton_poi_fused_gelu_mul_0`): a kernel that is gone
belongs to the nearest generated one that names its op, counted in anchors between them. Attention, optimizer and
hand-written Triton kernels name nothing: they did what the kernels did that stood in their stretch between anchors.
Bytes that no longer travel: the compiler's own figure against the ops' where it was recorded, else every output but the
last one is an intermediate that is no longer written and read.

Classes: `kernel` (one kernel does the work of two or more), `dispatcher` (ops merged, `mm` and `add` became `addmm`, but
the matrix kernel is the same), `mixed` (both), `none`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gapless.analyses.op_costs import base_name
from gapless.comparison.align import Alignment
from gapless.comparison.kernels import twin_key
from gapless.comparison.work import Work
from gapless.model.diff import FusedRow, FusionClass

FARTHEST = 60
"""Anchors that may lie between a kernel and the one it went into: compilers reorder, but not across a whole model."""
LEAST_REPLACED = 1.5
"""Kernels replaced by one launch, on average, from which on it is fusion and not replacement."""
_SHELLS = ("attention", "optimizer")
MOST_BY_HAND = 8
"""Kernels that a hand-written one without op names may stand for, where it is alone in its stretch."""
_ATTENTION_PARTS = ("softmax", "pointwise", "copy", "memcpy", "reduction", "random", "other")
_NEVER_ATTENTION = (
    "gelu",
    "silu",
    "relu",
    "native_",
    "layer_norm",
    "index",
    "embedding",
    "mean",
    "pow",
    "sqrt",
    "conv",
)
_PLAIN = ("mm", "bmm", "matmul", "mv", "convolution", "cudnn_convolution", "conv2d")
_MERGED = (
    "addmm", "baddbmm", "addbmm", "addmv", "_addmm_activation", "linear", "cudnn_convolution_add_relu",
    "cudnn_convolution_relu",
)  # fmt: skip
Merge = tuple[str, str, str]
_ABSORBED = ("add", "add_", "relu", "relu_", "gelu")


def absorbed(old: Sequence[Work], new: Sequence[Work], pairs: Alignment) -> dict[int, list[int]]:
    """For each unpaired kernel of `new` that did the work of unpaired pieces of `old`: those pieces, in order."""
    before = _ranks([i for i, _ in pairs.anchors], len(old))
    after = _ranks([j for _, j in pairs.anchors], len(new))
    free = [i for i, j in enumerate(pairs.to_after) if j < 0 and old[i].identity.family != "memset"]
    fresh = [j for j, i in enumerate(pairs.to_before) if i < 0 and new[j].is_kernel]
    by_name = _by_name(new, fresh)
    found: dict[int, list[int]] = {}
    rest = []
    for i in free:
        j = _named(old[i], before[i], by_name, after)
        if j is None:
            rest.append(i)
        else:
            found.setdefault(j, []).append(i)
    _by_place(old, new, rest, fresh, before, after, found)
    return {j: sorted(items) for j, items in sorted(found.items())}


def _ranks(anchors: list[int], size: int) -> list[int]:
    """How many anchors lie before each position."""
    return [bisect_left(anchors, k) for k in range(size)]


def plain(op: str) -> str:
    """An op's name as compilers spell it in kernel names: no namespace, overload or marking underscores."""
    return base_name(op).strip("_")


def _by_name(new: Sequence[Work], fresh: list[int]) -> dict[str, list[int]]:
    """Generated kernels by each op they name."""
    found: dict[str, list[int]] = {}
    for j in fresh:
        for name in {op.strip("_") for op in new[j].identity.fused_ops}:
            found.setdefault(name, []).append(j)
    return found


def _named(piece: Work, rank: int, by_name: dict[str, list[int]], after: list[int]) -> int | None:
    """The nearest generated kernel that names one of the piece's ops, the innermost first; later ones win ties."""
    for op in piece.ops:
        there = by_name.get(plain(op))
        if there:
            j = min(there, key=lambda j: (abs(after[j] - rank), after[j] < rank, j))
            return j if abs(after[j] - rank) <= FARTHEST else None
    return None


def _by_place(
    old: Sequence[Work], new: Sequence[Work], rest: list[int], fresh: list[int], before: list[int], after: list[int],
    found: dict[int, list[int]],
) -> None:  # fmt: skip
    """Give pieces that no name claims to the shell kernels of their stretch, in order and evenly."""
    shells: dict[int, list[int]] = {}
    in_stretch = Counter(after[j] for j in fresh)
    for j in fresh:
        known = new[j].identity
        alone = known.family == "triton" and not known.fused_ops and in_stretch[after[j]] == 1
        if (known.family in _SHELLS and not known.helper) or alone:
            shells.setdefault(after[j], []).append(j)
    stretches: dict[int, list[int]] = {}
    for i in rest:
        stretches.setdefault(before[i], []).append(i)
    for rank, items in stretches.items():
        there = shells.get(rank, [])
        families = {new[j].identity.family for j in there}
        if families == {"optimizer"}:
            items = [i for i in items if _of_optimizer(old[i])]
        elif families == {"attention"}:
            items = [i for i in items if _of_attention(old[i])]
            if not any("softmax" in old[i].label for i in items):
                continue
        if not there or len(items) <= len(there) or ("triton" in families and len(items) > MOST_BY_HAND):
            continue
        for k, i in enumerate(items):
            found.setdefault(there[k * len(there) // len(items)], []).append(i)


def _of_optimizer(piece: Work) -> bool:
    return piece.identity.family == "optimizer" or any(op.startswith("Optimizer") for op in piece.ops)


def _of_attention(piece: Work) -> bool:
    """Could this kernel be a part of attention that was written out? Batched products yes, layers and norms no."""
    name = base_name(piece.label)
    if piece.identity.family == "gemm":
        return name in ("bmm", "baddbmm", "matmul")
    return piece.identity.family in _ATTENTION_PARTS and not name.startswith(_NEVER_ATTENTION)


def fused_rows(old: Sequence[Work], new: Sequence[Work], taken: dict[int, list[int]]) -> list[FusedRow]:
    """One row for each kernel name that did the work of several kernels, largest time replaced first."""
    by_name: dict[str, list[int]] = {}
    for j in taken:
        by_name.setdefault(_name(new[j]), []).append(j)
    rows = []
    for members in by_name.values():
        olds = [i for j in members for i in taken[j]]
        if len(olds) < LEAST_REPLACED * len(members):
            continue
        saved = [_saved(old, taken[j], new[j]) for j in members]
        known = [value for value in saved if value is not None]
        rows.append(
            FusedRow(
                name=_name(new[members[0]]),
                replaces=list(dict.fromkeys(old[i].label for i in olds)),
                bytes_saved=float(sum(value for value, _ in known)) if known else None,
                count=float(len(members)),
                kernels=float(len(olds)),
                before_ms=sum(old[i].ns for i in olds) / 1e6,
                after_ms=sum(new[j].ns for j in members) / 1e6,
                bytes_exact=bool(known) and len(known) == len(saved) and all(exact for _, exact in known),
                source="name" if new[members[0]].identity.fused_ops else "place",
            )
        )  # fmt: skip
    return sorted(rows, key=lambda row: (-row.before_ms, row.name))


def _name(kernel: Work) -> str:
    """Generated kernels by their full name, which is short and tells; others as people call them."""
    return kernel.name if kernel.identity.family == "triton" else kernel.identity.short


def _saved(old: Sequence[Work], items: list[int], kernel: Work) -> tuple[float, bool] | None:
    """Bytes that no longer travel, and whether the new kernel's own traffic is known."""
    moved, written, seen = 0.0, [], set()
    for i in items:
        piece = old[i]
        if piece.identity.family == "memcpy":
            moved += 2 * (piece.bytes or 0.0)
            written.append(piece.bytes or 0.0)
        elif piece.cost is not None and piece.op_row not in seen:
            seen.add(piece.op_row)
            moved += piece.cost.bytes
            written.append(piece.cost.bytes_written)
    if not written:
        return None
    if kernel.kernel_gb is not None:
        return max(moved - kernel.kernel_gb * 1e9, 0.0), True
    if kernel.cost is not None and not kernel.identity.fused_ops:
        return max(moved - kernel.cost.bytes, 0.0), kernel.cost.exact
    return 2.0 * sum(written[:-1]), False


@dataclass(frozen=True, slots=True)
class Fusion:
    """Both directions: `fused`, `unfused` rows; `taken` (kernel of after -> pieces of before) and `given` the reverse."""

    fused: list[FusedRow]
    unfused: list[FusedRow]
    taken: dict[int, list[int]]
    given: dict[int, list[int]]
    kind: FusionClass
    why: str


def fusion(old: Sequence[Work], new: Sequence[Work], pairs: Alignment) -> Fusion:
    """What fused, in either direction."""
    back = mirrored(pairs)
    taken, given = absorbed(old, new, pairs), absorbed(new, old, back)
    fused, unfused = fused_rows(old, new, taken), fused_rows(new, old, given)
    merged, split = _merged(old, new, pairs.to_after, taken), _merged(new, old, pairs.to_before, given)
    return Fusion(fused, unfused, taken, given, *_class(old, new, pairs, fused, unfused, merged, split))


def _class(
    old: Sequence[Work], new: Sequence[Work], pairs: Alignment, fused: list[FusedRow], unfused: list[FusedRow],
    merged: list[Merge], split: list[Merge],
) -> tuple[FusionClass, str]:  # fmt: skip
    kernel = bool(fused or unfused)
    dispatcher = bool(merged or split)
    if kernel and dispatcher:
        return "mixed", f"{_kernel_text(fused, unfused)}; {_merge_text(merged, split, new, old)}"
    if kernel:
        return "kernel", _kernel_text(fused, unfused)
    if dispatcher:
        return "dispatcher", _merge_text(merged, split, new, old)
    if not any(piece.is_kernel for piece in (*old, *new)):
        return "none", "no kernels to look at"
    alone = any(j < 0 and old[i].is_kernel for i, j in enumerate(pairs.to_after))
    alone |= any(j >= 0 and not alike(old[i], new[j]) for i, j in enumerate(pairs.to_after))
    alone |= any(i < 0 and new[j].is_kernel for j, i in enumerate(pairs.to_before))
    return "none", "nothing fused" if alone else "nothing to fuse: the kernels are the same on both sides"


def alike(one: Work, other: Work) -> bool:
    """Are two pieces the same kernel, or twins of it?"""
    twin = twin_key(one.identity)
    return one.identity.canonical == other.identity.canonical or (twin is not None and twin == twin_key(other.identity))


def mirrored(pairs: Alignment) -> Alignment:
    """The same pairs with the sides swapped."""
    return Alignment(pairs.to_before, pairs.to_after, [(j, i) for i, j in pairs.anchors])


def _kernel_text(fused: list[FusedRow], unfused: list[FusedRow]) -> str:
    parts = []
    for rows, when in ((fused, "now does"), (unfused, "no longer does")):
        if rows:
            first = rows[0]
            others = f" (and {len(rows) - 1} more like it)" if len(rows) > 1 else ""
            parts.append(f"{first.name} {when} the work of {_listed(first.replaces)}{others}")
    return "; ".join(parts)


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:4]) + ([f"{len(names) - 4} other ops"] if len(names) > 4 else [])
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _merged(old: Sequence[Work], new: Sequence[Work], partner: list[int], taken: dict[int, list[int]]) -> list[Merge]:
    """(op, absorbed op, merged op) for each matrix kernel that stayed while its op took another one in."""
    inside = {i for items in taken.values() for i in items}
    ends = [i for i, j in enumerate(partner) if j < 0 and i not in inside and base_name(old[i].op or "") in _ABSORBED]
    found = []
    for i, j in enumerate(partner):
        if j < 0 or base_name(old[i].op or "") not in _PLAIN or base_name(new[j].op or "") not in _MERGED:
            continue
        follower = next((k for k in ends if k > i), None)
        if follower is not None:
            ends.remove(follower)
            found.append((old[i].label, old[follower].label, new[j].label))
    return found


def _merge_text(merged: list[Merge], split: list[Merge], new: Sequence[Work], old: Sequence[Work]) -> str:
    parts = []
    for rows, word, there in ((merged, "became", new), (split, "came out of", old)):
        if rows:
            plain_op, taken, whole = rows[0]
            copied = any(piece.identity.family == "memcpy" and piece.op == whole for piece in there)
            tail = " and a copy of the bias" if copied else ""
            parts.append(
                f"{plain_op} and {taken} {word} {whole}, which runs the same matrix kernel{tail}: merged by the dispatcher, not fused"
            )
    return "; ".join(parts)
