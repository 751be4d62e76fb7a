"""How does a document look on a terminal? The only renderer that uses rich.

Without `full` the result is a first screen: at most `SCREEN_LINES` lines at the given width, fewer findings rather than
more lines. Colour is the caller's decision; nothing here reads the environment.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from gapless.model.report import Report
from gapless.render import numbers, tones
from gapless.render.build import FINDINGS_ON_SCREEN, build_summary
from gapless.render.build_details import build_details
from gapless.render.document import (
    Bar,
    Block,
    Card,
    Code,
    Command,
    Gap,
    Heading,
    Items,
    Note,
    Sentence,
    Table,
)

SCREEN_LINES = 24
MIN_WIDTH, MAX_WIDTH = 40, 140
_LABEL = 7
_NAME_WIDTH = 12
_BETWEEN = 2
_BAR = (12, 40)
_DENSITIES = (
    (FINDINGS_ON_SCREEN, False),
    (4, False),
    (3, False),
    (3, True),
    (2, False),
    (2, True),
    (1, False),
    (1, True),
)
"""Findings shown and whether lines are saved, tried in this order until the first screen fits."""


def render(report: Report, *, full: bool = False, width: int = 80, color: bool = False) -> str:
    """The report as text that ends in a line break."""
    if full:
        return draw([*build_summary(report), *build_details(report)], width=width, color=color)
    for findings, dense in _DENSITIES:
        screen = draw(build_summary(report, findings, dense=dense), width=width, color=color)
        if screen.count("\n") <= SCREEN_LINES:
            break
    return screen


def draw(blocks: Sequence[Block], *, width: int = 80, color: bool = False) -> str:
    """Blocks as text, one after another."""
    width = max(MIN_WIDTH, min(width, MAX_WIDTH))
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=color, color_system="256" if color else None, no_color=not color,
        markup=False, highlight=False, emoji=False, legacy_windows=False,
    )  # fmt: skip
    labels = _label_widths(blocks)
    last: Block | None = None
    for i, block in enumerate(blocks):
        if last is not None and _apart(last, block):
            console.print()
        if isinstance(block, Sentence):
            _sentence(console, block, labels[i])
        else:
            _draw(console, block)
        last = block
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n"))


def _apart(last: Block, block: Block) -> bool:
    if isinstance(last, Gap) or isinstance(block, Gap):
        return False
    if isinstance(block, Heading):
        return block.level <= 2
    return (isinstance(block, Table) and not isinstance(last, Heading)) or isinstance(last, Table) or _is_long(last)


def _is_long(block: Block) -> bool:
    return isinstance(block, Card) and bool(block.facts)


def _draw(console: Console, block: Block) -> None:
    match block:
        case Heading():
            console.print(Text(block.text, style="bold"))
        case Bar():
            _bar(console, block)
        case Items():
            _items(console, block)
        case Table():
            _table(console, block)
        case Card():
            _card(console, block)
        case Code():
            _code(console, block.text)
        case Note():
            console.print(Text(block.text, style=tones.TONES[block.tone]))
        case Command():
            _command(console, block)
        case Gap():
            console.print()


def _led(label: str, rest: Text | None = None, style: str = "bold") -> Text:
    """`label` in its own style, then `rest` in its own."""
    text = Text()
    text.append(label, style=style)
    return text if rest is None else text.append_text(rest)


def _label_widths(blocks: Sequence[Block]) -> list[int]:
    """For each block the width of its label column: neighbouring sentences line up."""
    widths = [0] * len(blocks)
    start = 0
    for i in range(len(blocks) + 1):
        if i < len(blocks) and isinstance(blocks[i], Sentence):
            continue
        run = blocks[start:i]
        widest = max((len(b.label) + 1 for b in run if isinstance(b, Sentence)), default=0)
        widths[start:i] = [max(_LABEL, widest)] * len(run)
        start = i + 1
    return widths


def _sentence(console: Console, block: Sentence, label_width: int) -> None:
    style = tones.TONES[block.tone]
    label = block.label.ljust(label_width) if block.label else ""
    room = console.width - len(label)
    lines = Text(block.text, style=style).wrap(console, room)
    if block.max_lines is not None and len(lines) > block.max_lines:
        last = Text(lines[block.max_lines - 1].plain.rstrip()[: room - 2] + " …", style=style)
        kept = [*lines[: block.max_lines - 1], last]
    else:
        kept = list(lines)
    for i, line in enumerate(kept):
        console.print(_led(label if i == 0 else " " * len(label), line), no_wrap=True, overflow="crop")


def _bar(console: Console, block: Bar) -> None:
    shown = [s for s in block.segments if s.share > 0]
    legend = Text()
    for i, segment in enumerate(shown):
        legend.append(" · " if i else "")
        legend.append(f"{segment.text} {segment.label}", style=segment.colour)
    legend.append(" = 100 %" if shown else "nothing recorded")
    room = console.width - _LABEL - 1 - legend.cell_len
    cells = min(_BAR[1], room if room >= _BAR[0] else console.width - _LABEL)
    text = _led(block.label.ljust(_LABEL))
    done, cut = 0, 0
    for segment in block.segments:
        done += segment.share
        upto = round(done * cells / 1000)
        text.append(tones.GLYPHS.get(segment.key, "·") * (upto - cut), style=segment.colour)
        cut = upto
    if room >= _BAR[0]:
        console.print(text.append(" ").append_text(legend), no_wrap=True, overflow="crop")
        return
    console.print(text, no_wrap=True, overflow="crop")
    console.print(Padding(legend, (0, 0, 0, _LABEL)))


def _items(console: Console, block: Items) -> None:
    for i, item in enumerate(block.items):
        line = _led((block.label if i == 0 else "").ljust(_LABEL), Text(item))
        line.truncate(console.width, overflow="ellipsis")
        console.print(line, no_wrap=True)


def _table(console: Console, block: Table) -> None:
    if block.title:
        console.print(Text(block.title, style="bold"))
    kept = _fitting(block, console.width)
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    for i in kept:
        column = block.columns[i]
        table.add_column(
            Text(_two_lines(column.title) if column.align == "right" else column.title),
            justify=column.align,
            no_wrap=not column.name,
            overflow="fold" if column.name else "ellipsis",
            min_width=_least(block, i),
        )
    for row in block.rows:
        table.add_row(*[Text(row[i]) for i in kept])
    console.print(table)
    tail = [f"{block.left_out} more rows left out (gapless query has them all)"] if block.left_out else []
    tail += [block.note] if block.note else []
    narrow = len(block.columns) - len(kept)
    tail += [f"{numbers.plural(narrow, 'column')} more in a wider terminal or --format json"] if narrow else []
    if tail:
        console.print(Text("; ".join(tail), style="dim"))


def _fitting(block: Table, width: int) -> list[int]:
    """The columns that fit side by side, by rank, the first one in any case."""
    order = sorted(range(1, len(block.columns)), key=lambda i: (block.columns[i].rank, i))
    kept, used = [0], _least(block, 0)
    for i in order:
        if used + _BETWEEN + _least(block, i) <= width:
            used += _BETWEEN + _least(block, i)
            kept.append(i)
    return sorted(kept)


def _least(block: Table, i: int) -> int:
    """The narrowest a column may get: its longest cell or title line, but names may be folded."""
    column = block.columns[i]
    title = _two_lines(column.title) if column.align == "right" else column.title
    longest = max([*map(cell_len, title.split("\n")), *(cell_len(row[i]) for row in block.rows)])
    return min(longest, _NAME_WIDTH) if column.name else longest


def _two_lines(title: str) -> str:
    """A long title of several words on two lines, broken where the longer line is shortest."""
    words = title.split(" ")
    if len(title) <= 8 or len(words) == 1:
        return title
    breaks = [(" ".join(words[:i]), " ".join(words[i:])) for i in range(1, len(words))]
    return "\n".join(min(breaks, key=lambda pair: max(map(len, pair))))


def _card(console: Console, block: Card) -> None:
    number = f"{block.number:>2} "
    room = console.width - len(number)
    title = Text(f"{block.title}", style="bold").wrap(console, room)
    head = (
        title[0] if block.facts or len(title) == 1 else Text(title[0].plain.rstrip()[: room - 2] + " …", style="bold")
    )
    console.print(_led(number, head, tones.TONES[block.tone]), no_wrap=True, overflow="crop")
    if block.facts:
        for line in title[1:]:
            console.print(_led("   ", line))
        _card_details(console, block)
        return
    second = Text(block.gain, style=tones.TONES[block.tone])
    second.append(f" · {block.where}" if block.where else "", style="dim")
    second.truncate(room, overflow="ellipsis")
    console.print(_led("   ", second), no_wrap=True, overflow="crop")


def _card_details(console: Console, block: Card) -> None:
    summary = _led(
        block.gain,
        Text("".join(f" · {part}" for part in (block.where, block.code) if part), style="dim"),
        tones.TONES[block.tone],
    )
    console.print(Padding(summary, (0, 0, 0, 3)))
    for label, lines in block.facts:
        grid = RichTable.grid(padding=(0, 1, 0, 0))
        grid.add_column(width=13, no_wrap=True)
        grid.add_column(overflow="fold")
        for i, line in enumerate(lines):
            grid.add_row(Text(label if i == 0 else "", style="dim"), Text(line))
        console.print(Padding(grid, (0, 0, 0, 3)))
    if block.fix:
        console.print(Padding(Text("fix", style="dim"), (0, 0, 0, 3)))
        _code(console, block.fix)


def _code(console: Console, code: str) -> None:
    """Lines to copy: never broken, however narrow the terminal."""
    for line in code.rstrip("\n").split("\n"):
        console.print(Text(f"     {line}".rstrip()), soft_wrap=True)


def _command(console: Console, block: Command) -> None:
    text = _led("Next".ljust(_LABEL), Text(block.text, style=tones.TONES["accent"]))
    why = f"  ({block.why})"
    if text.cell_len + len(why) <= console.width:
        text.append(why, style="dim")
    console.print(text, soft_wrap=True)
