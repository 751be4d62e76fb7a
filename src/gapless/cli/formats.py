"""In which formats can a report be written, and who writes each? To add one: a writer and a row of `FORMATS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from gapless.model.errors import UsageError

if TYPE_CHECKING:
    from gapless.api import ReportView


@dataclass(frozen=True, slots=True)
class Look:
    """How text is laid out."""

    full: bool = False
    width: int = 80
    color: bool = False


Writer = Callable[[Sequence["ReportView"], Look], str]


@dataclass(frozen=True, slots=True)
class Format:
    """One output format: the file names that mean it, and its writer of one or several reports.

    What is not `for_people` would only flood a terminal: it needs a file or a pipe.
    """

    suffixes: tuple[str, ...]
    write: Writer
    for_people: bool = True


def choose(asked: str | None, output: str | None) -> str:
    """The format asked for, else the one that the output file's name means, else text."""
    if asked is not None:
        return asked
    if output is None or output == "-":
        return "text"
    suffix = PurePath(output).suffix.lower()
    for name, form in FORMATS.items():
        if suffix in form.suffixes:
            return name
    known = ", ".join(s for f in FORMATS.values() for s in f.suffixes)
    raise UsageError(f"{output}: no format goes with the name '{suffix}'; end it in one of {known}, or pass --format")


def _text(views: Sequence[ReportView], look: Look) -> str:
    from gapless.render import text

    pages = [text.render(v.report, full=look.full, width=look.width, color=look.color) for v in views]
    return ("\n" + "─" * min(look.width, 80) + "\n\n").join(pages)


def _markdown(views: Sequence[ReportView], look: Look) -> str:
    from gapless.render import markdown

    return "\n---\n\n".join(markdown.render(v.report, full=look.full) for v in views)


def _json(views: Sequence[ReportView], _: Look) -> str:
    from gapless.render import json_

    reports = [json_.to_dict(v.report) for v in views]
    return json_.dumps(reports[0] if len(reports) == 1 else reports)


def _html(views: Sequence[ReportView], look: Look) -> str:
    if len(views) != 1:
        raise UsageError(f"a page shows one trace, but {len(views)} were read; name one file, or choose it by --rank")
    from gapless.analyses.timeline import timeline
    from gapless.render.html import render_html

    view = views[0]
    study = view.trace.study(view.options.study())
    return render_html(view.report, timeline(study, view.report.findings, full=look.full), full=look.full)


FORMATS: dict[str, Format] = {
    "text": Format((".txt",), _text),
    "json": Format((".json",), _json),
    "markdown": Format((".md", ".markdown"), _markdown),
    "html": Format((".html", ".htm"), _html, for_people=False),
}
"""Format -> how it is written; several reports (ranks) become one text, one page, one JSON list."""
