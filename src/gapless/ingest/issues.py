"""What was odd while reading? Counts each kind of defect once, with one short example."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Severity = Literal["note", "repaired", "loss", "error"]

EXAMPLE_LIMIT = 120
"""Characters of an example that are kept."""


@dataclass(slots=True)
class _Issue:
    severity: Severity
    count: int
    detail: str
    example: str


class Issues:
    """Defects by code, in order of first appearance."""

    def __init__(self) -> None:
        self._found: dict[str, _Issue] = {}

    def add(self, code: str, severity: Severity, count: int, detail: str, example: str = "") -> None:
        """Count a defect; the first detail and example are kept."""
        if count <= 0:
            return
        known = self._found.get(code)
        if known is None:
            self._found[code] = _Issue(severity, count, detail, shorten(example))
        else:
            known.count += count

    def rows(self) -> list[dict[str, object]]:
        """Rows of the issues table."""
        return [{"code": code, **asdict(issue)} for code, issue in self._found.items()]


def shorten(text: str) -> str:
    """At most `EXAMPLE_LIMIT` characters on one line, without control characters or lone surrogates."""
    line = "".join(c if c.isprintable() else " " for c in text[: EXAMPLE_LIMIT * 2])
    line = line.encode("utf-8", "replace").decode()
    return line if len(line) <= EXAMPLE_LIMIT else line[: EXAMPLE_LIMIT - 1] + "…"
