"""How long was each step, and which ones count? A small chart, at most one bar for every two pixels."""

from __future__ import annotations

from statistics import median

from gapless.model.report import Report, StepRow
from gapless.render import numbers
from gapless.render.html.markup import Child, Html, el

MOST_BARS = 300
_WIDTH, _HEIGHT, _LEFT = 1000, 150, 64


def steps_chart(report: Report) -> Html | None:
    """Bars over time; None with fewer than two steps."""
    rows = report.window.steps
    if len(rows) < 2:
        return None
    groups = _grouped(rows)
    tallest = max(_ms(r) for r in rows) or 1.0
    slot = (_WIDTH - _LEFT) / len(groups)
    bars: list[Child] = []
    for i, group in enumerate(groups):
        worst = max(group, key=_ms)
        height = max(1.5, _ms(worst) / tallest * (_HEIGHT - 30))
        state = "used" if any(r.used for r in group) else "unused"
        why = f" (not used: {worst.why})" if worst.why else ""
        bars.append(
            el(
                "rect",
                {
                    "x": round(_LEFT + i * slot + slot * 0.08, 2), "y": round(_HEIGHT - 20 - height, 2),
                    "width": round(slot * 0.84, 2), "height": round(height, 2), "class": state, "rx": 1.5,
                },
                )
        )  # fmt: skip
        bars[-1] = _titled(bars[-1], f"{worst.name}: {numbers.milliseconds(_ms(worst))}{why}")
    used = [_ms(r) for r in rows if r.used]
    marks: list[Child] = []
    if used:
        middle = median(used)
        y = round(_HEIGHT - 20 - middle / tallest * (_HEIGHT - 30), 2)
        marks = [
            el("line", {"x1": _LEFT, "x2": _WIDTH, "y1": y, "y2": y, "class": "median"}),
            el("text", {"x": _LEFT - 6, "y": y + 4, "class": "end"}, numbers.milliseconds(middle)),
        ]
    ends = [
        el("text", {"x": _LEFT, "y": _HEIGHT - 4}, rows[0].name),
        el("text", {"x": _WIDTH, "y": _HEIGHT - 4, "class": "end"}, rows[-1].name),
    ]
    chart = el(
        "svg",
        {"class": "steps", "viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "role": "img", "aria-label": _spoken(rows, used)},
        *bars, *marks, *ends,
    )  # fmt: skip
    reasons = sorted({f"{r.name}: {r.why}" for r in rows if r.why})
    note = (
        f"Line: median of the {numbers.plural(len(used), 'step')} that count, marker as recorded (profiler included)."
    )
    if len(groups) < len(rows):
        note += f" Each bar is the longest of {-(-len(rows) // len(groups))} steps."
    extra = (
        el(
            "details",
            {},
            el("summary", {}, f"{numbers.plural(len(reasons), 'step')} not counted"),
            el("ul", {}, *[el("li", {}, r) for r in reasons[:50]]),
        )
        if reasons
        else None
    )
    return el("div", {}, chart, el("p", {"class": "soft"}, note), extra)


def _grouped(rows: list[StepRow]) -> list[list[StepRow]]:
    size = -(-len(rows) // MOST_BARS)
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def _titled(rect: Child, title: str) -> Html:
    return el("g", {}, rect, el("title", {}, title))


def _ms(row: StepRow) -> float:
    return max(0, row.end_ns - row.start_ns) / 1e6


def _spoken(rows: list[StepRow], used: list[float]) -> str:
    middle = numbers.milliseconds(median(used)) if used else "unknown"
    return f"{len(rows)} steps, {len(used)} of them counted, median {middle}"
