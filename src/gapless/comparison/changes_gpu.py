"""What was changed in the GPU's own work: attention, optimizer, number formats, layouts, streams, single ops?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from gapless.analyses.op_costs import base_name
from gapless.comparison import words
from gapless.comparison.facts import Facts
from gapless.comparison.fusion import alike
from gapless.comparison.work import Work
from gapless.model.diff import Change

NAMED, HINT, WEAK = 2.0, 1.8, 1.5
_MATH_OPS = ("mm", "bmm", "addmm", "baddbmm", "matmul", "linear", "convolution", "conv")
_LAYOUT_OPS = ("contiguous", "clone", "reshape")
_COPY_BYTES = 1e6
_COMMON_OPS = ("copy_", "clone", "_to_copy", "to", "contiguous", "empty_like")
_SUBSTANTIAL = 0.5
"""Share of a sort of work that must go before it counts as changed."""


def gpu_changes(f: Facts) -> Iterator[Change]:
    """Changes of the GPU's own work, in a fixed order."""
    yield from _attention(f)
    yield from _optimizer(f)
    yield from _precision(f)
    yield from _less_of(f, lambda p: p.identity.cast is True, "dtype-conversion", "dtype conversion")
    yield from _less_of(
        f, _is_layout_copy, "layout-conversion", "copy into another layout", "copies into another layout"
    )
    yield from _device_copies(f)
    yield from _other_kernels(f)
    yield from _slower_kernels(f)
    yield from _streams(f)
    yield from _less_of(f, lambda p: p.identity.family == "collective", "small-collectives", "collective")
    yield from _ops(f)


def _total(pieces: Sequence[Work]) -> float:
    return sum(p.ns for p in pieces) / 1e6


def _attention(f: Facts) -> Iterator[Change]:
    """Written-out attention became a fused kernel, or the reverse."""
    fused = [
        [p for p in pieces if p.identity.family == "attention" and not p.identity.helper] for pieces in (f.old, f.new)
    ]
    if bool(fused[0]) == bool(fused[1]):
        return
    softmax = [[p for p in pieces if p.identity.family == "softmax"] for pieces in (f.old, f.new)]
    gain = 1 if fused[1] else -1
    if len(softmax[0]) == len(softmax[1]):
        return
    names = Counter(p.label for p in (fused[1] or fused[0]))
    when = "now runs in fused kernels" if gain > 0 else "no longer runs in fused kernels"
    rows = f.fusion.fused if gain > 0 else f.fusion.unfused
    saved = sum(abs(r.before_ms - r.after_ms) for r in rows) or abs(_total(f.old) - _total(f.new))
    yield Change(
        "attention", "unfused-attention", f"attention {when} ({names.most_common(1)[0][0]})", gain * saved, NAMED
    )


def _optimizer(f: Facts) -> Iterator[Change]:
    """The optimizer's loop over parameters became few kernels, or the reverse."""
    mine = [[p for p in pieces if _of_optimizer(p)] for pieces in (f.old, f.new)]
    if not mine[0] or not mine[1] or max(map(len, mine)) < 2 * min(map(len, mine)):
        return
    host = [side.get("optimizer", 0.0) + _launching(f, index) for index, side in enumerate(f.host)]
    label = Counter(p.label for p in min(mine, key=len)).most_common(1)[0][0]
    text = f"the optimizer runs {len(mine[1])} kernels a step instead of {len(mine[0])} ({label})"
    yield Change("optimizer", "unfused-optimizer", text, host[0] - host[1], NAMED)


def _of_optimizer(p: Work) -> bool:
    return p.identity.family == "optimizer" or any(op.startswith("Optimizer.step") for op in p.ops)


def _launching(f: Facts, index: int) -> float:
    return f.host[index].get("launch", 0.0)


def _precision(f: Facts) -> Iterator[Change]:
    """Matrix products and convolutions by the number format they are computed in."""
    old, new = _formats(f.old), _formats(f.new)
    if not old or not new:
        return
    first, second = (max(d, key=lambda k: (d[k], k)) for d in (old, new))
    if (
        first == second
        or old[first] < _SUBSTANTIAL * sum(old.values())
        or new[second] < _SUBSTANTIAL * sum(new.values())
    ):
        return
    kind = "fp32-matmul" if "fp32" in (first, second) else "dtype-conversion"
    saved = sum(old.values()) - sum(new.values())
    yield Change("precision", kind, f"matrix products run in {second} instead of {first}", saved, NAMED)


def _formats(pieces: Sequence[Work]) -> dict[str, float]:
    found: dict[str, float] = {}
    for p in pieces:
        math = p.identity.family in ("gemm", "convolution") or any(
            base_name(op).startswith(_MATH_OPS) or "conv" in op for op in p.ops
        )
        if not math or p.identity.family in ("memcpy", "memset", "layout") or p.identity.helper:
            continue
        dtype = p.identity.dtype or (p.cost.dtype if p.cost else None)
        if p.cost is not None and p.cost.dtype == "fp32":
            dtype = "fp32" if p.identity.tensor_core is not True else "tf32"
        if dtype is not None:
            found[dtype] = found.get(dtype, 0.0) + p.ns / 1e6
    return found


def _is_layout_copy(p: Work) -> bool:
    known = p.identity
    if known.family == "layout":
        return True
    moves = known.family == "copy" and known.cast is not True
    return moves and any(base_name(op) in _LAYOUT_OPS for op in p.ops)


def _device_copies(f: Facts) -> Iterator[Change]:
    """Whole tensors copied inside the device, by the op that the user wrote."""
    sums: dict[str, list[float]] = {}
    for sign, pieces in ((1, f.old), (-1, f.new)):
        for p in pieces:
            if p.identity.family == "memcpy" and "DtoD" in p.identity.canonical:
                op = next((op for op in p.ops if base_name(op) not in _COMMON_OPS), p.label)
                entry = sums.setdefault(op, [0.0, 0.0])
                entry[0] += sign * (p.bytes or 0.0)
                entry[1] += sign * p.ns / 1e6
    for op, (size, ms) in sorted(sums.items()):
        if abs(size) >= _COPY_BYTES:
            state = "gone" if size > 0 else "new"
            yield Change(
                f"copies in {op}", "", f"{words.size(abs(size))} a step copied inside {op} are {state}", ms, HINT
            )


def _other_kernels(f: Facts) -> Iterator[Change]:
    """Work that stayed but runs in another kernel: the pair of kernels with the largest difference."""
    found: dict[tuple[str, str], float] = {}
    for i, j in enumerate(f.pairs.to_after):
        if j >= 0 and not alike(f.old[i], f.new[j]):
            key = (f.old[i].identity.short, f.new[j].identity.short)
            found[key] = found.get(key, 0.0) + (f.old[i].ns - f.new[j].ns) / 1e6
    if found:
        (old, new), ms = max(found.items(), key=lambda item: (abs(item[1]), item[0]))
        yield Change("kernel", "", f"{new} does what {old} did", ms, HINT)


def _slower_kernels(f: Facts) -> Iterator[Change]:
    """A kernel that both sides run as often and on as much, but that takes longer: the one with the largest difference.

    A collective's kernel lasts until the last rank has come, so a longer one usually waits for another rank.
    """
    rows = [row for row in f.kernels.same if row.change != "same" and not row.resized]
    if not rows:
        return
    row = max(rows, key=lambda r: (abs(r.before_ms - r.after_ms), r.full_name, r.full_name_after))
    kind = "late-rank" if row.family == "collective" else ""
    name = row.name if row.before_ms >= row.after_ms else row.name_after
    text = f"{name} takes {words.ms(row.after_ms)} of a step instead of {words.ms(row.before_ms)}"
    yield Change("slower kernel", kind, text, row.before_ms - row.after_ms, HINT)


def _less_of(f: Facts, test: Callable[[Work], bool], kind: str, one: str, many: str | None = None) -> Iterator[Change]:
    """Kernels of a sort of which most went (or came)."""
    old, new = [p for p in f.old if test(p)], [p for p in f.new if test(p)]
    if max(len(old), len(new)) == 0 or min(len(old), len(new)) > _SUBSTANTIAL * max(len(old), len(new)):
        return
    fewer = len(old) - len(new)
    thing = words.plural(abs(fewer), f"{one} a step", f"{many or one + 's'} a step")
    yield Change(
        kind,
        kind,
        f"{thing} {'is' if abs(fewer) == 1 else 'are'} {'gone' if fewer > 0 else 'new'}",
        _total(old) - _total(new),
        NAMED,
    )


def _streams(f: Facts) -> Iterator[Change]:
    old, new = f.pair("streams")
    if not old or not new or old == new:
        return
    gpu = [s.p.unprofiled.gpu_ns / 1e6 if s.p.unprofiled else 0.0 for s in (f.before, f.after)]
    yield Change(
        "streams",
        "serial-streams",
        f"kernels run on {words.plural(new, 'stream')} instead of {words.count(old)}",
        gpu[0] - gpu[1],
        HINT,
    )


def _ops(f: Facts) -> Iterator[Change]:
    """The stretch of the step that changed most, by its ops; only where the kernels differ at all."""
    kernels = f.pair("kernels")
    counted = Counter(p.label for p in f.old if p.is_kernel)
    counted.subtract(Counter(p.label for p in f.new if p.is_kernel))
    if not counted:
        return
    label, fewer = max(counted.items(), key=lambda item: (abs(item[1]), item[0]))
    if kernels[0] != kernels[1] and abs(fewer) >= 2:
        word = "fewer" if fewer > 0 else "more"
        times = [sum(p.ns for p in pieces if p.label == label) / 1e6 for pieces in (f.old, f.new)]
        kind = "launch-bound"
        yield Change(
            f"ops {label}", kind, f"{abs(fewer)} {word} kernels a step from {label}", times[0] - times[1], WEAK
        )
    rows = [row for row in f.structure.changed if row.before and row.after]
    if rows:
        row = rows[0]
        text = f"{words.listed(row.before[:4])} became {words.listed(row.after[:4])}"
        yield Change("structure", "", text, row.before_ms - row.after_ms, WEAK)
