"""What does a notebook show of a report? The verdict, the bars and the findings, without script and within a cell."""

from __future__ import annotations

from gapless.model import palette
from gapless.model.report import Report
from gapless.render import numbers, phrases, safe, words
from gapless.render.html.markup import Child, Html, el, join

FINDINGS = 5
_STYLE = (
    ".gapless-c{font:14px/1.5 system-ui,sans-serif;max-width:860px;padding:4px 0}.gapless-c p{margin:4px 0}"
    ".gapless-c .v{font-size:17px;font-weight:600}.gapless-c .s{opacity:.7}.gapless-c .b{display:flex;height:22px;"
    "border-radius:4px;overflow:hidden;margin:6px 0}.gapless-c .b>div{min-width:1px}.gapless-c .i{background-image:"
    "repeating-linear-gradient(135deg,rgba(0,0,0,.22) 0 2px,transparent 2px 6px)}.gapless-c td{padding:3px 10px 3px 0;"
    "text-align:left;vertical-align:top}.gapless-c table{border-collapse:collapse;margin-top:4px}"
)


def compact_html(report: Report) -> str:
    """A fragment for `_repr_html_`."""
    step = report.step
    head = [f"step {numbers.milliseconds(step.wall_ms)} recorded", phrases.without_profiler(step)]
    return el(
        "div",
        {"class": "gapless-c"},
        Html(f"<style>{_STYLE}</style>"),
        el("p", {"class": "v"}, safe.sentence(report.verdict.sentence)),
        el("p", {"class": "s"}, " · ".join([phrases.file_name(report), *head])),
        *[_bar(report, i) for i in range(len(report.accounting))],
        _findings(report),
        el("p", {"class": "s"}, _checks(report)),
    )


def _bar(report: Report, index: int) -> Html:
    account = report.accounting[index]
    parts = sorted(account.parts, key=lambda p: (p.state == "idle", -p.ns))
    shares = numbers.apportion([p.ns for p in parts])
    said = [
        f"{words.GPU_STATES.get(p.state, p.state)}{f' ({p.cause})' if p.cause else ''} {share} %"
        for p, share in zip(parts, shares, strict=True)
        if share
    ]
    pieces = [
        el(
            "div",
            {
                "class": "i" if p.state == "idle" else None,
                "style": f"flex-grow:{max(p.ns, 0)};background-color:{palette.colour(p.state, p.cause)}",
                "title": f"{p.state} {p.cause or ''} {numbers.nanoseconds(p.ns)}",
            },
        )
        for p in parts
    ]
    name = phrases.device_name(report, account.device)
    return join(
        el("div", {"class": "b", "role": "img", "aria-label": ", ".join(said)}, *pieces),
        el("p", {"class": "s"}, f"{name}: {', '.join(said)}"),
    )


def _findings(report: Report) -> Html | None:
    if not report.findings:
        return None
    rows: list[Child] = [
        el(
            "tr",
            {},
            el("td", {}, str(i)),
            el("td", {}, safe.sentence(f.title)),
            el("td", {}, phrases.gain(f.gain)),
            el("td", {}, phrases.short_place(f.where)),
        )
        for i, f in enumerate(report.findings[:FINDINGS], 1)
    ]
    more = len(report.findings) - FINDINGS
    rest = el("p", {"class": "s"}, f"and {more} more") if more > 0 else None
    return join(el("table", {}, el("tbody", {}, *rows)), rest)


def _checks(report: Report) -> str:
    c = report.checks
    return f"checks: {len(c.found)} found something, {len(c.clean)} clean, {len(c.cannot_tell)} cannot tell"
