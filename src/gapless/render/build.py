"""How does a report become a document? The first screen here, what `--full` adds in `build_details`."""

from __future__ import annotations

from gapless.model.report import Checks, DeviceAccount, Finding, HostAccount, Report
from gapless.render import numbers, phrases, safe, words
from gapless.render.build_details import build_details
from gapless.render.document import Block, Card, Command, Document, Gap, Heading, Items, Note, Sentence
from gapless.render.tones import Tone

FINDINGS_ON_SCREEN = 5
"""Most findings on a first screen; a renderer that is short of lines asks for fewer."""

_TRUST_RANK = {"fail": 0, "warn": 1, "unknown": 2, "note": 3, "ok": 4}


def build(report: Report, *, findings: int = FINDINGS_ON_SCREEN) -> Document:
    """The whole report as blocks; the first screen lists at most `findings` findings."""
    return Document(
        title=phrases.file_name(report), summary=build_summary(report, findings), details=build_details(report)
    )


def build_summary(report: Report, findings: int = FINDINGS_ON_SCREEN, *, dense: bool = False) -> list[Block]:
    """The first screen: verdict, step, shares, what to fix first, checks, trust, next command.

    `dense` says the same in fewer lines: no empty ones, and long remarks are cut.
    """
    gap: list[Block] = [] if dense else [Gap()]
    return [
        Sentence(safe.sentence(report.verdict.sentence, 400), tone="strong", max_lines=2 if dense else 3),
        Sentence(_facts(report), tone="muted", max_lines=1 if dense else 2),
        *gap,
        *_step(report),
        *_shares(report, causes=2 if dense else 3),
        *gap,
        *_findings(report, findings),
        *gap,
        *_state_of_checks(report, lines=1 if dense else 3),
        *_next(report),
    ]


def busiest(report: Report) -> DeviceAccount | None:
    """The device whose activity fills most of its window; the first of equals."""
    return max(report.accounting, key=_busy_ns, default=None)


def main_thread(report: Report) -> HostAccount | None:
    """The thread that steps."""
    return next((h for h in report.host if h.role == "main"), None)


def _busy_ns(account: DeviceAccount) -> int:
    return sum(p.ns for p in account.parts if p.state not in {"idle", "unrecorded"})


def _facts(report: Report) -> str:
    facts = [phrases.file_name(report)]
    device = busiest(report)
    if device is not None:
        facts.append(phrases.device_name(report, device.device))
    if report.trace.get("rank") is not None:
        world = report.trace.get("world_size")
        facts.append(f"rank {safe.line(report.trace['rank'], 12)}" + (f" of {safe.line(world, 12)}" if world else ""))
    used = sum(s.used for s in report.window.steps)
    marker = safe.line(report.window.marker, 40)
    if report.window.steps:
        facts.append(f"{used} of {numbers.plural(len(report.window.steps), 'step')} used ({marker})")
    else:
        facts.append(f"no steps marked ({marker})" if marker else "no steps marked")
    return " · ".join(facts)


def _step(report: Report) -> list[Block]:
    step = report.step
    recorded = f"{numbers.milliseconds(step.wall_ms)} recorded" if step.wall_ms is not None else "time not known"
    counts = [
        numbers.plural(value, one, many)
        for value, one, many in (
            (step.kernels, "kernel", "kernels"),
            (step.launches, "launch", "launches"),
            (step.syncs, "wait for the GPU", "waits for the GPU"),
        )
        if value is not None
    ]
    blocks: list[Block] = [Sentence(f"{recorded}, {phrases.without_profiler(step)}", label="Step", max_lines=2)]
    if counts:
        blocks.append(Sentence(", ".join(counts), label=" ", tone="muted", max_lines=1))
    return blocks


def _shares(report: Report, causes: int) -> list[Block]:
    blocks: list[Block] = []
    device = busiest(report)
    if device is None:
        blocks.append(Note("No GPU work is recorded in this file: only the host can be judged.", tone="warn"))
    else:
        blocks.append(phrases.gpu_bar(device, "GPU"))
        reasons = [(text, share) for text, share, _ in phrases.idle_causes(device) if share > 0]
        if reasons:
            blocks.append(Items("idle", _because(reasons, causes)))
        others = len(report.accounting) - 1
        if others > 0:
            blocks.append(Note(f"{numbers.plural(others, 'other GPU')} in this file: see --full."))
    thread = main_thread(report)
    if thread is not None:
        blocks.append(phrases.host_bar(thread, "Host"))
    return blocks


def _because(causes: list[tuple[str, int]], limit: int) -> list[str]:
    shown, rest = causes[:limit], sum(share for _, share in causes[limit:])
    parts = [f"{share} % while {text}" for text, share in shown]
    if rest:
        parts[-1] += f"; {rest} % otherwise"
    return parts


def _findings(report: Report, limit: int) -> list[Block]:
    if not report.findings:
        looked = len(report.checks.clean)
        if looked == 0:
            return [Note("No check could look at this file, so nothing is known to be wrong or right.", tone="warn")]
        return [
            Sentence(f"Nothing to fix was found by the {numbers.plural(looked, 'check')} that could look.", tone="good")
        ]
    blocks: list[Block] = [Heading("What to fix, best first")]
    blocks.extend(card(i, f) for i, f in enumerate(report.findings[:limit], 1))
    more = len(report.findings) - limit
    tail = []
    if more > 0:
        tail.append(f"{more} more with --full")
    if report.all_fixes is not None and report.all_fixes.speedup is not None and len(report.findings) > 1:
        tail.append(f"all fixes together: {phrases.gain(report.all_fixes)}")
    if tail:
        blocks.append(Note("   " + "; ".join(tail)))
    return blocks


def card(number: int, finding: Finding) -> Card:
    """One finding, short; `build_details` adds the facts."""
    where = phrases.short_place(finding.where or next(iter(finding.sites), None))
    others = len(finding.sites) - 1
    if others > 0:
        where = f"{where} and {others} more" if where else numbers.plural(others + 1, "place")
    cost = phrases.per_step(finding.per_step)
    speed = finding.gain.speedup
    tone: Tone = "bad" if speed is not None and speed >= 1.1 else "warn" if speed is None or speed >= 1.02 else "muted"
    return Card(
        number=number,
        code=safe.line(finding.code, 40),
        title=safe.sentence(finding.title, 200),
        gain=phrases.gain(finding.gain),
        where=" · ".join(part for part in (where, cost) if part),
        tone=tone,
    )


def counts(checks: Checks) -> str:
    """Found, clean and cannot tell: always all three."""
    return f"{len(checks.found)} found · {len(checks.clean)} clean · {len(checks.cannot_tell)} cannot tell"


def _state_of_checks(report: Report, lines: int) -> list[Block]:
    blocks: list[Block] = [Sentence(counts(report.checks), label="Checks", max_lines=1)]
    bad = sorted(
        (t for t in report.trust if t.status in {"fail", "warn", "unknown"}), key=lambda t: _TRUST_RANK[t.status]
    )
    notes = sum(t.status == "note" for t in report.trust)
    lost = sum(i.count for i in report.issues if i.severity in {"loss", "error", "repaired"})
    if bad:
        mark = words.TRUST_MARKS[bad[0].status]
        text = f"{mark}: {safe.sentence(bad[0].detail, 300)}"
        rest = [numbers.plural(len(bad) - 1, "more remark")] if len(bad) > 1 else []
    else:
        text = "nothing speaks against these numbers" if report.trust else "not checked"
        rest = []
    if notes:
        rest.append(numbers.plural(notes, "note"))
    if lost:
        rest.append(f"{numbers.plural(lost, 'event')} repaired or lost while reading")
    tail = f" ({', '.join(rest)}: see --full)" if rest else ""
    tone: Tone = "warn" if bad or lost else "plain"
    blocks.append(Sentence(text + tail, label="Trust", tone=tone, max_lines=lines))
    return blocks


def _next(report: Report) -> list[Block]:
    blocks: list[Block] = []
    if report.findings:
        code = safe.line(report.findings[0].code, 40)
        blocks.append(Command(f"gapless explain {code}", "what it means and how to fix it"))
    blocks.append(Command(phrases.command("report", report, "--full"), "everything, with the fixes"))
    return blocks
