"""What does `gapless diff --full` add to the first screen? Every difference, each sort in a table of its own."""

from __future__ import annotations

from collections.abc import Sequence

from gapless.model.diff import CompileSide, Diff, FusedRow, KernelRow
from gapless.render import numbers, safe, words
from gapless.render.document import Block, Column, Heading, Items, Sentence, Table

ROWS = 20
_BEFORE_AFTER = (Column("before", "right"), Column("after", "right", rank=1), Column("change", "right", rank=2))


def build_details(diff: Diff) -> list[Block]:
    """Comparability, changes, fusion, kernels, copies, structure, compilation, waits, counts."""
    blocks: list[Block] = [*_comparable(diff), *_changes(diff), *_fusion(diff)]
    for title, rows in (
        ("Kernels on both sides", diff.kernels.same),
        ("Kernels only before", diff.kernels.removed),
        ("Kernels only after", diff.kernels.added),
        ("Copies and memsets on both sides", diff.copies.same),
        ("Copies and memsets only before", diff.copies.removed),
        ("Copies and memsets only after", diff.copies.added),
    ):
        blocks += _kernels(title, rows)
    blocks += [*_structure(diff), *_compile(diff), *_waits(diff), *_sites(diff), *_counts(diff)]
    return blocks


def change_of(before: float | None, after: float | None) -> str:
    """A change in words that fit a column: percent where small, a factor where large."""
    if before is None or after is None:
        return ""
    if before == after:
        return "="
    if before == 0 or after == 0:
        return "new" if before == 0 else "gone"
    ratio = after / before
    if 0.5 < ratio < 2:
        return f"{(ratio - 1) * 100:+.0f} %" if abs(ratio - 1) >= 0.005 else "="
    return f"{numbers.significant(ratio, 2)}x" if ratio >= 2 else f"1/{numbers.significant(1 / ratio, 2)}"


def _comparable(diff: Diff) -> list[Block]:
    known = diff.comparable
    blocks: list[Block] = [
        Heading("How far they can be compared"),
        Sentence(safe.sentence(diff.speedup.why, 400) or known.status, label="Step time"),
    ]
    if known.reasons:
        blocks.append(Items("differ", [safe.sentence(reason, 300) for reason in known.reasons]))
    if known.withheld:
        blocks.append(Items("left out", [safe.line(row, 80) for row in known.withheld]))
    if known.corrected:
        blocks.append(Items("corrected", [safe.line(row, 80) for row in known.corrected]))
    return blocks


def _changes(diff: Diff) -> list[Block]:
    if not diff.changes:
        return []
    rows = [
        [safe.sentence(c.text, 200), safe.line(c.kind, 30), numbers.milliseconds(c.ms) if c.ms else ""]
        for c in diff.changes[:ROWS]
    ]
    columns = [
        Column("what", name=True),
        Column("finding that it fixes", rank=1),
        Column("its own time a step", "right", rank=2),
    ]
    return [Heading("What changed"), Table("", columns, rows, len(diff.changes) - len(rows))]


def _fusion(diff: Diff) -> list[Block]:
    blocks: list[Block] = [Heading("Fusion"), Sentence(f"{diff.fusion}: {safe.sentence(diff.fusion_why, 400)}")]
    blocks += _fused("Kernels that now do the work of several", diff.kernels.fused)
    blocks += _fused("Kernels whose work several now do", diff.kernels.unfused)
    return blocks


def _fused(title: str, found: Sequence[FusedRow]) -> list[Block]:
    if not found:
        return []
    rows = [
        [
            safe.name(row.name), ", ".join(safe.name(op) for op in row.replaces[:8]) + (" …" if len(row.replaces) > 8 else ""),
            numbers.count(row.kernels), numbers.count(row.count), numbers.milliseconds(row.before_ms),
            numbers.milliseconds(row.after_ms),
            numbers.size(row.bytes_saved) + ("" if row.bytes_exact else " (by shapes)") if row.bytes_saved is not None else "",
        ]
        for row in found[:ROWS]
    ]  # fmt: skip
    columns = [
        Column("kernel", name=True), Column("instead of", name=True, rank=1), Column("kernels", "right", rank=2),
        Column("now", "right", rank=3), Column("before", "right", rank=4), Column("after", "right", rank=4),
        Column("no longer travels", "right", rank=5),
    ]  # fmt: skip
    return [Table(title, columns, rows, len(found) - len(rows))]


def _kernels(title: str, found: Sequence[KernelRow]) -> list[Block]:
    if not found:
        return []
    rows = [
        [
            _kernel_name(row), _op_name(row), numbers.count(row.before), numbers.count(row.after),
            _micro(row.before_us), _micro(row.after_us), numbers.milliseconds(row.after_ms - row.before_ms), row.change,
        ]
        for row in found[:ROWS]
    ]  # fmt: skip
    columns = [
        Column("kernel", name=True), Column("launched by", name=True, rank=2), Column("before", "right", rank=1),
        Column("after", "right", rank=1), Column("each before", "right", rank=3), Column("each after", "right", rank=3),
        Column("difference a step", "right", rank=1), Column("", rank=4),
    ]  # fmt: skip
    return [Table(title, columns, rows, len(found) - len(rows))]


def _kernel_name(row: KernelRow) -> str:
    marks = [mark for mark, there in (("other epilogue or build", row.renamed), ("other size", row.resized)) if there]
    shown = row.name if row.name == row.name_after else f"{row.name} → {row.name_after}"
    size = f" {numbers.size(row.bytes)}" if row.bytes is not None and row.family == "memcpy" else ""
    return safe.name(shown) + size + (f" ({', '.join(marks)})" if marks else "")


def _op_name(row: KernelRow) -> str:
    before, after = safe.name(row.op or ""), safe.name(row.op_after or "")
    return before if before == after or not row.before or not row.after else f"{before} → {after}"


def _micro(value: float | None) -> str:
    return "" if value is None else numbers.milliseconds(value / 1e3)


def _structure(diff: Diff) -> list[Block]:
    s = diff.structure
    if not (s.matched or s.only_before or s.only_after):
        return []
    text = f"{s.matched} pieces of GPU work of a step correspond, {s.only_before} are only before, {s.only_after} only after"
    blocks: list[Block] = [Heading("Structure of a step"), Sentence(f"{text}. {safe.sentence(s.note, 200)}".strip())]
    if s.changed:
        rows = [
            [_ops(row.before), _ops(row.after), str(row.count), numbers.milliseconds(row.before_ms), numbers.milliseconds(row.after_ms),
             safe.line(row.module or row.region_after or row.region_before or "", 40)]
            for row in s.changed[:ROWS]
        ]  # fmt: skip
        columns = [
            Column("before", name=True), Column("after", name=True), Column("times", "right", rank=2),
            Column("GPU before", "right", rank=1), Column("GPU after", "right", rank=1), Column("where", name=True, rank=3),
        ]  # fmt: skip
        blocks.append(
            Table("Stretches that differ, between work that does not", columns, rows, len(s.changed) - len(rows))
        )
    if s.regions:
        rows = [[safe.line(row.region, 40), row.side, _ops(row.ops)] for row in s.regions[:ROWS]]
        columns = [
            Column("compiled region", name=True),
            Column("side"),
            Column("ops of the other side that it took over", name=True),
        ]
        blocks.append(Table("Compiled regions", columns, rows, len(s.regions) - len(rows)))
    return blocks


def _ops(names: Sequence[str]) -> str:
    return ", ".join(safe.name(name) for name in names) or "–"


def _compile(diff: Diff) -> list[Block]:
    c = diff.compile
    if not any(
        (side.regions, side.gave_up, side.recompiles, side.cost_ms) != (0, 0, 0, 0) for side in (c.before, c.after)
    ):
        return []
    columns = [Column("per step"), Column("before", "right"), Column("after", "right")]
    blocks: list[Block] = [Heading("torch.compile"), Table("", columns, _compile_table(c.before, c.after))]
    if c.break_even:
        cost = (
            f" ({numbers.milliseconds(c.cost_ms)}, {'as given' if c.cost_source == 'given' else 'inside the window'})"
            if c.cost_ms
            else ""
        )
        blocks.append(Sentence(f"{safe.sentence(c.break_even, 200)}{cost}", label="Pays off"))
    if c.breaks:
        where = [
            f"{b.side}: {safe.name(b.file)}:{b.line} {safe.name(b.function or '')}: {safe.sentence(b.reason, 160)}" if b.file
            else f"{b.side}: place not recorded: {safe.sentence(b.reason, 160)}"
            for b in c.breaks[:ROWS]
        ]  # fmt: skip
        blocks.append(Items("breaks", where))
    for label, side in (("before", c.before), ("after", c.after)):
        if side.no_graph_why:
            blocks.append(Sentence(f"{label}: no CUDA graph: {safe.sentence(side.no_graph_why, 200)}", tone="muted"))
        if side.input_copies:
            blocks.append(
                Items("inputs", [f"{label}: {safe.sentence(one, 120)}, beside the graph" for one in side.input_copies])
            )
    return blocks


def _compile_table(before: CompileSide, after: CompileSide) -> list[list[str]]:
    pairs = [
        ("compiled regions", numbers.count(before.regions), numbers.count(after.regions)),
        ("graph breaks", numbers.count(before.graph_breaks), numbers.count(after.graph_breaks)),
        ("calls that gave up compiling", numbers.count(before.gave_up), numbers.count(after.gave_up)),
        ("compilations", numbers.count(before.recompiles), numbers.count(after.recompiles)),
        ("guards and prologues", numbers.milliseconds(before.guard_ms), numbers.milliseconds(after.guard_ms)),
        ("host work, no profiler", numbers.milliseconds(before.host_ms), numbers.milliseconds(after.host_ms)),
        (
            "host work, as recorded",
            numbers.milliseconds(before.recorded_host_ms),
            numbers.milliseconds(after.recorded_host_ms),
        ),
        ("distinct graphs", str(before.graphs), str(after.graphs)),
        ("same graphs in every step", _yes(before.cache_hits), _yes(after.cache_hits)),
        ("CUDA graph launches", numbers.count(before.graph_launches), numbers.count(after.graph_launches)),
        ("work inside CUDA graphs", numbers.count(before.graph_kernels), numbers.count(after.graph_kernels)),
        ("recompiled before the window", ", ".join(before.versions[:4]), ", ".join(after.versions[:4])),
        ("compiling in the whole window", numbers.milliseconds(before.cost_ms), numbers.milliseconds(after.cost_ms)),
    ]
    nothing = {"0", "0 ms", "", "unknown"}
    return [[what, old, new] for what, old, new in pairs if not {old, new} <= nothing]


def _yes(value: bool | None) -> str:
    return "" if value is None else "yes" if value else "no"


def _waits(diff: Diff) -> list[Block]:
    rows = []
    for row in [w for w in diff.waits if w.before_ms >= 0.001 or w.after_ms >= 0.001][:ROWS]:
        cause = words.IDLE_CAUSES.get(row.cause, row.cause) if row.who == "gpu" else row.cause
        note = f"moved to {row.moved_to}" if row.moved_to else f"came from {row.moved_from}" if row.moved_from else ""
        who = "GPU idle while" if row.who == "gpu" else "host blocked in"
        rows.append(
            [f"{who} {safe.name(cause)}", numbers.milliseconds(row.before_ms), numbers.milliseconds(row.after_ms),
             change_of(row.before_ms, row.after_ms), safe.sentence(note, 120)]
        )  # fmt: skip
    if not rows:
        return []
    columns = [Column("lost a step", name=True), *_BEFORE_AFTER, Column("", name=True, rank=3)]
    return [Heading("Waits"), Table("", columns, rows, len(diff.waits) - len(rows))]


def _sites(diff: Diff) -> list[Block]:
    changed = [row for row in diff.sync_sites if row.before != row.after]
    if not changed:
        return []
    rows = [
        [
            safe.name(row.name), safe.name(row.op or ""), _place(row.file, row.line) or safe.name(row.module or ""), row.origin,
            numbers.count(row.before), numbers.count(row.after), numbers.milliseconds(row.before_ms),
            numbers.milliseconds(row.after_ms),
        ]
        for row in changed[:ROWS]
    ]  # fmt: skip
    columns = [
        Column("call", name=True), Column("op", name=True), Column("where", name=True, rank=1), Column("origin", rank=3),
        Column("before", "right"), Column("after", "right"), Column("blocked before", "right", rank=2),
        Column("blocked after", "right", rank=2),
    ]  # fmt: skip
    return [Table("Places that wait for the GPU", columns, rows, len(changed) - len(rows))]


def _place(file: str | None, line: int | None) -> str:
    return f"{safe.name(file)}:{line}" if file else ""


def _counts(diff: Diff) -> list[Block]:
    rows = [
        [
            row.what, numbers.size(row.before) if row.unit == "bytes" else numbers.count(row.before),
            numbers.size(row.after) if row.unit == "bytes" else numbers.count(row.after), change_of(row.before, row.after),
        ]
        for row in diff.counts
        if row.before or row.after
    ]  # fmt: skip
    return [Heading("Counts"), Table("", [Column("per step"), *_BEFORE_AFTER], rows)] if rows else []
