"""What is on the report page, in which order? One self-contained document that asks the network for nothing.

Order: verdict, where a step goes, findings, steps over time, tables, timeline, what the file cannot tell, how to read
the page. The content policy allows the one script by its hash, inline styles, and no connection of any kind.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files

from gapless.model import palette
from gapless.model.report import Report
from gapless.model.timeline import Timeline
from gapless.render import numbers, phrases, safe, wire, words
from gapless.render.html import bars, cards, guide, quality, steps, tables
from gapless.render.html.markup import Child, Html, el, join

MOST_BYTES = 3_000_000
"""Largest page unless `full`: what mail and chat pass on and what opens at once."""
REST_BYTES = 400_000
"""Room kept for everything but the timeline."""
Section = tuple[str, str, Child]


def render_html(report: Report, timeline: Timeline | None = None, *, full: bool = False) -> str:
    """The page. `full` lifts the limit on its size; else a timeline that is too big is left out, and the page says so."""
    texts, left_out = packed([timeline], full)
    placed = {p.finding for p in timeline.places} if timeline and texts else set()
    sections: list[Section] = [
        ("time", "Where a step goes", _accounts(report)),
        ("findings", "What to fix first", cards.findings_section(report, placed)),
    ]
    chart = steps.steps_chart(report)
    if chart:
        sections.append(("steps", "Steps over time", chart))
    sections.append(("tables", "Tables", tables.tables_section(report)))
    if timeline and texts:
        sections.append(("timeline", "Timeline", timeline_panel("timeline-data", timeline, "")))
    elif left_out:
        sections.append(("timeline", "Timeline", el("p", {"class": "lead"}, left_out)))
    sections.append(("quality", "What this file cannot tell", quality.quality_section(report)))
    sections.append(("guide", "How to read this page", guide.GUIDE))
    data = [data_block("timeline-data", text) for text in texts]
    notes = [*(timeline.notes if timeline else []), *([left_out] if left_out else [])]
    return document(phrases.file_name(report), _hero(report), sections, data, _footer(report, notes))


def document(title: str, hero: Child, sections: list[Section], data: list[Html], footer: Child) -> str:
    """A whole page around its sections."""
    script, style = _asset("report.js"), _asset("report.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "connect-src 'none'; base-uri 'none'; form-action 'none'"
    )
    nav = [el("a", {"href": f"#{key}"}, name) for key, name, _ in sections]
    body = [
        el("section", {"id": key, "aria-labelledby": f"{key}-title"}, el("h2", {"id": f"{key}-title"}, name), content)
        for key, name, content in sections
    ]
    head = join(
        el("meta", {"charset": "utf-8"}),
        el("meta", {"http-equiv": "Content-Security-Policy", "content": policy}),
        el("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        el("meta", {"name": "color-scheme", "content": "light dark"}),
        el("meta", {"name": "referrer", "content": "no-referrer"}),
        el("title", {}, f"{title} · gapless"),
        Html(f"<style>{style}{_family_style()}</style>"),
    )
    page = join(
        el("a", {"class": "skip", "href": "#findings"}, "to the findings"),
        el(
            "header",
            {"class": "top"},
            el("a", {"class": "brand", "href": "#top", "id": "top"}, _logo(), "gapless"),
            el("nav", {"aria-label": "sections"}, *nav),
            el("button", {"type": "button", "data-help": True, "title": "keys and gestures"}, "?"),
        ),
        el("main", {}, hero, *body),
        el("footer", {}, footer),
        el("dialog", {"id": "help"}, guide.HELP, el("button", {"type": "button", "data-close": True}, "close")),
        *data,
        _json_block("gapless-palette", _palette()),
        Html(f"<script>{script}</script>"),
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{page}</body></html>\n'


def timeline_panel(key: str, timeline: Timeline, title: str) -> Html:
    """The frame that the script fills; `key` is the id of the data block."""

    def act(name: str, text: str, hint: str, pressed: bool | None = None) -> Html:
        state = None if pressed is None else str(pressed).lower()
        return el("button", {"type": "button", "data-act": name, "title": hint, "aria-pressed": state}, text)

    families = [f for f in palette.FAMILY_TITLES if _is_used(timeline, f)]
    return el(
        "div",
        {"class": "tl", "data-timeline": key},
        el("h3", {}, title) if title else None,
        el(
            "div",
            {"class": "tl-bar"},
            el("input", {"type": "search", "data-tl": "search", "placeholder": "search by name ( / )", "aria-label": "search the timeline by name"}),
            act("next", "next", "next match (Enter)"),
            el("span", {"class": "soft", "data-tl": "status", "role": "status"}),
            el("span", {"class": "fill"}),
            act("out", "−", "zoom out (s)"),
            act("in", "+", "zoom in (w)"),
            act("fit", "fit step", "fit the step (f)"),
            act("chain", "critical chain", "the pieces that decide the step's length (c)", bool(len(timeline.chain.box))),
            act("arrows", "arrows", "from launch to work, from wait to its cause (l)", True),
            act("link", "copy link", "a link to this view"),
        ),
        el("canvas", {"class": "tl-map", "data-tl": "map", "aria-hidden": "true", "title": "the whole recording; drag to move"}),
        el(
            "div",
            {"class": "tl-stage", "data-tl": "stage", "tabindex": 0, "role": "application", "aria-label": "timeline: w a s d to move, / to search, ? for help"},
            el("canvas", {"data-tl": "canvas"}),
            el("div", {"class": "tl-tip", "data-tl": "tip", "hidden": True}),
        ),
        el("ul", {"class": "keys-legend"}, *[el("li", {}, el("i", {"class": f"swatch f-{f}" + (" hatch" if palette.FAMILY_TITLES[f].startswith("idle") else "")}), palette.FAMILY_TITLES[f]) for f in families]),
        el("div", {"class": "tl-detail", "data-tl": "detail", "aria-live": "polite"}, el("p", {"class": "soft"}, "Click anything to read what it is and why it is there.")),
        el("p", {"class": "soft"}, "Left out: " + "; ".join(safe.sentence(n) for n in timeline.notes) + ".") if timeline.notes else None,
    )  # fmt: skip


def data_block(key: str, packed: str) -> Html:
    """Packed data that the script reads; base64 cannot end the element."""
    return Html(f'<script type="text/plain" id="{key}">{packed}</script>')


def packed(timelines: Sequence[Timeline | None], full: bool) -> tuple[list[str], str]:
    """The timelines as text for `data_block`; nothing, and why, where they would make the page too big."""
    drawn = [t for t in timelines if t is not None and len(t.boxes.start_ns)]
    if len(drawn) < len(timelines):
        return [], ""
    texts = [wire.encode(t) for t in drawn]
    size = sum(map(len, texts))
    if full or size < MOST_BYTES - REST_BYTES:
        return texts, ""
    return (
        [],
        f"the timeline alone takes {numbers.size(size)}, more than a page may have; `--full` writes it all the same",
    )


def _is_used(timeline: Timeline, family: str) -> bool:
    return timeline.overview is None or family in timeline.overview.families


def _hero(report: Report) -> Html:
    bound = words.BOUNDS.get(report.verdict.bound, report.verdict.bound)
    devices = ", ".join(phrases.device_name(report, d.device) for d in report.accounting)
    rank = report.trace.get("rank")
    facts = [
        phrases.file_name(report), devices, f"rank {rank}" if rank is not None else "",
        numbers.plural(len(report.window.steps), "step") + f" ({sum(s.used for s in report.window.steps)} counted)",
    ]  # fmt: skip
    return el(
        "div",
        {"class": "hero"},
        el("p", {"class": "facts"}, *[el("span", {}, f) for f in facts if f]),
        el("p", {"class": f"bound bound-{report.verdict.bound}"}, bound),
        el("h1", {"data-verdict": report.verdict.bound}, safe.sentence(report.verdict.sentence)),
        el("dl", {"class": "tiles"}, *_tiles(report)),
        el("p", {"class": "soft"}, phrases.without_profiler(report.step).capitalize() + "."),
    )


def _tiles(report: Report) -> list[Html]:
    s = report.step
    tiles: list[tuple[str, str, str, float | None]] = [
        ("step, recorded", numbers.milliseconds(s.wall_ms), "wall_ms", s.wall_ms),
        ("without the profiler", numbers.milliseconds(s.unprofiled_ms), "unprofiled_ms", s.unprofiled_ms),
        ("GPU busy", numbers.milliseconds(s.gpu_busy_ms), "gpu_busy_ms", s.gpu_busy_ms),
        ("host works", numbers.milliseconds(s.host_work_ms), "host_work_ms", s.host_work_ms),
        ("host waits", numbers.milliseconds(s.host_wait_ms), "host_wait_ms", s.host_wait_ms),
        ("launches", numbers.count(s.launches), "launches", s.launches),
        ("waits", numbers.count(s.syncs), "syncs", s.syncs),
    ]
    shown = [
        el("div", {"data-number": key, "data-value": raw}, el("dt", {}, name), el("dd", {}, text))
        for name, text, key, raw in tiles
        if raw is not None
    ]
    if report.all_fixes and report.all_fixes.speedup:
        shown.append(
            el(
                "div",
                {"class": "best"},
                el("dt", {}, "all fixes, predicted"),
                el("dd", {}, numbers.speedup(report.all_fixes.speedup)),
            )
        )
    return shown


def _accounts(report: Report) -> Html:
    devices = [bars.device_section(report, a) for a in report.accounting]
    main = [bars.host_section(h) for h in report.host if h.role in ("main", "autograd")]
    other = [bars.host_section(h) for h in report.host if h.role not in ("main", "autograd")]
    more = el("details", {}, el("summary", {}, numbers.plural(len(other), "other thread")), *other) if other else None
    if not devices and not main:
        return el("p", {"class": "lead"}, "The file holds no time that could be accounted for.")
    return join(*devices, *main, more)


def _footer(report: Report, left_out: list[str]) -> Html:
    digest = str(report.trace.get("sha256") or "")
    facts = [
        f"{report.tool.get('name', 'gapless')} {report.tool.get('version', '')}", phrases.file_of(report),
        numbers.size(report.trace.get("bytes")) if report.trace.get("bytes") else "", f"sha256 {digest[:16]}" if digest else "",
        phrases.command("report", report, "-o", "report.html"),
    ]  # fmt: skip
    text = (
        "Left out of this page: " + "; ".join(safe.sentence(n) for n in left_out)
        if left_out
        else "Nothing was left out of this page."
    )
    return join(el("p", {}, *[el("span", {}, f) for f in facts if f]), el("p", {}, text))


def _asset(name: str) -> str:
    return files("gapless.render").joinpath("assets", name).read_text("utf-8")


def _family_style() -> str:
    return "".join(f".f-{name}{{--c:{value}}}" for name, value in palette.FAMILY_COLOURS.items())


def _palette() -> dict[str, dict[str, str]]:
    return {
        "families": palette.FAMILY_COLOURS, "titles": palette.FAMILY_TITLES, "states": palette.STATE_FAMILY,
        "causes": palette.CAUSE_FAMILY, "boxes": palette.BOX_COLOURS, "words": words.IDLE_CAUSES,
    }  # fmt: skip


def _json_block(key: str, value: object) -> Html:
    text = json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
    return Html(f'<script type="application/json" id="{key}">{text}</script>')


def _logo() -> Html:
    return Html(
        '<svg class="logo" viewBox="0 0 34 20" aria-hidden="true"><rect x="0" y="3" width="14" height="6" rx="1.5"/>'
        '<rect x="17" y="3" width="17" height="6" rx="1.5"/><rect x="0" y="12" width="23" height="6" rx="1.5" class="b"/>'
        '<rect x="24" y="12" width="10" height="6" rx="1.5" class="b"/></svg>'
    )
