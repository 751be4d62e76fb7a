"""Where does a step go? One bar a device and a host thread, whose shares add to 100 %, with a legend in words."""

from __future__ import annotations

from gapless.model import palette
from gapless.model.report import DeviceAccount, HostAccount, Report
from gapless.render import numbers, phrases, words
from gapless.render.html.markup import Child, Html, el, join

Share = tuple[str, bool, str, str, int]
"""Family, hatched, title, words, nanoseconds."""
SMALL = 5
"""Thousandths of the whole below which a part goes under a fold."""
_STATE_ORDER = ("compute", "communication", "copy", "unrecorded")


def device_section(report: Report, account: DeviceAccount) -> Html:
    """One device's window."""
    busy = sorted(
        (p for p in account.parts if p.state != "idle"),
        key=lambda p: _STATE_ORDER.index(p.state) if p.state in _STATE_ORDER else 9,
    )
    idle = sorted((p for p in account.parts if p.state == "idle"), key=lambda p: (-p.ns, p.cause or ""))
    shares: list[Share] = [
        (palette.family(p.state), False, words.GPU_STATES.get(p.state, p.state), "", p.ns) for p in busy
    ]
    shares += [
        (palette.family("idle", p.cause), True, f"idle: {p.cause}", words.IDLE_CAUSES.get(p.cause or "", ""), p.ns)
        for p in idle
    ]
    name = phrases.device_name(report, account.device)
    return _section(name, "device", account.wall_ns, shares)


def host_section(account: HostAccount) -> Html:
    """One host thread's window."""
    by_state: dict[tuple[str, str], int] = {}
    for part in account.parts:
        key = (part.state, part.detail)
        by_state[key] = by_state.get(key, 0) + part.ns
    order = {state: i for i, state in enumerate(words.HOST_STATES)}
    keys = sorted(by_state, key=lambda k: (order.get(k[0], len(order)), -by_state[k], k[1]))
    shares: list[Share] = [
        (
            palette.HOST_FAMILY.get(state, "unknown"), state in ("wait", "queue-full"),
            words.HOST_STATES.get(state, state), detail, by_state[state, detail],
        )
        for state, detail in keys
    ]  # fmt: skip
    role = words.ROLES.get(account.role, "thread")
    return _section(f"{role.capitalize()} · {account.thread}", "host", account.wall_ns, shares)


def _section(title: str, kind: str, wall_ns: int, shares: list[Share]) -> Html:
    parts = numbers.apportion([ns for *_, ns in shares], 1000)
    pieces: list[Child] = []
    rows: list[Child] = []
    small: list[Child] = []
    for (family, hatched, label, why, ns), part in zip(shares, parts, strict=True):
        percent = f"{part / 10:.1f} %"
        look = f"f-{family}" + (" hatch" if hatched else "")
        wide = part >= 70
        pieces.append(
            el(
                "div",
                {
                    "class": f"piece {look}",
                    "style": f"flex-grow:{max(ns, 0)}",
                    "title": f"{label}: {percent}, {numbers.nanoseconds(ns)}" + (f" ({why})" if why else ""),
                    "data-ns": ns,
                },
                el("span", {}, el("b", {}, f"{part / 10:.0f} %"), f" {label}") if wide else None,
            )
        )
        (rows if part >= SMALL else small).append(
            el(
                "li",
                {},
                el("i", {"class": f"swatch {look}"}),
                el("b", {}, percent),
                el("span", {"class": "label"}, label),
                el("span", {"class": "time"}, numbers.nanoseconds(ns)),
                el("span", {"class": "why"}, why),
            )
        )
    return el(
        "div",
        {"class": "account", "data-kind": kind, "data-wall-ns": wall_ns},
        el("h3", {}, title, el("small", {}, join(" ", numbers.nanoseconds(wall_ns), ", adds up exactly"))),
        el("div", {"class": "bar", "role": "img", "aria-label": _spoken(title, shares, parts)}, *pieces),
        el("ul", {"class": "legend"}, *rows),
        el(
            "details",
            {},
            el("summary", {}, f"{numbers.plural(len(small), 'part')} below {SMALL / 10:.1f} %"),
            el("ul", {"class": "legend"}, *small),
        )
        if small
        else None,
    )


def _spoken(title: str, shares: list[Share], parts: list[int]) -> str:
    said = [f"{label} {part / 10:.1f} %" for (_, _, label, _, _), part in zip(shares, parts, strict=True)]
    return f"{title}: " + ", ".join(said)
