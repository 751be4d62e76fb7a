"""What can this file not tell, and how far can it be trusted? Never silence: found, clean, or cannot tell and why."""

from __future__ import annotations

from gapless.model.report import Report
from gapless.render import numbers, safe, words
from gapless.render.html.markup import Child, Html, el, join

_MARKS = {"ok": "✓", "note": "i", "warn": "!", "fail": "✕", "unknown": "?"}


def quality_section(report: Report) -> Html:
    """Checks that could not look, trust in the recording, and what was odd while reading."""
    return join(_checks(report), _trust(report), _issues(report))


def _checks(report: Report) -> Html:
    found, clean, unable = report.checks.found, report.checks.clean, report.checks.cannot_tell
    counts = f"{numbers.plural(len(found) + len(clean) + len(unable), 'check')}: {len(found)} found something, {len(clean)} clean, {len(unable)} cannot tell."
    rows: list[Child] = [
        el(
            "div",
            {"class": "cannot"},
            el("code", {}, c.code),
            el("p", {}, safe.sentence(c.reason)),
            el("p", {"class": "how"}, el("b", {}, "To find out: "), safe.sentence(c.how)) if c.how else None,
        )
        for c in unable
    ]
    lists = [
        el(
            "details",
            {},
            el("summary", {}, f"{len(codes)} {title}"),
            el("p", {"class": "codes"}, *[el("code", {}, c) for c in codes]),
        )
        for title, codes in (("found something", found), ("clean", clean))
        if codes
    ]
    return join(el("p", {"class": "lead"}, counts), *rows, *lists)


def _trust(report: Report) -> Html | None:
    if not report.trust:
        return None
    rows = [
        el(
            "li",
            {"class": f"t-{t.status}"},
            el("i", {"class": "mark", "title": words.TRUST_MARKS.get(t.status, t.status)}, _MARKS.get(t.status, "?")),
            el("code", {}, t.check),
            el("span", {}, safe.sentence(t.detail)),
        )
        for t in sorted(report.trust, key=lambda t: ["fail", "warn", "unknown", "note", "ok"].index(t.status))
    ]
    return join(el("h3", {}, "Can the recording be trusted?"), el("ul", {"class": "trust"}, *rows))


def _issues(report: Report) -> Html | None:
    if not report.issues:
        return None
    rows = [
        el(
            "li",
            {},
            el("code", {}, i.code),
            el(
                "span",
                {},
                join(
                    f"{words.SEVERITIES.get(i.severity, i.severity)}, {numbers.count(i.count)}: ",
                    safe.sentence(i.detail),
                ),
            ),
            el("span", {"class": "soft"}, f"for example {safe.name(i.example)}") if i.example else None,
        )
        for i in report.issues
    ]
    return join(el("h3", {}, "What was odd while reading"), el("ul", {"class": "issues"}, *rows))
