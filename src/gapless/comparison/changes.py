"""What was changed? Differences with a signature of their own, named, the most telling first.

Each recogniser looks at one thing and says what is gone (or new, with the opposite sign), which kind of finding that
fixes, and how much time the thing itself took per step. Compilation comes first, since everything else follows from it;
then what the time of the thing is largest for. Mere differences of counts are named only where nothing else is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gapless.analyses.causes import Cause
from gapless.analyses.copies import copy_stats
from gapless.comparison import words
from gapless.comparison.changes_gpu import gpu_changes
from gapless.comparison.facts import Facts
from gapless.comparison.side import Side
from gapless.model.diff import Change
from gapless.tables.segments import split_by

LEAST_SHARE = 0.02
"""What takes less than 2 % of the longer step does not explain a difference of it."""
LEAST_PAUSES = 0.05
"""Pauses come and go with the machine: below 5 % of the step they are not the program's."""
STALL_NS = 300_000
"""Host time without any event from which on it is a pause and not the time between two ops."""
SYNC_NS = 3_000
"""What a wait costs the host besides waiting (H200: a return takes 3 us)."""
SMALL_BYTES, LEAST_PAGEABLE_BYTES, LEAST_READ_BYTES = 65_536, 1e6, 1e5
INSTEAD = 0.5
"""Share of bytes that must come from the other sort of memory for it to be a replacement."""
COMPILED, NAMED, HINT, COUNTED = 3.0, 2.0, 1.8, 1.0


def changes(f: Facts) -> list[Change]:
    """All changes that were recognised, the most telling first."""
    least = LEAST_SHARE * f.step_ms
    named: list[Change] = [c for look in (_compile, _syncs, _copies, _causes, _stalls, gpu_changes) for c in look(f)]
    telling = [_ranked(c, named) for c in named if c.weight >= COMPILED or abs(c.ms) >= least]
    if not telling:
        telling = [c for c in named if c.what != "slower kernel"] or list(_counted(f))
    return sorted(telling, key=lambda c: (-c.weight, -abs(c.ms), c.what))


def _ranked(change: Change, others: list[Change]) -> Change:
    """A wait inside a copy is told after the copy that it belongs to."""
    copied = any(c.kind in ("pageable-copy", "readback", "small-upload") for c in others)
    follows = copied and change.what in {f"syncs {op}" for op in _UPLOADS}
    return replace(change, weight=HINT) if follows else change


def gone(fewer: float, one: str, many: str = "", tail: str = "") -> str:
    """Words for something of which the before side has more each step (or, negative, less)."""
    single = words.count(abs(fewer)) == "1"
    state = "gone" if fewer > 0 else "new"
    return f"{words.plural(abs(fewer), one, many or None)} a step{tail} {'is' if single else 'are'} {state}"


def amount(fewer: float, thing: str) -> str:
    """The same for bytes."""
    return f"{words.size(abs(fewer))} a step {thing} are {'gone' if fewer > 0 else 'new'}"


def _compile(f: Facts) -> Iterator[Change]:
    old, new = f.compile.before, f.compile.after
    saved = (f.before.report.step.unprofiled_ms or 0.0) - (f.after.report.step.unprofiled_ms or 0.0)
    for one, other, sign, when in ((new, old, 1.0, "now"), (old, new, -1.0, "no longer")):
        if one.regions and not other.regions:
            graph = " into CUDA graphs" if one.graph_launches else ""
            tail = (
                f"; {'before' if sign > 0 else 'after'}, torch.compile gave up and the function ran eagerly"
                if other.gave_up
                else ""
            )
            kind = "graph-break" if other.gave_up else "launch-bound" if one.graph_launches else "unfused-pointwise"
            yield Change(
                "compile",
                kind,
                f"the step is {when} compiled{graph} (torch.compile){tail}",
                sign * abs(saved),
                COMPILED,
            )
    broken = old.graph_breaks + old.gave_up, new.graph_breaks + new.gave_up
    if old.regions and new.regions and broken[0] != broken[1]:
        more = broken[0] - broken[1]
        yield Change("graph-breaks", "graph-break", gone(more, "graph break", "graph breaks"), saved, COMPILED)
    if old.recompiles != new.recompiles:
        more = old.recompiles - new.recompiles
        times = [host.get("compile", 0.0) for host in f.host]
        text = gone(more, "compilation", "compilations")
        yield Change("recompiles", "recompilation", text, times[0] - times[1], COMPILED)
    if bool(old.graph_launches) != bool(new.graph_launches) and old.regions and new.regions:
        when = "now" if new.graph_launches else "no longer"
        yield Change("cuda-graph", "launch-bound", f"the step {when} runs as a CUDA graph", saved, COMPILED)


def _syncs(f: Facts) -> Iterator[Change]:
    """Waits by the op that makes them: how many fewer a step."""
    by_op: dict[tuple[str, str], list[float]] = {}
    for row in f.sync_sites:
        key = (row.origin, row.op or row.name)
        entry = by_op.setdefault(key, [0.0, 0.0, 0.0])
        entry[0] += row.before - row.after
        entry[1] += row.before_ms - row.after_ms
    for (origin, op), (fewer, ms, _) in sorted(by_op.items()):
        if abs(fewer) < 0.5:
            continue
        text = gone(fewer, "wait for the GPU", "waits for the GPU", f" in {op}")
        yield Change(f"syncs {op}", f"{origin}-sync", text, ms + fewer * SYNC_NS / 1e6, NAMED)


def _copies(f: Facts) -> Iterator[Change]:
    """Copies between host and device: pageable ones, read-backs, small uploads."""
    old, new = _copy_sums(f.before), _copy_sums(f.after)
    pageable = [sums.get(("HtoD", "pageable"), (0.0, 0.0, 0.0)) for sums in (old, new)]
    pinned = [sums.get(("HtoD", "pinned"), (0.0, 0.0, 0.0)) for sums in (old, new)]
    moved = pageable[0][1] - pageable[1][1]
    if abs(moved) > LEAST_PAGEABLE_BYTES:
        instead = (pinned[1][1] - pinned[0][1]) / moved > INSTEAD
        towards = "pinned" if moved > 0 else "pageable"
        text = (
            f"{words.size(abs(moved))} a step now come from {towards} host memory"
            if instead
            else amount(moved, "copied from pageable host memory")
        )
        yield Change("pageable copies", "pageable-copy", text, pageable[0][2] - pageable[1][2], NAMED)
    fewer = _small(old) - _small(new)
    if abs(fewer) >= 0.5:
        waited = [row for row in f.sync_sites if row.op in _UPLOADS]
        cost = _ms(old, "HtoD") - _ms(new, "HtoD")
        cost += sum(row.before_ms - row.after_ms + (row.before - row.after) * SYNC_NS / 1e6 for row in waited)
        text = gone(fewer, "small upload", "small uploads", " to the GPU")
        yield Change("small uploads", "small-upload", text, cost, NAMED)
    back = _bytes(old, "DtoH") - _bytes(new, "DtoH")
    if abs(back) > LEAST_READ_BYTES:
        text = amount(back, "copied back to the host")
        yield Change("read-backs", "readback", text, _ms(old, "DtoH") - _ms(new, "DtoH"), NAMED)


_UPLOADS = ("aten::to", "aten::_to_copy", "aten::copy_", "aten::detach_", "aten::lift_fresh")


_Sums = dict[tuple[str, str], tuple[float, float, float]]


def _copy_sums(side: Side) -> _Sums:
    """Copies per step by direction and host memory: count, bytes, milliseconds."""
    rows = np.flatnonzero(np.isin(side.s.steps.step_of_activity, side.used))
    found: _Sums = {}
    if rows.size == 0:
        return found
    for row in copy_stats(side.s.raw.activities[rows.tolist()]).iter_rows(named=True):
        key = (row["direction"], row["host_memory"])
        count, size, ms = found.get(key, (0.0, 0.0, 0.0))
        n = side.count
        found[key] = (count + row["count"] / n, size + (row["bytes"] or 0) / n, ms + row["total_ns"] / n / 1e6)
    return found


def _small(sums: _Sums) -> float:
    """Copies to the device that are small on average."""
    to_device = [(n, size) for (direction, _), (n, size, _) in sums.items() if direction == "HtoD" and n]
    return sum(n for n, size in to_device if size / n < SMALL_BYTES)


def _bytes(sums: _Sums, direction: str) -> float:
    return sum(size for (way, _), (_, size, _) in sums.items() if way == direction)


def _ms(sums: _Sums, direction: str) -> float:
    return sum(ms for (way, _), (_, _, ms) in sums.items() if way == direction)


_CAUSES: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("dataloader",), "input-bound", "waiting for data"),
    (("gc",), "gc-pause", "Python's garbage collection"),
    (("alloc", "free"), "allocator-churn", "allocating and freeing GPU memory"),
    (("pin",), "pin-in-step", "pinning host memory"),
    (("autotune",), "autotuning", "autotuning kernels"),
    (("guard",), "compile-overhead", "torch.compile's guards"),
)
COMMON_GUARD_MS = 0.3


def _causes(f: Facts) -> Iterator[Change]:
    """Host time with a cause of its own."""
    old, new = f.host
    for causes, kind, text in _CAUSES:
        before, after = sum(old.get(c, 0.0) for c in causes), sum(new.get(c, 0.0) for c in causes)
        if abs(before - after) < max(LEAST_SHARE * f.step_ms, COMMON_GUARD_MS if kind == "compile-overhead" else 0.02):
            continue
        yield Change(
            causes[0],
            kind,
            f"{text} takes {words.ms(after)} of a step instead of {words.ms(before)}",
            before - after,
            NAMED,
        )


def _stalls(f: Facts) -> Iterator[Change]:
    """Pauses of the host in Python, without any event."""
    before, after = _paused_ms(f.before), _paused_ms(f.after)
    if abs(before - after) > max(LEAST_PAUSES * f.step_ms, STALL_NS / 1e6):
        text = f"pauses of the host in Python take {words.ms(after)} of a step instead of {words.ms(before)}"
        yield Change("pauses", "host-stall", text, before - after, NAMED)


def _paused_ms(side: Side) -> float:
    """Time per step in stretches of Python of at least `STALL_NS` in which the stepping threads recorded nothing."""
    states, steps = side.s.states, side.s.steps
    if states.main < 0:
        return 0.0
    start, end, label = states.shared[states.main]
    python = label == int(Cause.PYTHON)
    line = (start[python], end[python], label[python])
    _, _, low, high = split_by(line, steps.start[side.used], steps.end[side.used])
    long = high - low >= STALL_NS
    return float((high - low)[long].sum()) / side.count / 1e6


def _counted(f: Facts) -> Iterator[Change]:
    """Counts that differ, where nothing with a signature does."""
    for what, text in (
        ("kernels", "kernels"),
        ("launches", "launches"),
        ("syncs", "waits for the GPU"),
        ("host ops", "host ops"),
    ):
        old, new = f.pair(what)
        if old != new and f.by_name.get(what, (None, None))[0] is not None and f.by_name[what][1] is not None:
            yield Change(what, "", f"{words.count(new)} {text} a step instead of {words.count(old)}", 0.0, COUNTED)
