"""What does a trace file hold, and what can and cannot be answered from it? A document, as for reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gapless.model.meta import TraceMeta
from gapless.render import numbers, safe, words
from gapless.render.document import Block, Column, Heading, Note, Sentence, Table

ROWS = 20


@dataclass(frozen=True, slots=True)
class Question:
    """One thing people want to know, the tables or flags it needs (all of them), and how to record those."""

    text: str
    tables: tuple[str, ...] = ()
    flag: str = ""
    how: str = ""


_ACTIVITIES = "record with activities=[CPU, CUDA]; if that was done, another tool may have held the GPU's counters"

_MISSING = {
    "activities": "no GPU work was recorded",
    "ops": "no CPU operators were recorded",
    "calls": "no runtime calls were recorded",
    "steps": "no steps are marked",
    "frames": "no stacks were recorded",
    "memory": "no allocations were recorded",
    "gpu_syncs": "no synchronisation records",
    "collectives": "no collectives were recorded",
}

QUESTIONS: tuple[Question, ...] = (
    Question("where the GPU's time went, and what ran on it", ("activities",), how=_ACTIVITIES),
    Question("what the host did while the GPU was idle", ("activities", "ops", "calls"), how=_ACTIVITIES),
    Question("what each synchronisation waited for", ("activities", "calls"), how=_ACTIVITIES),
    Question("how long a step takes", ("steps",), how="call prof.step() after each step, or pass --step-marker REGEX"),
    Question("which line of your program is to blame", ("frames",), how="record a few steps more with with_stack=True"),
    Question(
        "which shapes an operator had, GB/s and TFLOP/s", flag="record_shapes", how="record with record_shapes=True"
    ),
    Question("what allocated memory", ("memory",), how="record with profile_memory=True"),
    Question(
        "which stream waited for which",
        ("gpu_syncs",),
        how="record with experimental_config=_ExperimentalConfig(enable_cuda_sync_events=True)",
    ),
    Question("how much collectives cost", ("collectives",), how="record a distributed run with record_shapes=True"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether one question can be answered from this file, and if not, what is missing and how to record it."""

    question: str
    yes: bool
    missing: str
    how: str


def answers(meta: TraceMeta, rows: Mapping[str, int], beside: str | None = None) -> list[Answer]:
    """Every question, answered from the number of rows of each table and the recorder's flags.

    `beside` is the file with stacks that reports on this one read too.
    """
    out = []
    for question in QUESTIONS:
        missing = [_MISSING[t] for t in question.tables if not rows.get(t) and not (t == "frames" and beside)]
        if question.flag and question.flag not in meta.flags:
            missing.append(f"{question.flag} was off")
        out.append(Answer(question.text, not missing, ", ".join(missing), question.how if missing else ""))
    return out


def build_info(
    meta: TraceMeta,
    rows: Mapping[str, int],
    issues: Sequence[Mapping[str, object]],
    set_aside: Sequence[Mapping[str, object]],
    beside: str | None = None,
) -> list[Block]:
    """The whole page: the file, its flags and versions, answers, size by category, issues, what was set aside."""
    return [
        *_file(meta, beside),
        *_answers(answers(meta, rows, beside)),
        *_sizes(meta),
        *_rows(rows),
        *_issues(issues),
        *_set_aside(set_aside),
    ]


def to_dict(
    meta: TraceMeta,
    rows: Mapping[str, int],
    issues: Sequence[Mapping[str, object]],
    set_aside: Sequence[Mapping[str, object]],
    beside: str | None = None,
) -> dict[str, object]:
    """The same facts for machines, schema `gapless.info/1`."""
    return {
        "schema": "gapless.info/1",
        "trace": meta,
        "tables": dict(rows),
        "answers": answers(meta, rows, beside),
        "stacks_beside": beside,
        "issues": [dict(row) for row in issues],
        "set_aside": [dict(row) for row in set_aside],
    }


def _file(meta: TraceMeta, beside: str | None) -> list[Block]:
    devices = ", ".join(dict.fromkeys(safe.line(d.name, 60) for d in meta.devices)) or "none named"
    versions = ", ".join(f"{safe.line(k, 30)} {safe.line(v, 40)}" for k, v in meta.versions.items()) or "none named"
    facts = [
        ("file", f"{safe.line(meta.path)} ({numbers.size(meta.size_bytes)}, {numbers.plural(meta.events, 'event')})"),
        ("GPUs", devices),
        ("flags", ", ".join(safe.line(f, 40) for f in meta.flags) or "none on"),
        ("made by", f"{safe.line(meta.format, 40)}; {versions}"),
    ]
    if beside is not None:
        facts.append(("beside", f"{safe.line(beside)}: reports take file and line from there"))
    if meta.rank is not None:
        facts.append(("rank", f"{meta.rank}" + (f" of {meta.world_size}" if meta.world_size else "")))
    if meta.recorder is not None:
        facts.append(("extra", "recorded by gapless: carries its own baseline and environment"))
    blocks: list[Block] = [Sentence(text, label=label) for label, text in facts]
    if meta.truncated:
        blocks.append(Note("The file is cut off: what comes after the last complete event is missing.", tone="warn"))
    if meta.integer_us:
        blocks.append(Note("Times are whole microseconds: nothing shorter can be told apart.", tone="warn"))
    return blocks


def _answers(found: Sequence[Answer]) -> list[Block]:
    blocks: list[Block] = [Heading("This file can tell")]
    blocks += [Sentence(a.question, label="yes", tone="good") for a in found if a.yes]
    blocks += [
        Sentence(f"{a.question}: {a.missing}. {_hint(a.how)}", label="no", tone="warn") for a in found if not a.yes
    ]
    return blocks


def _hint(how: str) -> str:
    return f"{how[:1].upper()}{how[1:]}." if how else ""


def _sizes(meta: TraceMeta) -> list[Block]:
    if not meta.size_by_category:
        return []
    order = sorted(meta.size_by_category.items(), key=lambda item: (-item[1][1], item[0]))
    shares = numbers.apportion([size for _, (_, size) in order])
    rows = [
        [safe.name(category), numbers.count(events), numbers.size(size), f"{share} %"]
        for (category, (events, size)), share in zip(order, shares, strict=True)
    ][:ROWS]
    columns = [Column("category"), Column("events", "right"), Column("size", "right"), Column("share", "right")]
    return [Table("Size by category", columns, rows, left_out=max(0, len(order) - ROWS))]


def _rows(rows: Mapping[str, int]) -> list[Block]:
    shown = [[safe.line(name, 40), numbers.count(count)] for name, count in rows.items() if count]
    return [Table("Tables (gapless query reads them)", [Column("table"), Column("rows", "right")], shown)]


def _issues(issues: Sequence[Mapping[str, object]]) -> list[Block]:
    if not issues:
        return [Heading("Reading"), Sentence("Nothing was odd, repaired or lost.", tone="good")]
    rows = [
        [
            safe.line(i["code"], 40),
            words.SEVERITIES.get(str(i["severity"]), safe.line(i["severity"], 20)),
            str(i["count"]),
            safe.sentence(i["detail"], 300),
            safe.line(i["example"], 80),
        ]
        for i in issues[:ROWS]
    ]
    columns = [
        Column("found while reading"), Column("kind"), Column("count", "right"), Column("what it does", name=True),
        Column("example", name=True),
    ]  # fmt: skip
    return [Table("Reading", columns, rows, left_out=max(0, len(issues) - ROWS))]


def _set_aside(rows: Sequence[Mapping[str, object]]) -> list[Block]:
    if not rows:
        return []
    cells = [
        [safe.name(r["name"]), safe.line(r["reason"], 30), safe.line(r["start_text"], 24), safe.line(r["dur_text"], 24)]
        for r in rows[:ROWS]
    ]
    columns = [Column("event", name=True), Column("reason"), Column("ts", "right"), Column("dur", "right")]
    note = "these events change no total"
    return [Table("Set aside", columns, cells, left_out=max(0, len(rows) - ROWS), note=note)]
