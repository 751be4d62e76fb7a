"""What of a comparison must mirror when the two files are swapped, and its mirror image."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gapless.model.diff import Diff, KernelRow, StructureRow, WaitRow

_OTHER = {
    "faster": "slower",
    "slower": "faster",
    "removed": "added",
    "added": "removed",
    "before": "after",
    "after": "before",
}


def facts(diff: Diff) -> dict[str, Any]:
    """Everything two-sided, in an order of its own."""
    rows = lambda *groups: sorted((row for group in groups for row in group), key=repr)  # noqa: E731
    return {
        "verdict": diff.speedup.verdict,
        "fusion": diff.fusion,
        "counts": [(row.what, row.before, row.after) for row in diff.counts],
        "kernels": rows(diff.kernels.same, diff.kernels.removed, diff.kernels.added),
        "copies": rows(diff.copies.same, diff.copies.removed, diff.copies.added),
        "fused": (diff.kernels.fused, diff.kernels.unfused),
        "structure": rows(diff.structure.changed),
        "regions": rows(diff.structure.regions),
        "compile": (diff.compile.before, diff.compile.after),
        "breaks": rows(diff.compile.breaks),
        "waits": rows(diff.waits),
        "sites": rows(diff.sync_sites),
        "changes": sorted((c.what, c.kind, round(c.ms, 9)) for c in diff.changes),
    }


def mirrored(found: dict[str, Any]) -> dict[str, Any]:
    """The facts as they must be with before and after swapped."""
    swap = lambda key, turn: sorted((turn(row) for row in found[key]), key=repr)  # noqa: E731
    return {
        "verdict": _OTHER.get(found["verdict"], found["verdict"]),
        "fusion": found["fusion"],
        "counts": [(what, after, before) for what, before, after in found["counts"]],
        "kernels": swap("kernels", _kernel),
        "copies": swap("copies", _kernel),
        "fused": found["fused"][::-1],
        "structure": swap("structure", _stretch),
        "regions": swap("regions", lambda r: replace(r, side=_OTHER[r.side])),
        "compile": found["compile"][::-1],
        "breaks": swap("breaks", lambda b: replace(b, side=_OTHER[b.side])),
        "waits": swap("waits", _wait),
        "sites": swap("sites", lambda r: replace(r, before=r.after, after=r.before, before_ms=r.after_ms, after_ms=r.before_ms)),
        "changes": sorted((what, kind, -ms if ms else ms) for what, kind, ms in found["changes"]),
    }  # fmt: skip


def _stretch(row: StructureRow) -> StructureRow:
    return replace(
        row, before=row.after, after=row.before, before_ms=row.after_ms, after_ms=row.before_ms,
        region_before=row.region_after, region_after=row.region_before,
    )  # fmt: skip


def _wait(row: WaitRow) -> WaitRow:
    return replace(
        row, before_ms=row.after_ms, after_ms=row.before_ms, moved_to=row.moved_from, moved_from=row.moved_to
    )


def _kernel(row: KernelRow) -> KernelRow:
    return replace(
        row, name=row.name_after, name_after=row.name, op=row.op_after, op_after=row.op, shapes=row.shapes_after,
        shapes_after=row.shapes, before=row.after, after=row.before, before_us=row.after_us, after_us=row.before_us,
        before_ms=row.after_ms, after_ms=row.before_ms, change=_OTHER.get(row.change, row.change),  # type: ignore[arg-type]
        full_name=row.full_name_after, full_name_after=row.full_name,
    )  # fmt: skip
