"""In which formats can a comparison be written, and who writes each? To add one: a writer and a row of `FORMATS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gapless.cli.formats import Look

if TYPE_CHECKING:
    from gapless.api import DiffView


@dataclass(frozen=True, slots=True)
class DiffFormat:
    """One output format: the file names that mean it, and its writer; see `formats.Format`."""

    suffixes: tuple[str, ...]
    write: Callable[[DiffView, Look], str]
    for_people: bool = True


def _text(view: DiffView, look: Look) -> str:
    from gapless.render import build_diff

    return build_diff.text(view.diff, full=look.full, width=look.width, color=look.color)


def _markdown(view: DiffView, look: Look) -> str:
    from gapless.render import build_diff

    return build_diff.markdown(view.diff, full=look.full)


def _json(view: DiffView, _: Look) -> str:
    from gapless.render import json_

    return json_.render(view.diff)


def _html(view: DiffView, look: Look) -> str:
    from gapless.analyses.timeline import timeline
    from gapless.render.html.diff import render_diff_html

    lines = [
        timeline(side.trace.study(side.options.study()), side.report.findings, full=look.full)
        for side in (view.before, view.after)
    ]
    return render_diff_html(view.diff, *lines, full=look.full)


FORMATS: dict[str, DiffFormat] = {
    "text": DiffFormat((".txt",), _text),
    "json": DiffFormat((".json",), _json),
    "markdown": DiffFormat((".md", ".markdown"), _markdown),
    "html": DiffFormat((".html", ".htm"), _html, for_people=False),
}
"""Format -> how it is written."""
