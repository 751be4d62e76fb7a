"""How are a report's places, gains, shares and commands put into words? Used by every part of the document."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from gapless.model import palette
from gapless.model.report import DeviceAccount, Gain, HostAccount, PerStep, Report, Site, StepNumbers, SyncRow
from gapless.render import numbers, safe, words
from gapless.render.document import Bar, Segment

PLACE_LIMIT = 90


def file_of(report: Report) -> str:
    """The path as the user gave it, safe to show."""
    return safe.line(report.trace.get("path") or "-")


def file_name(report: Report) -> str:
    """The file's own name, short."""
    return safe.line(PurePath(file_of(report)).name or "-", 60)


def command(verb: str, report: Report, *more: str) -> str:
    """A command line on this trace that can be pasted into a shell."""
    path = file_of(report)
    target = "TRACE" if path == "-" or "\\x" in path or safe.ELLIPSIS in path else shlex.quote(path)
    return " ".join(["gapless", verb, target, *more])


def device_name(report: Report, index: int) -> str:
    """The device's name and, where there are several, its number."""
    devices: Sequence[dict[str, Any]] = report.trace.get("devices") or []
    found = next((d.get("name") for d in devices if d.get("index") == index), None)
    name = safe.line(found, 40) if found else "GPU"
    return f"{name} ({index})" if len(devices) > 1 or not found else name


def place(site: Site | SyncRow | None) -> str:
    """Where in the user's program: line, else module, else op; empty if the file does not say."""
    if site is None:
        return ""
    parts = []
    if site.op:
        parts.append(safe.line(site.op, 50))
    if site.file:
        path = safe.line(site.file, PLACE_LIMIT)
        parts.append(f"at {path}:{site.line}" if site.line is not None else f"in {path}")
    if site.module:
        parts.append(f"in {safe.line(site.module, 50)}")
    return " ".join(parts)


def short_place(site: Site | None) -> str:
    """The one word that finds the place: file and line, else module, else op."""
    if site is None:
        return ""
    if site.file:
        name = safe.line(PurePath(safe.line(site.file)).name, 40)
        return f"{name}:{site.line}" if site.line is not None else name
    return safe.line(site.module or site.op or "", 40)


def per_step(cost: PerStep) -> str:
    """How often and how long per step; nothing for a finding that no event stands for."""
    if cost.count <= 0 and cost.ms <= 0:
        return ""
    if cost.count <= 0:
        return f"{numbers.milliseconds(cost.ms)} a step"
    return f"{numbers.count(cost.count)} a step, {numbers.milliseconds(cost.ms)}"


def gain(value: Gain | None) -> str:
    """A predicted gain with its bounds: never a promise."""
    if value is None or value.speedup is None:
        return "gain not known"
    bounds = ""
    if value.low is not None and value.high is not None:
        bounds = f" ({numbers.speedup(value.low)} to {numbers.speedup(value.high)})"
    if abs(value.speedup - 1) < 0.005:
        return f"no gain expected{bounds}"
    word = "faster" if value.speedup > 1 else "as fast"
    return f"predicted {numbers.speedup(value.speedup)} {word}{bounds}"


def without_profiler(step: StepNumbers) -> str:
    """The step time without the profiler, how it is known, or why it is withheld."""
    if step.unprofiled_ms is None:
        why = safe.sentence(step.unprofiled_why, 120)
        return f"without the profiler: not known{f' ({why})' if why else ''}"
    text = numbers.milliseconds(step.unprofiled_ms)
    if step.unprofiled_method == "measured":
        return f"{text} without the profiler (measured)"
    bounds = ""
    if step.unprofiled_low_ms is not None and step.unprofiled_high_ms is not None:
        bounds = f" ({numbers.span(step.unprofiled_low_ms, step.unprofiled_high_ms)})"
    return f"about {text}{bounds} without the profiler"


def gpu_bar(account: DeviceAccount, label: str) -> Bar:
    """A device's window by state; what is printed adds to 100 %."""
    by_state: dict[str, int] = {}
    for part in account.parts:
        by_state[part.state] = by_state.get(part.state, 0) + part.ns
    order = {state: i for i, state in enumerate(words.GPU_STATES)}
    states = sorted(by_state, key=lambda s: (order.get(s, len(order)), s))
    largest = max((p for p in account.parts if p.state == "idle"), key=lambda p: p.ns, default=None)
    cause = largest.cause if largest else None
    parts = [(s, words.GPU_STATES.get(s, safe.name(s)), by_state[s], palette.colour(s, cause)) for s in states]
    return _bar(label, parts, account.wall_ns)


def host_bar(account: HostAccount, label: str) -> Bar:
    """A host thread's window by state; what is printed adds to 100 %."""
    by_state: dict[str, int] = {}
    for part in account.parts:
        by_state[part.state] = by_state.get(part.state, 0) + part.ns
    order = {state: i for i, state in enumerate(words.HOST_STATES)}
    states = sorted(by_state, key=lambda s: (order.get(s, len(order)), s))
    colours = {s: palette.FAMILY_COLOURS[palette.HOST_FAMILY.get(s, "unknown")] for s in states}
    parts = [(s, words.HOST_STATES.get(s, safe.name(s)), by_state[s], colours[s]) for s in states]
    return _bar(label, parts, account.wall_ns)


def idle_causes(account: DeviceAccount) -> list[tuple[str, int, int]]:
    """Causes of the device's idle time: (phrase, whole percent of the window, ns), largest first.

    The percentages add to the idle share that `gpu_bar` prints.
    """
    idle = sorted((p for p in account.parts if p.state == "idle"), key=lambda p: (-p.ns, p.cause or ""))
    bar = gpu_bar(account, "")
    whole = next((s.share for s in bar.segments if s.key == "idle"), 0) // 10
    shares = numbers.apportion([p.ns for p in idle], whole)
    return [
        (words.IDLE_CAUSES.get(p.cause or "", safe.name(p.cause or "no cause")), share, p.ns)
        for p, share in zip(idle, shares, strict=True)
    ]


def _bar(label: str, parts: list[tuple[str, str, int, str]], wall_ns: int) -> Bar:
    shares = numbers.apportion([ns for _, _, ns, _ in parts])
    segments = [
        Segment(key=key, label=label_, share=share * 10, text=f"{share} %", colour=colour)
        for (key, label_, _, colour), share in zip(parts, shares, strict=True)
    ]
    return Bar(label=label, segments=segments, total=numbers.nanoseconds(wall_ns))
