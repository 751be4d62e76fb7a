"""What does the page of a comparison show? The verdict, what changed, and the two steps above each other on one scale.

Work that only one side has is marked in the timelines: above it, in the later one what appeared, in the earlier one
what is gone.
"""

from __future__ import annotations

from collections.abc import Sequence

from gapless.model.diff import CountRow, Diff, DiffSide, KernelRow, SyncSiteRow, WaitRow
from gapless.model.timeline import Timeline
from gapless.render import numbers, safe, words
from gapless.render.html import guide, page, tables
from gapless.render.html.markup import Child, Html, el, join
from gapless.render.html.page import Section

_OUTCOMES = {"faster": "Faster", "slower": "Slower", "same": "No difference", "undecided": "Cannot be decided"}
_CHANGES = {"same": "the same", "faster": "faster", "slower": "slower", "removed": "gone", "added": "new"}


def render_diff_html(
    diff: Diff, before: Timeline | None = None, after: Timeline | None = None, *, full: bool = False
) -> str:
    """The page of a comparison; timelines that are too big are left out unless `full`, and the page says so."""
    sections: list[Section] = [("changes", "What changed", _changes(diff))]
    if diff.waits:
        sections.append(("waits", "Where waiting went", _waits(diff.waits)))
    sections.append(("counts", "Per step", _counts(diff)))
    sections.append(("tables", "Kernels, copies and waits", _tables(diff)))
    packed, note = page.packed([before, after], full)
    data: list[Html] = []
    if packed and before and after:
        panels = [
            page.timeline_panel("timeline-before", before, f"Before · {_name(diff.before)}"),
            page.timeline_panel("timeline-after", after, f"After · {_name(diff.after)}"),
        ]
        key = el(
            "p",
            {"class": "soft"},
            "Both move together. A line above GPU work marks what only that side has: ",
            el("b", {"class": "gone"}, "gone"), " before, ", el("b", {"class": "new"}, "new"), " after.",
        )  # fmt: skip
        sections.append(("timeline", "Both steps on one scale", join(key, el("div", {"class": "pair"}, *panels))))
        data = [page.data_block("timeline-before", packed[0]), page.data_block("timeline-after", packed[1])]
    elif note:
        sections.append(("timeline", "Both steps on one scale", el("p", {"class": "lead"}, note)))
    sections.append(("guide", "How to read this page", guide.GUIDE))
    title = f"{_name(diff.before)} and {_name(diff.after)}"
    return page.document(
        title,
        _hero(diff),
        sections,
        data,
        _footer(diff, [*(note for t in (before, after) if t for note in t.notes), *([note] if note else [])]),
    )


def _name(side: DiffSide) -> str:
    return safe.line(str(side.trace.get("path") or "-").rsplit("/", 1)[-1], 60)


def _hero(diff: Diff) -> Html:
    s = diff.speedup
    tone = {"faster": "good", "slower": "bad"}.get(s.verdict, "plain")
    return el(
        "div",
        {"class": "hero"},
        el(
            "p",
            {"class": "facts"},
            el("span", {}, f"before: {_name(diff.before)}"),
            el("span", {}, f"after: {_name(diff.after)}"),
        ),
        el("p", {"class": f"bound {tone}"}, _OUTCOMES.get(s.verdict, s.verdict)),
        el("h1", {"data-verdict": s.verdict}, safe.sentence(diff.summary)),
        el("dl", {"class": "tiles"}, *_tiles(diff)),
        el("p", {"class": "soft"}, safe.sentence(s.why)) if s.why else None,
        _comparable(diff),
    )


def _tiles(diff: Diff) -> list[Html]:
    s, a, b = diff.speedup, diff.before.step, diff.after.step
    bounds = (
        f"{numbers.speedup(s.low)} to {numbers.speedup(s.high)}" if s.low is not None and s.high is not None else ""
    )
    pairs = [
        ("speed-up", numbers.speedup(s.value), bounds, s.value),
        ("step without the profiler", _arrow(a.unprofiled_ms, b.unprofiled_ms), "", a.unprofiled_ms),
        (
            "step, recorded",
            _arrow(diff.before.recorded_ms, diff.after.recorded_ms),
            f"ratio {numbers.speedup(s.recorded)}" if s.recorded else "",
            diff.before.recorded_ms,
        ),
        ("GPU busy", _arrow(a.gpu_busy_ms, b.gpu_busy_ms), "", a.gpu_busy_ms),
        ("host works", _arrow(diff.before.host_ms, diff.after.host_ms), "", diff.before.host_ms),
        ("noise", "" if s.noise is None else f"{s.noise * 100:.0f} %", "differences below mean nothing", s.noise),
    ]
    return [
        el("div", {"data-value": raw}, el("dt", {}, name), el("dd", {}, text), el("dt", {}, more) if more else None)
        for name, text, more, raw in pairs
        if raw is not None
    ]


def _arrow(before: float | None, after: float | None) -> str:
    return f"{numbers.milliseconds(before)} → {numbers.milliseconds(after)}"


def _comparable(diff: Diff) -> Html | None:
    c = diff.comparable
    if c.status == "yes" and not c.reasons:
        return None
    head = {
        "yes": "The two can be compared.",
        "partly": "The two can be compared only in part.",
        "no": "The two cannot be compared.",
    }
    parts: list[Child] = [el("b", {}, head[c.status])]
    parts.append(el("ul", {"class": "evidence"}, *[el("li", {}, safe.sentence(r)) for r in c.reasons]))
    for label, items in (("left out because of that", c.withheld), ("compared after a correction", c.corrected)):
        if items:
            parts.append(el("p", {}, f"{label}: {', '.join(safe.name(i) for i in items)}"))
    return el("div", {"class": "cannot", "data-comparable": c.status}, *parts)


def _changes(diff: Diff) -> Html:
    parts: list[Child] = []
    if diff.changes:
        rows = [
            el(
                "li",
                {},
                safe.sentence(c.text),
                el("span", {"class": "soft"}, f" {_saving(c.ms)}") if abs(c.ms) > 0 else None,
                el("span", {"class": "chip"}, c.kind) if c.kind else None,
            )
            for c in diff.changes
        ]
        parts.append(el("ul", {"class": "evidence big"}, *rows))
    else:
        parts.append(el("p", {"class": "lead"}, "Nothing that would explain a difference was found."))
    if diff.predicted and diff.predicted.sentence:
        tone = {True: "good", False: "bad", None: "plain"}[diff.predicted.kept]
        parts.append(
            el(
                "p",
                {"class": f"promise {tone}"},
                el("b", {}, "The prediction: "),
                safe.sentence(diff.predicted.sentence),
            )
        )
    if diff.fusion != "none":
        parts.append(el("p", {}, el("b", {}, f"Fusion: {diff.fusion}. "), safe.sentence(diff.fusion_why)))
    parts.append(_compile(diff))
    return join(*parts)


def _saving(ms: float) -> str:
    return f"(up to {numbers.milliseconds(ms)} a step less)" if ms > 0 else f"({numbers.milliseconds(-ms)} a step more)"


def _compile(diff: Diff) -> Html | None:
    c = diff.compile
    if not (c.regions or c.before.regions):
        return None
    facts = [
        f"{numbers.count(c.before.regions)} → {numbers.count(c.regions)} compiled regions a step",
        f"{numbers.count(c.before.graph_breaks)} → {numbers.count(c.graph_breaks)} graph breaks",
        f"{numbers.count(c.before.recompiles)} → {numbers.count(c.recompiles)} recompilations",
    ]
    breaks = [
        el(
            "li",
            {},
            el("code", {}, f"{b.file}:{b.line}" if b.file else "place not recorded"),
            join(" ", safe.sentence(b.reason), f", {numbers.count(b.count)} a step ({b.side})"),
        )
        for b in diff.compile.breaks[:20]
    ]
    return join(
        el(
            "p",
            {},
            el("b", {}, "torch.compile: "),
            ", ".join(facts) + ".",
            f" {safe.sentence(c.break_even)}" if c.break_even else "",
        ),
        el("ul", {"class": "sites"}, *breaks) if breaks else None,
    )


def _waits(rows: Sequence[WaitRow]) -> Html:
    """Two bars a cause, on one scale."""
    top = max((max(r.before_ms, r.after_ms) for r in rows), default=0) or 1
    body = []
    for r in sorted(rows, key=lambda r: -max(r.before_ms, r.after_ms))[:24]:
        moved = f"moved to {r.moved_to}" if r.moved_to else f"came from {r.moved_from}" if r.moved_from else ""
        who = "GPU idle" if r.who == "gpu" else "host waits"
        body.append(
            el(
                "div",
                {"class": "duel"},
                el("div", {"class": "who"}, el("b", {}, r.cause), el("span", {"class": "soft"}, words.IDLE_CAUSES.get(r.cause, "") if r.who == "gpu" else ""), el("small", {}, who)),
                el(
                    "div",
                    {"class": "rails"},
                    _rail("then", r.before_ms, top),
                    _rail("now", r.after_ms, top),
                    el("span", {"class": "soft"}, f"{numbers.milliseconds(r.moved_ms)} {moved}") if moved else None,
                ),
            )
        )  # fmt: skip
    more = el("p", {"class": "soft"}, f"and {len(rows) - 24} smaller ones") if len(rows) > 24 else None
    return join(el("p", {"class": "soft"}, "Milliseconds a step: grey before, blue after."), *body, more)


def _rail(kind: str, ms: float, top: float) -> Html:
    # The rest of the line is for the number.
    width = max(0.0, min(1.0, ms / top)) * 82
    return el(
        "div",
        {"class": f"rail {kind}"},
        el("i", {"style": f"width:{width:.2f}%"}),
        el("span", {}, numbers.milliseconds(ms)),
    )


def _counts(diff: Diff) -> Html:
    rows: list[list[tables.Cell]] = [
        [(r.what, None), _amount(r, r.before), _amount(r, r.after), _difference(r)] for r in diff.counts
    ]
    return tables.table("Counts", [("per step", False), ("before", True), ("after", True), ("difference", True)], rows)


def _amount(row: CountRow, value: float | None) -> tables.Cell:
    if value is None:
        return "cannot tell", None
    return (numbers.size(value) if row.unit == "bytes" else numbers.count(value)), value


def _difference(row: CountRow) -> tables.Cell:
    if row.before is None or row.after is None:
        return "", None
    change = row.after - row.before
    shown = numbers.size(abs(change)) if row.unit == "bytes" else numbers.count(abs(change))
    return ("0" if change == 0 else f"{'+' if change > 0 else '−'}{shown}"), change


def _tables(diff: Diff) -> Html:
    k, c = diff.kernels, diff.copies
    panels: list[tuple[str, Html]] = []
    for title, fused in (("Fused", k.fused), ("No longer fused", k.unfused)):
        if fused:
            heads = [
                ("kernel", False),
                ("replaces", False),
                ("runs", True),
                ("kernels before", True),
                ("before", True),
                ("after", True),
                ("bytes saved", True),
            ]
            panels.append(
                (
                    f"{title} ({len(fused)})",
                    tables.table(title, heads, [
                        [(f.name, None), (", ".join(f.replaces), None), (numbers.count(f.count), f.count), (numbers.count(f.kernels), f.kernels),
                         (numbers.milliseconds(f.before_ms), f.before_ms), (numbers.milliseconds(f.after_ms), f.after_ms),
                         ("" if f.bytes_saved is None else numbers.size(f.bytes_saved), f.bytes_saved)]
                        for f in fused
                    ]),
                )
            )  # fmt: skip
    for title, rows in (
        ("Gone", [*k.removed, *c.removed]),
        ("New", [*k.added, *c.added]),
        ("On both sides", [*k.same, *c.same]),
    ):
        if rows:
            panels.append((f"{title} ({len(rows)})", _kernels(title, rows)))
    if diff.sync_sites:
        panels.append((f"Waits by place ({len(diff.sync_sites)})", _sync_sites(diff.sync_sites)))
    return tables.tabs(panels) if panels else el("p", {"class": "soft"}, "There is nothing to list.")


def _kernels(title: str, rows: Sequence[KernelRow]) -> Html:
    heads = [("name", False), ("calls before", True), ("after", True), ("time before", True), ("time after", True), ("one call before", True),
             ("one call after", True), ("change", False), ("family", False), ("op", False), ("shapes", False)]  # fmt: skip

    def us(value: float | None) -> tables.Cell:
        return ("", None) if value is None else (numbers.milliseconds(value / 1e3), value)

    return tables.table(title, heads, [
        [(r.name, None), (numbers.count(r.before), r.before), (numbers.count(r.after), r.after),
         (numbers.milliseconds(r.before_ms), r.before_ms), (numbers.milliseconds(r.after_ms), r.after_ms),
         us(r.before_us), us(r.after_us), (_CHANGES.get(r.change, r.change), None), (r.family, None), (r.op or "", None), (r.shapes or "", None)]
        for r in rows
    ])  # fmt: skip


def _sync_sites(rows: Sequence[SyncSiteRow]) -> Html:
    heads = [
        ("call", False),
        ("count before", True),
        ("after", True),
        ("time before", True),
        ("time after", True),
        ("where", False),
        ("origin", False),
    ]

    def where(r: SyncSiteRow) -> str:
        place = f"{r.file}:{r.line}" if r.file else ""
        return " in ".join(p for p in (r.op or "", place, r.module or "") if p)

    return tables.table("Waits", heads, [
        [(r.name, None), (numbers.count(r.before), r.before), (numbers.count(r.after), r.after), (numbers.milliseconds(r.before_ms), r.before_ms),
         (numbers.milliseconds(r.after_ms), r.after_ms), (where(r), None), (r.origin, None)]
        for r in rows
    ])  # fmt: skip


def _footer(diff: Diff, left_out: list[str]) -> Html:
    facts = [
        f"{diff.tool.get('name', 'gapless')} {diff.tool.get('version', '')}",
        safe.line(diff.before.trace.get("path") or "-"),
        safe.line(diff.after.trace.get("path") or "-"),
    ]
    text = "; ".join(safe.sentence(n) for n in dict.fromkeys(left_out))
    said = f"Left out of this page: {text}" if text else "Nothing was left out of this page."
    return join(el("p", {}, *[el("span", {}, f) for f in facts]), el("p", {}, said))
