"""What is a report made of, whatever it is shown in? Neutral blocks that every renderer knows how to draw.

A block holds text that is already safe (`render.safe`) and numbers that are already written: renderers add layout and
their format's escaping, nothing else. `summary` is the first screen; `details` is what `--full` adds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from gapless.render.tones import Tone

Align = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Heading:
    """A title; level 1 is the document's own."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Sentence:
    """A paragraph; `label` stands before it where a renderer has room; a first screen cuts it at `max_lines`."""

    text: str
    label: str = ""
    tone: Tone = "plain"
    max_lines: int | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """One share of a bar: `key` is the state, `share` is in thousandths of the bar, `colour` is #rrggbb."""

    key: str
    label: str
    share: int
    text: str
    colour: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A whole split into exclusive shares that add up to it; `text` of the segments adds to 100 %."""

    label: str
    segments: list[Segment]
    total: str


@dataclass(frozen=True, slots=True)
class Column:
    """A table's column; `name=True` marks long names that may be folded to fit. Where there is no room for all columns
    those of the lowest `rank` stay."""

    title: str
    align: Align = "left"
    name: bool = False
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text; `left_out` rows exist that are not shown."""

    title: str
    columns: list[Column]
    rows: list[list[str]]
    left_out: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """One finding: what it is, what fixing it brings, where it is, and in detail why and how."""

    number: int
    code: str
    title: str
    gain: str
    where: str
    facts: list[tuple[str, list[str]]] = field(default_factory=list)
    fix: str = ""
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Items:
    """Short points under one label."""

    label: str
    items: list[str]


@dataclass(frozen=True, slots=True)
class Code:
    """Text to copy as it is."""

    text: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """A remark that limits or explains what stands above."""

    text: str
    tone: Tone = "muted"


@dataclass(frozen=True, slots=True)
class Command:
    """A command line to type next, and what it is for."""

    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Gap:
    """An empty line."""


Block = Heading | Sentence | Bar | Table | Card | Items | Code | Note | Command | Gap


@dataclass(frozen=True, slots=True)
class Document:
    """A report as blocks; see the module docstring."""

    title: str
    summary: list[Block]
    details: list[Block] = field(default_factory=list)
