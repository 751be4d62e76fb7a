"""What does the comparison say in one paragraph, words first?

In this order: what makes the two hard to compare, whether the step is faster, what was changed, what that did to the
GPU's work, waits that only moved, what bounds the step now, whether compiling pays, and whether the promise was kept.
"""

from __future__ import annotations

from gapless.comparison import words
from gapless.comparison.changes import NAMED
from gapless.comparison.comparable import Findings
from gapless.comparison.facts import Facts
from gapless.comparison.side import recorded
from gapless.model.diff import Change, Predicted, WaitRow

MOST_CHANGES = 2
LIMITED = 1.25
"""The GPU's saving must exceed the step's by this factor before the text says what keeps the step from following."""
_BOUNDS = {
    "gpu-compute": "the GPU's computing", "gpu-memory": "the GPU's memory traffic", "host": "the host", "sync": "waiting for the GPU",
    "input": "loading data", "copy": "copies", "communication": "communication", "compile": "compilation",
}  # fmt: skip


def summarize(
    f: Facts, known: Findings, changes: list[Change], waits: list[WaitRow], predicted: Predicted | None
) -> str:
    """The paragraph."""
    if known.status == "no":
        return f"The two traces cannot be compared: {known.reasons[0]}."
    parts = [_caveat(known), _verdict(f), _changed(f, changes), _work(f), _limit(f), _moved(waits), _pays(f)]
    if predicted is not None:
        parts.append(predicted.sentence[:1].upper() + predicted.sentence[1:])
    return " ".join(f"{part}." for part in parts if part)


def _caveat(known: Findings) -> str:
    return f"Compared only in part: {known.reasons[0]}" if known.status == "partly" and known.stops else ""


def _verdict(f: Facts) -> str:
    s = f.speedup
    free = s.value is not None and s.basis != "recorded"
    step = recorded(f.before, f.after)
    if free:
        step = f.before.report.step.unprofiled_ms, f.after.report.step.unprofiled_ms
    times = ""
    if step[0] is not None and step[1] is not None:
        times = f" ({words.ms(step[0])} before, {words.ms(step[1])} after{', without the profiler' if free else ', as recorded'})"
    value = s.value if s.basis == "unprofiled" else s.recorded
    if s.verdict == "faster" and value:
        return f"The step is {words.ratio(value)} faster{times}"
    if s.verdict == "slower" and value:
        return f"The step is {words.ratio(1 / value)} slower{times}"
    if s.verdict == "same":
        return "Both files are the same recording" if s.noise == 0 else f"The step takes the same time{times}; {s.why}"
    return f"Whether the step is faster is undecided{times}: {s.why}"


def _changed(f: Facts, changes: list[Change]) -> str:
    if not changes:
        return "Nothing else differs" if f.speedup.noise != 0 else ""
    strong = [c for c in changes if c.weight >= NAMED] or changes
    shown = [c.text for c in strong[:MOST_CHANGES]]
    more = len(changes) - len(shown)
    return f"What changed: {'; '.join(shown)}" + (
        f"; {more} more difference{'s' if more > 1 else ''} below" if more else ""
    )


def _work(f: Facts) -> str:
    kernels, launches = f.by_name.get("kernels", (None, None)), f.by_name.get("launches", (None, None))
    parts = []
    if None not in kernels and kernels[0] != kernels[1]:
        parts.append(f"kernels a step go from {words.count(kernels[0] or 0)} to {words.count(kernels[1] or 0)}")
    if None not in launches and launches[0] != launches[1]:
        verb = "launches from" if parts else "launches a step go from"
        parts.append(f"{verb} {words.count(launches[0] or 0)} to {words.count(launches[1] or 0)}")
    if f.fusion.kind != "none":
        parts.append(f.fusion.why)
        saved = sum(r.bytes_saved or 0.0 for r in f.fusion.fused)
        if saved:
            parts.append(f"{words.size(saved)} a step need no longer travel")
    elif bool(f.compile.before.regions) != bool(f.compile.after.regions):
        parts.append(f.fusion.why)
    text = "; ".join(parts)
    return text[:1].upper() + text[1:]


def _limit(f: Facts) -> str:
    """Why the step gained less than the GPU's work did."""
    before, after = f.before.report.step, f.after.report.step
    value = f.speedup.value or f.speedup.recorded
    if not value or not before.gpu_busy_ms or not after.gpu_busy_ms or f.speedup.verdict == "undecided":
        return ""
    less = before.gpu_busy_ms / after.gpu_busy_ms
    if less < max(LIMITED * value, LIMITED) or f.after.report.verdict.bound not in ("host", "sync", "input", "compile"):
        return ""
    text = f"The GPU's work shrank from {words.ms(before.gpu_busy_ms)} to {words.ms(after.gpu_busy_ms)}"
    if before.host_wait_ms and after.host_wait_ms is not None and before.host_wait_ms > 1.25 * after.host_wait_ms:
        text += (
            f" and the host is blocked for {words.ms(after.host_wait_ms)} instead of {words.ms(before.host_wait_ms)}"
        )
    still = "still " if f.before.report.verdict.bound == f.after.report.verdict.bound else ""
    return f"{text}, but {_BOUNDS[f.after.report.verdict.bound]} {still}bounds the step"


def _moved(waits: list[WaitRow]) -> str:
    moved = next((row for row in waits if row.moved_to and row.who == "host"), None)
    return f"{words.ms(moved.moved_ms)} of waiting moved from {moved.cause} to {moved.moved_to}" if moved else ""


def _pays(f: Facts) -> str:
    c = f.compile
    if not c.break_even or f.speedup.noise == 0 or (c.before.regions and c.cost_ms is None):
        return ""
    host = ""
    if c.host_ms_before and c.host_ms_after and not c.before.regions:
        host = f"; the host's work per step goes from {words.ms(c.host_ms_before)} to {words.ms(c.host_ms_after)}"
    cost = f" ({words.ms(c.cost_ms)})" if c.cost_ms else ""
    word, _, why = c.break_even.partition(": ")
    if word == "never":
        return f"Compiling{cost} never pays: {why}{host}"
    if word == "not known":
        return f"When compiling{cost} pays cannot be told: {why}{host}"
    return f"Compiling{cost} pays {c.break_even}{host}"
