"""How is text from a trace made harmless wherever it is shown? Names in a trace are hostile input.

`line` gives one printable line, `block` keeps line breaks; both show control, bidirectional, zero-width and private
characters as visible escapes, cut runs of combining marks, and cut long text in the middle, where an ellipsis says so.
Escaping for one format (`markdown`, `csv_cell`) comes on top and is the renderer's business.
"""

from __future__ import annotations

import re
import unicodedata

LINE_LIMIT = 1000
"""Longest single line in machine-readable output; real demangled kernel names reach about 900 characters."""
NAME_LIMIT = 160
"""Longest name in text for people."""
BLOCK_LIMIT = 20_000
"""Longest block of several lines (a fix, a page)."""
ELLIPSIS = "…"

_MAX_MARKS = 3
"""Combining marks kept on one letter: no written language needs more, and stacks of them overwrite other lines."""
_LONG_WORD = re.compile(rf"\S{{{NAME_LIMIT + 1},}}")
_MARKDOWN = re.compile(r"([\\`*_\[\]<>!|~&@$]|:(?=//)|(?<=www)\.)")
_MARKDOWN_START = re.compile(r"^(\s*)(#+(?=\s)|[+-](?=\s)|=(?==)|\d+(?=[.)]\s))")
_GLYPHS = str.maketrans(
    {
        "█": "#", "▓": "=", "▒": "-", "░": ".", "·": "-", "…": "~", "µ": "u", "→": ">", "×": "x", "≈": "~",
        "─": "-", "│": "|", "━": "-", "•": "*", "–": "-",
    }
)  # fmt: skip


def shorten(text: str, limit: int) -> str:
    """`text` in at most `limit` characters: the middle goes, head and tail stay, an ellipsis marks the cut."""
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 3
    return text[: limit - 1 - tail] + ELLIPSIS + (text[-tail:] if tail else "")


def line(text: object, limit: int = LINE_LIMIT) -> str:
    """One printable line of at most `limit` characters."""
    raw = text if isinstance(text, str) else str(text)
    if len(raw) <= limit and raw.isascii() and raw.isprintable():
        return raw
    return shorten(_visible(shorten(raw, limit)), limit)


def name(text: object) -> str:
    """A name for people: one line, short."""
    return line(text, NAME_LIMIT)


def sentence(text: object, limit: int = LINE_LIMIT) -> str:
    """A sentence that may carry names: one line, and no single word longer than a name may be."""
    flat = " ".join(line(text if isinstance(text, str) else str(text), 4 * limit).split())
    return shorten(_LONG_WORD.sub(lambda m: shorten(m.group(), NAME_LIMIT), flat), limit)


def block(text: object, limit: int = BLOCK_LIMIT) -> str:
    """Several printable lines; tabs become four spaces, carriage returns line breaks."""
    raw = shorten(text if isinstance(text, str) else str(text), limit)
    raw = raw.replace("\r\n", "\n").replace("\r", "\n").replace("\t", "    ")
    return "\n".join(line(one) for one in raw.split("\n"))


def markdown(text: str) -> str:
    """`text`, already a safe line, so that Markdown shows it literally: no markup, link, mention, HTML, cell."""
    return _MARKDOWN_START.sub(_escape_start, _MARKDOWN.sub(r"\\\1", text))


def markdown_code(text: str) -> str:
    """`text`, already a safe line, as a Markdown code span, whatever backticks or pipes it holds."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") or not text.strip() else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def csv_cell(text: str) -> str:
    """`text` as a spreadsheet must read it: never as a formula."""
    safe = line(text)
    return "'" + safe if safe[:1] in {"=", "+", "-", "@"} else safe


def ascii_only(text: str) -> str:
    """Our own glyphs replaced for terminals that cannot show them; other characters become `?`."""
    return text.translate(_GLYPHS).encode("ascii", "replace").decode("ascii")


def _escape_start(match: re.Match[str]) -> str:
    space, mark = match.groups()
    return f"{space}{mark}\\" if mark.isdigit() else f"{space}\\{mark}"


def _visible(text: str) -> str:
    out: list[str] = []
    marks = 0
    for char in text:
        category = unicodedata.category(char)
        marks = marks + 1 if category[0] == "M" else 0
        if marks > _MAX_MARKS:
            continue
        if category[0] not in "CZ":
            out.append(char)
        elif category == "Zs":
            out.append(" ")
        elif char in "\n\r\t":
            out.append({"\n": "\\n", "\r": "\\r", "\t": "\\t"}[char])
        else:
            out.append(_escape(ord(char)))
    return "".join(out)


def _escape(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
