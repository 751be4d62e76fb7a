"""What does one finding look like? A sentence, what it costs, what fixing it brings, why that may be wrong, the fix."""

from __future__ import annotations

from gapless.model.report import Finding, Gain, Report, Site
from gapless.render import numbers, phrases, safe
from gapless.render.html.markup import Child, Html, el, join, lines

SITES = 12


def findings_section(report: Report, placed: set[int]) -> Html:
    """All findings as cards, best first; `placed` are those with a place in this page's timeline."""
    if not report.findings:
        clean = len(report.checks.clean)
        text = f"No fault was found by {numbers.plural(clean, 'check')} that could look."
        return el("p", {"class": "lead"}, text)
    cards = [_card(i, finding, i in placed) for i, finding in enumerate(report.findings)]
    return el("div", {"class": "cards"}, *cards, _together(report))


def _together(report: Report) -> Html | None:
    gain = report.all_fixes
    if gain is None or gain.speedup is None:
        return None
    return el(
        "article",
        {"class": "card all"},
        el(
            "div",
            {"class": "body"},
            el("h3", {}, "All fixes together"),
            el("p", {}, "Gains overlap, so they do not add up."),
        ),
        _gain(gain),
    )


def _card(index: int, finding: Finding, placed: bool) -> Html:
    number = index + 1
    fix_id = f"fix-{number}"
    where = phrases.place(finding.where) or (phrases.place(finding.sites[0]) if finding.sites else "")
    body: list[Child] = [
        el(
            "h3",
            {},
            el(
                "a",
                {"class": "number", "href": f"#finding-{number}", "aria-label": f"link to finding {number}"},
                str(number),
            ),
            " ",
            safe.sentence(finding.title),
        ),
        el(
            "p",
            {"class": "meta"},
            el("span", {"class": "chip"}, finding.kind),
            el("code", {}, finding.code),
            el("span", {}, phrases.per_step(finding.per_step)),
            el("span", {"class": "place"}, where),
        ),
    ]
    if finding.evidence:
        body.append(el("ul", {"class": "evidence"}, *[el("li", {}, safe.sentence(e)) for e in finding.evidence]))
    body.append(
        el("p", {"class": "doubt"}, el("b", {}, "Why this may be wrong: "), safe.sentence(finding.why_it_may_be_wrong))
        if finding.why_it_may_be_wrong
        else None
    )
    if finding.inherits:
        body.append(el("p", {"class": "doubt"}, safe.sentence(finding.inherits)))
    if finding.fix:
        body.append(
            el(
                "div",
                {"class": "fix"},
                el(
                    "div",
                    {"class": "fixbar"},
                    el("b", {}, "The fix"),
                    el("button", {"type": "button", "data-copy": fix_id}, "copy"),
                ),
                el("pre", {"id": fix_id}, lines(finding.fix)),
            )
        )
    body.append(_more(finding))
    body.append(
        el(
            "p",
            {"class": "acts"},
            el("button", {"type": "button", "class": "go", "data-goto-finding": index}, "show in the timeline")
            if placed
            else el("span", {"class": "soft"}, "its example lies outside the part of the trace that this page draws"),
        )
    )
    return el(
        "article",
        {
            "class": "card",
            "id": f"finding-{number}",
            "data-finding": finding.code,
            "data-step-ms": finding.gain.step_ms,
        },
        el("div", {"class": "body"}, *body),
        _gain(finding.gain),
    )


def _more(finding: Finding) -> Html | None:
    if len(finding.sites) < 2 and not finding.assumptions:
        return None
    parts: list[Child] = [el("summary", {}, _sites_title(finding))]
    if finding.sites:
        parts.append(el("ul", {"class": "sites"}, *[_site(s) for s in finding.sites[:SITES]]))
        if len(finding.sites) > SITES:
            parts.append(el("p", {"class": "soft"}, f"and {len(finding.sites) - SITES} more places"))
    if finding.assumptions:
        parts.append(el("p", {}, el("b", {}, "Assumed: "), safe.sentence("; ".join(finding.assumptions))))
    return el("details", {}, *parts)


def _sites_title(finding: Finding) -> str:
    places = numbers.plural(len(finding.sites), "place")
    return f"{places} and what the prediction assumes" if finding.assumptions else places


def _site(site: Site) -> Html:
    text = phrases.place(site) or "place not recorded"
    return el(
        "li", {}, el("b", {}, f"{site.share * 100:.0f} %"), join(" ", text, ", ", phrases.per_step(site.per_step))
    )


def _gain(gain: Gain) -> Html:
    if gain.speedup is None:
        return el(
            "aside", {"class": "gain none"}, el("strong", {}, "gain not known"), el("p", {}, f"method: {gain.method}")
        )
    nothing = abs(gain.speedup - 1) < 0.005
    head = "no gain" if nothing else numbers.speedup(gain.speedup)
    bounds = ""
    if gain.low is not None and gain.high is not None:
        bounds = f"{numbers.speedup(gain.low)} to {numbers.speedup(gain.high)}"
    return el(
        "aside",
        {"class": "gain" + (" none" if nothing else "")},
        el("strong", {}, head),
        el("span", {"class": "soft"}, "predicted" if nothing else "predicted speed-up"),
        el("span", {"class": "range"}, bounds) if bounds else None,
        _before_after(gain),
        el("span", {"class": "soft"}, f"method: {gain.method}"),
    )


def _before_after(gain: Gain) -> Html | None:
    """Two small bars: the step now, and after the fix with its range."""
    after, speedup = gain.step_ms, gain.speedup
    if after is None or not speedup or after <= 0:
        return None
    before = after * speedup
    top = max(before, after, before / gain.low if gain.low else 0)
    width = 150.0

    def x(ms: float) -> float:
        return round(ms / top * width, 1)

    whisker: list[Child] = []
    if gain.low and gain.high:
        a, b = x(before / gain.high), min(width, x(before / gain.low))
        whisker = [
            el("line", {"x1": a, "x2": b, "y1": 39, "y2": 39, "class": "whisker"}),
            el("line", {"x1": a, "x2": a, "y1": 35, "y2": 43, "class": "whisker"}),
            el("line", {"x1": b, "x2": b, "y1": 35, "y2": 43, "class": "whisker"}),
        ]
    label = f"step now {numbers.milliseconds(before)}, after the fix {numbers.milliseconds(after)}"
    return el(
        "svg",
        {"class": "mini", "viewBox": "0 0 152 62", "role": "img", "aria-label": label},
        el("rect", {"x": 0, "y": 4, "width": x(before), "height": 12, "rx": 2, "class": "now"}),
        el("rect", {"x": 0, "y": 33, "width": x(after), "height": 12, "rx": 2, "class": "then"}),
        *whisker,
        el("text", {"x": 0, "y": 26}, f"now {numbers.milliseconds(before)}"),
        el("text", {"x": 0, "y": 57}, f"after {numbers.milliseconds(after)}"),
    )
