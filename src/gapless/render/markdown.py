"""How does a document look in a pull request or issue? GitHub-flavoured Markdown; every name is shown literally."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gapless.model.report import Report
from gapless.render import safe
from gapless.render.build import FINDINGS_ON_SCREEN, build_summary
from gapless.render.build_details import build_details
from gapless.render.document import Bar, Block, Card, Code, Command, Gap, Heading, Items, Note, Sentence, Table


def render(report: Report, *, full: bool = False) -> str:
    """The report as Markdown that ends in a line break."""
    blocks = build_summary(report, FINDINGS_ON_SCREEN)
    return draw([*blocks, *build_details(report)] if full else blocks)


def draw(blocks: Sequence[Block]) -> str:
    """Blocks as Markdown, paragraphs apart."""
    parts = [text for block in blocks for text in _draw(block) if text]
    return "\n\n".join(parts) + "\n"


def _draw(block: Block) -> Iterator[str]:
    match block:
        case Heading():
            yield f"{'#' * (block.level + 1)} {safe.markdown(block.text)}"
        case Sentence():
            text = safe.markdown(block.text)
            text = f"**{text}**" if block.tone == "strong" else text
            yield f"**{safe.markdown(block.label)}**: {text}" if block.label.strip() else text
        case Bar():
            yield _bar(block)
        case Table():
            yield from _table(block)
        case Card():
            yield from _card(block)
        case Items():
            yield f"**{safe.markdown(block.label)}**:\n" + "\n".join(f"- {safe.markdown(one)}" for one in block.items)
        case Code():
            yield _fenced(block.text, block.language)
        case Note():
            yield f"*{safe.markdown(block.text.strip())}*"
        case Command():
            yield f"Next: {safe.markdown_code(block.text)} ({safe.markdown(block.why)})"
        case Gap():
            return


def _bar(block: Bar) -> str:
    shown = [f"{s.text} {safe.markdown(s.label)}" for s in block.segments if s.share > 0]
    total = f"{' · '.join(shown)} = 100 % of {safe.markdown(block.total)}" if shown else "nothing recorded"
    return f"**{safe.markdown(block.label)}**: {total}"


def _table(block: Table) -> Iterator[str]:
    if block.title:
        yield f"### {safe.markdown(block.title)}"
    head = "| " + " | ".join(safe.markdown(c.title) or " " for c in block.columns) + " |"
    rule = "|" + "|".join(" ---: " if c.align == "right" else " --- " for c in block.columns) + "|"
    rows = [
        "| " + " | ".join(_cell(cell, c.name) for cell, c in zip(row, block.columns, strict=True)) + " |"
        for row in block.rows
    ]
    yield "\n".join([head, rule, *rows])
    tail = [f"{block.left_out} more rows left out"] if block.left_out else []
    tail += [block.note] if block.note else []
    if tail:
        yield f"*{safe.markdown('; '.join(tail))}*"


def _cell(text: str, name: bool) -> str:
    if not text:
        return " "
    return safe.markdown_code(text).replace("|", "\\|") if name and " " not in text.strip() else safe.markdown(text)


def _card(block: Card) -> Iterator[str]:
    head = f"{block.number}. **{safe.markdown(block.title)}** ({safe.markdown(block.code)})  "
    yield f"{head}\n   " + " · ".join(safe.markdown(part) for part in (block.gain, block.where) if part)
    for label, lines in block.facts:
        if len(lines) == 1:
            yield f"   *{safe.markdown(label)}*: {safe.markdown(lines[0])}"
        else:
            yield f"   *{safe.markdown(label)}*:\n" + "\n".join(f"   - {safe.markdown(one)}" for one in lines)
    if block.fix:
        yield _fenced(block.fix, "python", indent="   ")


def _fenced(text: str, language: str, indent: str = "") -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    body = [f"{fence}{language}", *text.rstrip("\n").split("\n"), fence]
    return "\n".join(indent + one for one in body)
