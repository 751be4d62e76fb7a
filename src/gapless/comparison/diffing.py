"""How do the answers of all questions become one comparison?"""

from __future__ import annotations

from dataclasses import dataclass, replace

import gapless
from gapless.comparison.align import align
from gapless.comparison.changes import changes
from gapless.comparison.comparable import FRAME_ROWS, GPU_ROWS, HOST_ROWS, OP_ROWS, Findings, comparable
from gapless.comparison.compiled import compiled
from gapless.comparison.counts import counts, sync_rows
from gapless.comparison.facts import Facts
from gapless.comparison.faster import faster
from gapless.comparison.fusion import fusion
from gapless.comparison.kernels import compare_kernels
from gapless.comparison.promise import promise
from gapless.comparison.side import Side, describe, recorded
from gapless.comparison.structure import structure
from gapless.comparison.summary import summarize
from gapless.comparison.waits import waits
from gapless.comparison.work import works
from gapless.model.diff import Copies, CountRow, Diff, Kernels


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """What the user adds: seconds that compiling took outside the recorded window."""

    compile_seconds: float | None = None


def compare(before: Side, after: Side, options: CompareOptions) -> Diff:
    """The whole comparison of two sides."""
    known = comparable(before, after)
    speedup = faster(before, after, known)
    gpu = GPU_ROWS not in known.withheld
    old, new = (works(before), works(after)) if gpu else ([], [])
    pairs = align([p.keys() for p in old], [p.keys() for p in new])
    fused = fusion(old, new, pairs)
    kernels, copies = compare_kernels(before, after) if gpu else (Kernels(), Copies())
    kernels = replace(kernels, fused=fused.fused, unfused=fused.unfused)
    shape = structure(old, new, pairs, fused.taken, fused.given)
    code = compiled(before, after, old, new, speedup, options.compile_seconds)
    rows = _kept(counts(before, after), known)
    sites = sync_rows(before, after)
    facts = Facts(before, after, old, new, speedup, rows, sites, kernels, shape, fused, pairs, code)
    identical = speedup.noise == 0
    what = [] if identical or known.status == "no" else changes(facts)
    lost = waits(before, after)
    times = recorded(before, after)
    predicted = None if identical else promise(before.report.findings, what, speedup)
    return Diff(
        tool={"name": "gapless", "version": gapless.__version__},
        before=describe(before, times[0]), after=describe(after, times[1]),
        summary=summarize(facts, known, what, lost, predicted), comparable=known.answer(), speedup=speedup,
        counts=facts.counts, sync_sites=facts.sync_sites, kernels=kernels, copies=copies, structure=shape,
        fusion=fused.kind, fusion_why=fused.why, compile=code, waits=lost, changes=what, predicted=predicted,
    )  # fmt: skip


_WITHHELD = {
    GPU_ROWS: ("kernels", "kernels in graphs", "memsets", "copies", "streams"),
    HOST_ROWS: ("launches", "graph launches", "syncs", "allocations"),
    OP_ROWS: ("host ops",),
    FRAME_ROWS: ("Python frames",),
}


def _kept(rows: list[CountRow], known: Findings) -> list[CountRow]:
    """Counts without those that one side could not have: each stays on the side that has it, the other is unknown."""
    hidden = {name for group in known.withheld for name in _WITHHELD.get(group, ())}
    return [row for row in rows if row.what not in hidden or (row.before is None) != (row.after is None)]
