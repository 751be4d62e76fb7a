"""Does the comparison breach a gate of `--fail-on`, and can it be judged at all?

A gate is a name and how much more is allowed: `slower=5%`, `launches=+2`, `syncs` (none). `slower` needs a verdict: it is
breached where the after side is slower beyond the noise and by more than the tolerance. A slowdown beyond the tolerance
that the noise could explain is not judged, for a gate must never pass on "cannot tell". Counts are exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from gapless.comparison import words
from gapless.model.diff import Diff
from gapless.model.errors import UsageError

Pair = tuple[float | None, float | None]
_GATE = re.compile(r"^(?P<name>[a-z-]+)(?:=(?P<sign>\+?)(?P<amount>\d+(?:\.\d+)?)(?P<unit>%|)|)$")


def _count(what: str) -> Callable[[Diff], Pair]:
    return lambda diff: next(((row.before, row.after) for row in diff.counts if row.what == what), (None, None))


def _bytes(diff: Diff) -> Pair:
    rows = [row for row in diff.counts if row.unit == "bytes"]
    known = any(row.what == "copies" and None not in (row.before, row.after) for row in diff.counts)
    return (sum(r.before or 0 for r in rows), sum(r.after or 0 for r in rows)) if known else (None, None)


COUNTED: dict[str, tuple[str, Callable[[Diff], Pair]]] = {
    "kernels": ("kernels a step", _count("kernels")),
    "launches": ("launches a step", _count("launches")),
    "syncs": ("waits for the GPU a step", _count("syncs")),
    "copies": ("copies a step", _count("copies")),
    "copy-bytes": ("bytes copied a step", _bytes),
    "allocations": ("allocation calls a step", _count("allocations")),
    "host-ops": ("host ops a step", _count("host ops")),
    "graph-breaks": ("graph breaks a step", lambda d: (d.compile.before.graph_breaks, d.compile.after.graph_breaks)),
    "recompiles": ("compilations a step", lambda d: (d.compile.before.recompiles, d.compile.after.recompiles)),
}
"""Gates on counts: how the count is called, and where it is on both sides."""
NAMES = ("slower", *COUNTED)


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate: `allowed` more in absolute numbers, or as a share where `relative`."""

    name: str
    allowed: float
    relative: bool
    text: str


@dataclass(frozen=True, slots=True)
class Judged:
    """One gate's result: breached, or not judged, and the sentence that says so; both False is a pass."""

    gate: Gate
    breached: bool
    unknown: bool
    sentence: str


def parse(text: str) -> Gate:
    """Read one gate. Raises UsageError where it is none."""
    found = _GATE.match(text.strip())
    if found is None or found["name"] not in NAMES:
        raise UsageError(
            f"--fail-on {text}: not a gate; write NAME, NAME=+N or NAME=N%, NAME being one of {', '.join(NAMES)}"
        )
    amount, relative = float(found["amount"] or 0), found["unit"] == "%"
    if found["name"] == "slower" and found["amount"] is not None and not relative:
        raise UsageError(f"--fail-on {text}: a slowdown is allowed in percent, e.g. slower=5%")
    return Gate(found["name"], amount / 100 if relative else amount, relative, text.strip())


def judge_gates(diff: Diff, gates: list[Gate]) -> list[Judged]:
    """Every gate's result, in the order asked."""
    return [_slower(diff, gate) if gate.name == "slower" else _more(diff, gate) for gate in gates]


def _slower(diff: Diff, gate: Gate) -> Judged:
    s = diff.speedup
    value = s.value if s.basis == "unprofiled" else s.recorded
    if s.verdict == "undecided" or s.basis == "none" or value is None or value <= 0:
        return Judged(gate, False, True, f"{gate.text}: whether the step is slower cannot be told: {s.why}")
    slowdown = 1 / value - 1
    told = f"{gate.text}: the step takes {abs(slowdown):.1%} {'more' if slowdown > 0 else 'less'} time"
    if slowdown <= gate.allowed:
        return Judged(gate, False, False, told)
    if s.verdict == "slower":
        return Judged(gate, True, False, told)
    if not gate.relative:
        return Judged(gate, False, False, f"{told}, within the noise of {s.noise or 0:.0%}")
    return Judged(gate, False, True, f"{told}, which the noise of {s.noise or 0:.0%} may explain; record more steps")


def _more(diff: Diff, gate: Gate) -> Judged:
    what, pair = COUNTED[gate.name]
    before, after = pair(diff)
    if before is None or after is None:
        side = "before" if before is None else "after"
        return Judged(gate, False, True, f"{gate.text}: the {side} trace does not hold the {what}")
    limit = before * (1 + gate.allowed) if gate.relative else before + gate.allowed
    return Judged(
        gate, after > limit + 1e-9, False, f"{gate.text}: {words.count(after)} {what}, {words.count(before)} before"
    )
