"""What does `--full` add to the first screen? Every number of the report, each in a table of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gapless.model.report import Finding, Report
from gapless.render import numbers, phrases, safe, words
from gapless.render.document import Block, Card, Column, Heading, Note, Sentence, Table

SITES = 8
"""Most places of one finding; the JSON report has twenty."""
ROWS = 20
"""Most rows of one table; what is left out is said, and `gapless query` has them all."""


def build_details(report: Report) -> list[Block]:
    """Findings in full, accounting, waits, tables, checks, trust and words."""
    blocks: list[Block] = []
    blocks += _findings(report)
    blocks += _devices(report)
    blocks += _hosts(report)
    blocks += _syncs(report)
    blocks += [t for name, rows in report.tables.items() if (t := generic_table(name, rows)) is not None]
    blocks += _steps(report)
    blocks += _checks(report)
    blocks += _trust(report)
    blocks += _issues(report)
    blocks += [Heading("Words"), *[Sentence(text, label=word) for word, text in words.GLOSSARY]]
    return blocks


def full_card(number: int, finding: Finding) -> Card:
    """One finding with its evidence, doubts and fix."""
    facts: list[tuple[str, list[str]]] = []
    sites = [
        f"{phrases.place(s) or 'place not recorded'}: "
        + ", ".join(part for part in (phrases.per_step(s.per_step), f"{s.share * 100:.0f} % of the cost") if part)
        for s in finding.sites[:SITES]
    ]
    if len(finding.sites) > SITES:
        left = 1.0 - sum(s.share for s in finding.sites[:SITES])
        sites.append(f"and {len(finding.sites) - SITES} more places, {max(left, 0.0) * 100:.0f} % of the cost")
    facts.append(("where", sites))
    facts.append(("evidence", [safe.sentence(e, 400) for e in finding.evidence]))
    if finding.gain.step_ms is not None:
        method = safe.line(finding.gain.method, 40)
        facts.append(("after the fix", [f"{numbers.milliseconds(finding.gain.step_ms)} a step ({method})"]))
    facts.append(("assumed", [safe.sentence(a, 400) for a in finding.assumptions]))
    facts.append(("may be wrong", [safe.sentence(finding.why_it_may_be_wrong, 600)]))
    facts.append(("then", [safe.sentence(finding.inherits, 400)]))
    facts.append(("read more", [f"gapless explain {safe.line(finding.code, 40)}"]))
    return Card(
        number=number,
        code=safe.line(finding.code, 40),
        title=safe.sentence(finding.title, 400),
        gain=phrases.gain(finding.gain),
        where=phrases.per_step(finding.per_step),
        facts=[(label, kept) for label, lines in facts if (kept := [one for one in lines if one])],
        fix=safe.block(finding.fix),
    )


def generic_table(name: str, rows: list[dict[str, Any]]) -> Table | None:
    """A table of plain rows whose column names end in their units; None if there is nothing in them."""
    keys = list(dict.fromkeys(key for row in rows for key in row if row[key] not in (None, "")))
    if not keys:
        return None
    columns = _ranked([_column(k, rows) for k in keys])
    shown = [[_cell(k, row.get(k)) for k in keys] for row in rows[:ROWS]]
    return Table(safe.line(name, 60).capitalize(), columns, shown, left_out=max(0, len(rows) - ROWS))


def _column(key: str, rows: list[dict[str, Any]]) -> Column:
    number = all(isinstance(r.get(key), (int, float, type(None))) for r in rows)
    return Column(_title(key), "right" if number else "left", name=key in {"name", "op", "kernel", "shape", "module"})


def _ranked(columns: list[Column]) -> list[Column]:
    """The first column matters most, then the first numbers, then the first words, then the rest."""
    numbers_seen, words_seen, ranked = 0, 0, [columns[0]]
    for column in columns[1:]:
        if column.align == "right":
            numbers_seen += 1
            rank = 1 if numbers_seen <= 4 or column.title == "share" else 3
        else:
            words_seen += 1
            rank = 2 if words_seen <= 2 else 4
        ranked.append(replace(column, rank=rank))
    return ranked


_UNITS = {"_ns": "", "_ms": "", "_us": "", "_bytes": "", "_pct": " %", "_gb_s": " GB/s", "_tflops": " TFLOP/s"}


_TITLES = {"gb_s": "GB/s", "tflops": "TFLOP/s", "compute_share": "of peak TFLOP/s", "bandwidth_share": "of peak GB/s"}


def _title(key: str) -> str:
    if key in _TITLES:
        return _TITLES[key]
    for suffix, unit in _UNITS.items():
        if key.endswith(suffix):
            return safe.line(key[: -len(suffix)], 40).replace("_", " ") + unit
    return safe.line(key, 40).replace("_", " ")


def _cell(key: str, value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return _number(key, value)
    if isinstance(value, (list, tuple)):
        return safe.name(", ".join(str(v) for v in value[:8]))
    return safe.name(value)


def _number(key: str, value: float) -> str:
    if key.endswith("_ns"):
        return numbers.nanoseconds(int(value))
    if key.endswith("_ms"):
        return numbers.milliseconds(value)
    if key.endswith("_us"):
        return numbers.milliseconds(value / 1e3)
    if key.endswith("bytes"):
        return numbers.size(value)
    if key == "share" or key.endswith("_share"):
        return f"{value * 100:.1f} %"
    return numbers.count(value) if isinstance(value, int) else numbers.significant(value)


def _findings(report: Report) -> list[Block]:
    if not report.findings:
        return []
    return [Heading("Findings"), *[full_card(i, f) for i, f in enumerate(report.findings, 1)]]


def _devices(report: Report) -> list[Block]:
    blocks: list[Block] = []
    for account in report.accounting:
        shares = numbers.apportion([p.ns for p in account.parts], 1000)
        rows = [
            [
                words.GPU_STATES.get(part.state, safe.name(part.state)),
                words.IDLE_CAUSES.get(part.cause, safe.name(part.cause)) if part.cause else "",
                numbers.nanoseconds(part.ns),
                f"{share / 10:.1f} %",
            ]
            for part, share in sorted(
                zip(account.parts, shares, strict=True), key=lambda x: (x[0].state == "idle", -x[0].ns)
            )
        ]
        name = phrases.device_name(report, account.device)
        blocks.append(
            Table(
                f"Where the time of {name} went",
                [Column("the GPU is"), Column("while", name=True), Column("time", "right"), Column("share", "right")],
                rows,
                note=f"adds up to {account.wall_ns} ns exactly",
            )
        )
    return blocks


def _hosts(report: Report) -> list[Block]:
    blocks: list[Block] = []
    for account in report.host:
        shares = numbers.apportion([p.ns for p in account.parts], 1000)
        pairs = sorted(zip(account.parts, shares, strict=True), key=lambda x: -x[0].ns)
        rows = [
            [
                words.HOST_STATES.get(part.state, safe.name(part.state)),
                words.HOST_DETAILS.get(part.detail, safe.name(part.detail)),
                numbers.nanoseconds(part.ns),
                f"{share / 10:.1f} %",
            ]
            for part, share in pairs[:ROWS]
        ]
        role = words.ROLES.get(account.role, "thread")
        blocks.append(
            Table(
                f"Where the time of {safe.line(account.thread, 40)} ({role}) went",
                [Column("the host is"), Column("detail", name=True), Column("time", "right"), Column("share", "right")],
                rows,
                left_out=max(0, len(pairs) - ROWS),
                note=f"adds up to {account.wall_ns} ns exactly",
            )
        )
    return blocks


def _syncs(report: Report) -> list[Block]:
    if not report.syncs:
        return []
    rows = [
        [
            safe.line(s.name, 24),
            safe.line(s.origin, 12),
            phrases.place(s) or "-",
            numbers.count(s.count),
            numbers.milliseconds(s.wall_ms),
            numbers.milliseconds(s.waited.gpu_work_ms),
            numbers.milliseconds(s.idle_after_ms),
        ]
        for s in report.syncs[:ROWS]
    ]
    return [
        Table(
            "Calls in which the host waited",
            [
                Column("call", name=True),
                Column("origin"),
                Column("where", name=True),
                Column("count", "right"),
                Column("blocked", "right"),
                Column("for GPU work", "right"),
                Column("idle after", "right"),
            ],
            rows,
            left_out=max(0, len(report.syncs) - ROWS),
            note="a long wait is GPU work being waited for; only the GPU idle after it can be won back",
        )
    ]


def _steps(report: Report) -> list[Block]:
    steps = report.window.steps
    if not steps:
        return []
    rows = [
        [
            safe.name(s.name),
            numbers.nanoseconds(s.end_ns - s.start_ns),
            "yes" if s.used else "no",
            safe.sentence(s.why, 160),
        ]
        for s in steps[:ROWS]
    ]
    return [
        Table(
            "Steps",
            [Column("step", name=True), Column("recorded", "right"), Column("used"), Column("why", name=True)],
            rows,
            left_out=max(0, len(steps) - ROWS),
        )
    ]


def _checks(report: Report) -> list[Block]:
    blocks: list[Block] = [Heading("Checks")]
    checks = report.checks
    blocks.append(Sentence(", ".join(safe.line(c, 40) for c in checks.found) or "nothing", label="found"))
    blocks.append(Sentence(", ".join(safe.line(c, 40) for c in checks.clean) or "nothing", label="clean"))
    if checks.cannot_tell:
        rows = [
            [safe.line(c.code, 40), safe.sentence(c.reason, 300), safe.sentence(c.how, 300)] for c in checks.cannot_tell
        ]
        columns = [Column("cannot tell"), Column("because", name=True), Column("to find out", name=True)]
        blocks.append(Table("", columns, rows))
    else:
        blocks.append(Sentence("nothing", label="cannot tell"))
    return blocks


def _trust(report: Report) -> list[Block]:
    if not report.trust:
        return [Heading("Trust"), Note("No trust check ran.")]
    rows = [[safe.line(t.check, 40), words.TRUST_MARKS[t.status], safe.sentence(t.detail, 400)] for t in report.trust]
    return [
        Table(
            "How far this file can be trusted", [Column("check"), Column("answer"), Column("detail", name=True)], rows
        )
    ]


def _issues(report: Report) -> list[Block]:
    if not report.issues:
        return [Sentence("Nothing was odd, repaired or lost while reading.", label="Reading")]
    rows = [
        [
            safe.line(i.code, 40),
            words.SEVERITIES.get(i.severity, safe.line(i.severity, 20)),
            numbers.count(i.count),
            safe.sentence(i.detail, 400),
            safe.name(i.example),
        ]
        for i in report.issues[:ROWS]
    ]
    columns = [
        Column("found while reading"), Column("kind"), Column("count", "right"), Column("what it does", name=True),
        Column("example", name=True),
    ]  # fmt: skip
    return [Table("Reading", columns, rows, left_out=max(0, len(report.issues) - ROWS))]
