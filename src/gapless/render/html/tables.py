"""Which rows stand in the sortable, searchable tables? The report's own, with raw values beside what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gapless.model.report import Report, SyncRow
from gapless.render import numbers, phrases, safe
from gapless.render.html.markup import Child, Html, el, join

Cell = tuple[str, str | float | None]
"""What is shown, and the raw value to sort and copy (None: the same)."""
SHORT = 22
"""Longest text that stays on one line."""
LONG = 60
"""Longest text that is shown whole; longer ones fold to two lines and unfold under the pointer."""
_TITLES = {"kernels": "Kernels", "ops": "Ops", "modules": "Modules", "launches": "Launches", "copies": "Copies"}


def tables_section(report: Report) -> Html:
    """Tabs with one table each; empty tables have no tab."""
    panels: list[tuple[str, Html]] = []
    for name, rows in report.tables.items():
        if rows:
            title = _TITLES.get(name, safe.line(name, 40).replace("_", " ").capitalize())
            panels.append((f"{title} ({len(rows)})", _generic(title, rows)))
    if report.syncs:
        panels.append((f"Waits ({len(report.syncs)})", _syncs(report.syncs)))
    if not panels:
        return el("p", {"class": "soft"}, "The report carries no tables.")
    return tabs(panels)


def tabs(panels: Sequence[tuple[str, Html]]) -> Html:
    """Titles to choose from and the chosen content; without script all of it is shown."""
    buttons = [
        el(
            "button",
            {
                "type": "button", "role": "tab", "aria-controls": f"table-{i}",
                "aria-selected": "true" if i == 0 else "false",
            },
            title,
        )
        for i, (title, _) in enumerate(panels)
    ]  # fmt: skip
    bodies = [el("div", {"id": f"table-{i}", "role": "tabpanel"}, body) for i, (_, body) in enumerate(panels)]
    return join(el("div", {"role": "tablist", "class": "tabs"}, *buttons), *bodies)


def table(title: str, heads: list[tuple[str, bool]], rows: list[list[Cell]]) -> Html:
    """A table with search, sorting and copying; `heads` are titles and whether the column holds numbers."""
    head = [
        el("th", {"class": "n" if number else None, "scope": "col"}, el("button", {"type": "button"}, text))
        for text, number in heads
    ]
    body = [
        el("tr", {}, *[_cell(shown, raw, number) for (shown, raw), (_, number) in zip(row, heads, strict=True)])
        for row in rows
    ]
    return el(
        "div",
        {"class": "tablebox", "data-table": True},
        el(
            "div",
            {"class": "tablebar"},
            el(
                "input",
                {
                    "type": "search",
                    "data-filter": True,
                    "placeholder": f"search {title.lower()}",
                    "aria-label": f"search {title.lower()}",
                },
            ),
            el("span", {"data-count": True, "class": "soft"}),
            el("button", {"type": "button", "data-copy-csv": True}, "copy as CSV"),
        ),
        el("div", {"class": "scroll"}, el("table", {}, el("thead", {}, el("tr", {}, *head)), el("tbody", {}, *body))),
        el("button", {"type": "button", "data-more": True, "class": "more"}, "show all rows"),
    )


def _cell(shown: str, raw: str | float | None, number: bool) -> Html:
    if len(shown) > LONG:
        return el("td", {"data-v": raw}, el("div", {"class": "clamp", "title": shown}, shown))
    look = "n" if number else "wide" if len(shown) > SHORT else None
    return el("td", {"class": look, "data-v": raw if raw is not None and str(raw) != shown else None}, shown)


_UNITS = (
    ("_ns", "", 1e-6), ("_us", "", 1e-3), ("_ms", "", 1.0), ("_bytes", "", None), ("_pct", " %", None),
    ("_gb_s", " GB/s", None), ("_tflops", " TFLOP/s", None),
)  # fmt: skip

_WHOLE = {"mb": "MB", "gb_s": "GB/s", "tflops": "TFLOP/s"}


def _generic(title: str, rows: list[dict[str, Any]]) -> Html:
    keys = list(dict.fromkeys(k for row in rows for k in row))
    numeric = {
        k: all(isinstance(r.get(k), (int, float, type(None))) and not isinstance(r.get(k), bool) for r in rows)
        for k in keys
    }
    # What is it, how much of it, then the rest: a narrow screen shows the first columns.
    keys = [*keys[:1], *(k for k in keys[1:] if numeric[k]), *(k for k in keys[1:] if not numeric[k])]
    heads = [(_head(k), numeric[k]) for k in keys]
    return table(title, heads, [[_value(k, row.get(k)) for k in keys] for row in rows])


def _head(key: str) -> str:
    if key in _WHOLE:
        return _WHOLE[key]
    for suffix, unit, _ in _UNITS:
        if key.endswith(suffix):
            return key[: -len(suffix)].replace("_", " ") + unit
    return key.replace("_", " ")


def _value(key: str, value: object) -> Cell:
    if value is None:
        return "", None
    if isinstance(value, bool):
        return ("yes" if value else "no"), None
    if isinstance(value, (int, float)):
        for suffix, _, scale in _UNITS:
            if key.endswith(suffix) and scale is not None:
                return numbers.milliseconds(value * scale), value
        if key.endswith("bytes"):
            return numbers.size(value), value
        if key == "share" or key.endswith("_share"):
            return f"{value * 100:.1f} %", value
        return (numbers.count(value) if isinstance(value, int) else numbers.significant(value)), value
    if isinstance(value, (list, tuple)):
        return ", ".join(str(v) for v in value[:8]), None
    return str(value), None


def _syncs(rows: list[SyncRow]) -> Html:
    heads = [
        ("call", False), ("origin", False), ("where", False), ("count", True), ("time", True), ("waited for kernels", True),
        ("for copies", True), ("for the unrecorded", True), ("overhead", True), ("GPU idle after", True), ("gain", True),
    ]  # fmt: skip

    def ms(value: float) -> Cell:
        return numbers.milliseconds(value), value

    body: list[list[Cell]] = [
        [
            (r.name, None), (r.origin, None), (phrases.place(r), None), (numbers.count(r.count), r.count), ms(r.wall_ms),
            ms(r.waited.gpu_work_ms), ms(r.waited.copy_ms), ms(r.waited.untraced_ms), ms(r.waited.overhead_ms),
            ms(r.idle_after_ms), ("" if r.gain is None else numbers.speedup(r.gain), r.gain),
        ]
        for r in rows
    ]  # fmt: skip
    note: Child = el(
        "p", {"class": "soft"}, "A long wait is GPU work being waited for, not work itself: look at what it waited for."
    )
    return join(table("Waits", heads, body), note)
