"""How does a comparison become a document, on a terminal and in Markdown? What `--full` adds is in `build_diff_details`."""

from __future__ import annotations

import shlex
from pathlib import PurePath

from gapless.model.diff import Diff, DiffSide
from gapless.render import markdown as markdown_
from gapless.render import numbers, safe
from gapless.render.build_diff_details import build_details, change_of
from gapless.render.document import Block, Column, Command, Document, Gap, Sentence, Table
from gapless.render.tones import Tone

SCREEN_LINES = 24
_NO_FILE = ("-", "<stdin>")
_TONES: dict[str, Tone] = {"faster": "good", "slower": "bad", "same": "plain", "undecided": "warn"}
_SUMMARY_LINES = (9, 7, 5, 4)
_COUNTS = ("kernels", "launches", "graph launches", "syncs", "copies", "host ops")


def build(diff: Diff) -> Document:
    """The whole comparison as blocks."""
    return Document(
        title=f"{name(diff.before)} and {name(diff.after)}", summary=build_summary(diff), details=build_details(diff)
    )


def text(diff: Diff, *, full: bool = False, width: int = 80, color: bool = False) -> str:
    """The comparison as text that ends in a line break; without `full` a first screen of at most `SCREEN_LINES` lines."""
    from gapless.render import text as text_

    if full:
        blocks = [*build_summary(diff, summary_lines=None, rows=None), *build_details(diff)]
        return text_.draw(blocks, width=width, color=color)
    for lines in _SUMMARY_LINES:
        for rows in (10, 8, 6, 4):
            screen = text_.draw(build_summary(diff, summary_lines=lines, rows=rows), width=width, color=color)
            if screen.count("\n") <= SCREEN_LINES:
                return screen
    return screen


def markdown(diff: Diff, *, full: bool = False) -> str:
    """The comparison as Markdown that ends in a line break."""
    blocks = build_summary(diff, summary_lines=None, rows=None)
    return markdown_.draw([*blocks, *build_details(diff)] if full else blocks)


def build_summary(diff: Diff, *, summary_lines: int | None = None, rows: int | None = None) -> list[Block]:
    """The first screen: verdict, what limits it, the paragraph, what differs in numbers, the next command."""
    known = diff.comparable
    blocks: list[Block] = [
        Sentence(headline(diff), tone=_TONES[diff.speedup.verdict], max_lines=2),
        Sentence(_facts(diff), tone="muted", max_lines=2),
    ]
    if known.status != "yes" and known.reasons:
        more = len(known.reasons) - 1
        tail = f" ({numbers.plural(more, 'more difference')}: see --full)" if more else ""
        label = "Not comparable" if known.status == "no" else "In part"
        blocks.append(Sentence(safe.sentence(known.reasons[0], 300) + tail, label=label, tone="warn", max_lines=3))
    blocks += [Gap(), Sentence(safe.sentence(diff.summary, 4000), max_lines=summary_lines), Gap()]
    table = _table(diff, rows)
    if table is not None:
        blocks.append(table)
    blocks.append(Command(_command(diff), "every kernel, wait, copy and op that differs"))
    return blocks


def headline(diff: Diff) -> str:
    """The verdict in a few words."""
    s = diff.speedup
    if diff.comparable.status == "no":
        return "These two traces cannot be compared."
    value = s.value if s.basis != "recorded" else s.recorded
    noise = f" (noise {s.noise * 100:.0f} %)" if s.noise else ""
    if s.verdict == "faster" and value is not None:
        return f"Faster: {numbers.speedup(value)}{noise}"
    if s.verdict == "slower" and value:
        return f"Slower: {numbers.speedup(1 / value)}{noise}"
    if s.verdict == "same":
        return f"The same step time{noise}" if s.noise else "The same recording"
    return "Undecided whether faster or slower"


def name(side: DiffSide) -> str:
    """A side's file name, short."""
    return safe.line(PurePath(safe.line(side.trace.get("path") or "-")).name or "-", 60)


def _facts(diff: Diff) -> str:
    old, new = diff.before, diff.after
    devices = [
        sorted({safe.line(d["name"], 40) for d in side.trace.get("devices", []) if d.get("name")})
        for side in (old, new)
    ]
    facts = [f"{name(old)} → {name(new)}"]
    if devices[0] or devices[1]:
        facts.append(
            ", ".join(devices[0])
            if devices[0] == devices[1]
            else f"{', '.join(devices[0]) or '-'} → {', '.join(devices[1]) or '-'}"
        )
    facts.append(f"{old.steps_used} and {numbers.plural(new.steps_used, 'step')}")
    return " · ".join(facts)


def _table(diff: Diff, most: int | None) -> Table | None:
    """Times first, then the counts that differ, then those that do not."""
    old, new = diff.before, diff.after
    times = [
        ("step, no profiler", old.step.unprofiled_ms, new.step.unprofiled_ms),
        ("step, with profiler", old.recorded_ms, new.recorded_ms),
        ("GPU busy", old.step.gpu_busy_ms, new.step.gpu_busy_ms),
        ("host work", old.host_ms, new.host_ms),
        ("host blocked", old.step.host_wait_ms, new.step.host_wait_ms),
    ]
    rows = [
        [what, numbers.milliseconds(a), numbers.milliseconds(b), change_of(a, b)]
        for what, a, b in times
        if a is not None or b is not None
    ]
    counted = [row for row in diff.counts if row.what in _COUNTS]
    counted.sort(key=lambda row: (row.before == row.after, _COUNTS.index(row.what)))
    rows += [
        [row.what, numbers.count(row.before), numbers.count(row.after), change_of(row.before, row.after)]
        for row in counted
        if row.before or row.after
    ]
    if not rows:
        return None
    columns = [
        Column("per step"),
        Column("before", "right"),
        Column("after", "right", rank=1),
        Column("change", "right", rank=2),
    ]
    return Table("", columns, rows if most is None else rows[:most])


def _command(diff: Diff) -> str:
    paths = []
    for side, placeholder in ((diff.before, "BEFORE"), (diff.after, "AFTER")):
        path = safe.line(side.trace.get("path") or "-")
        paths.append(placeholder if path in _NO_FILE or "\\x" in path or safe.ELLIPSIS in path else shlex.quote(path))
    return f"gapless diff {paths[0]} {paths[1]} --full"
