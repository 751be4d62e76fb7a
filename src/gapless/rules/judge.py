"""Which faults does the trace show, what is each worth, and what are all fixes worth together?

Every rule is asked. A fault's gain is the replayed step time with its edit against without; its range comes from the
rule's cautious and hopeful edits, widened by how far host-bound times move between runs. Gains below the threshold are
not findings, unless the fault matters once the others are fixed. Findings are ranked by gain. For each, its gain on
top of the better ones is replayed too: where little is left, the text says who inherits the wait.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gapless.model.report import CannotTell, Checks, Finding, Gain, PerStep, Site
from gapless.replay.engine import Run, run
from gapless.rules.context import Context
from gapless.rules.outcome import Found, SiteCost, Unknown
from gapless.rules.registry import Rule, rules

HOST_NOISE = 0.10
"""Host-bound step times move by 10-20 % between runs of one program (H200 labels)."""
CLOCK_DRIFT = 0.025
"""GPU clocks differ by about 2.5 % between recordings (H200), lower where the GPU has no rest."""
INHERITS_BELOW = 0.3
LATE_GAIN = 1.05
MOST_SITES = 20


@dataclass(frozen=True, slots=True)
class Judgement:
    """Findings best first, the state of every check, and the gain of all fixes together (None without a finding)."""

    findings: list[Finding]
    checks: Checks
    all_fixes: Gain | None


@dataclass(frozen=True, slots=True)
class _Case:
    rule: Rule
    found: Found
    expected: float
    low: float
    high: float
    step_ns: float


def judge(context: Context) -> Judgement:
    """Ask every rule and rank what they find."""
    checks = Checks()
    cases: list[_Case] = []
    before = context.p.unprofiled
    if context.p.clean is None or before is None or context.p.withheld:
        reason = context.p.withheld or "no program could be rebuilt"
        return Judgement([], _unjudged(reason), None)
    for rule in rules():
        outcome = rule.check(context)
        if isinstance(outcome, Unknown):
            checks.cannot_tell.append(CannotTell(rule.code, outcome.reason, outcome.how))
        elif isinstance(outcome, Found):
            cases.append(_weigh(context, rule, outcome, before))
        else:
            checks.clean.append(rule.code)
    cases.sort(key=lambda case: (-case.expected, case.rule.code))
    chained = _chain(context, cases, before)
    findings = []
    for case, left in zip(cases, chained.left, strict=True):
        matters = case.expected >= context.thresholds.min_speedup or left >= LATE_GAIN or case.found.edit is None
        if not matters:
            checks.clean.append(case.rule.code)
            continue
        checks.found.append(case.rule.code)
        findings.append(_finding(context, case, _inherits(context, case, cases[0], left)))
    checks.clean.sort()
    return Judgement(findings, checks, chained.together if findings else None)


@dataclass(frozen=True, slots=True)
class _Chained:
    """Speed-up that each case still brings once all better ones are fixed, and the gain of all together."""

    left: list[float]
    together: Gain | None


def _chain(context: Context, cases: list[_Case], before: Run) -> _Chained:
    """Make the fixes one after another, best first."""
    program, now, floor = context.program, before, 0.0
    left, best = [], before.period_ns
    for case in cases:
        if case.found.edit is None:
            left.append(1.0)
            continue
        program = case.found.edit(program)
        floor = max(floor, case.found.floor_ns[0])
        after = _no_less(run(program, context.p.machine), floor)
        left.append(now.period_ns / max(after.period_ns, 1.0))
        now, best = after, min(best, after.period_ns, case.step_ns)
    edits = [case for case in cases if case.found.edit is not None and case.expected >= context.thresholds.min_speedup]
    if not edits:
        return _Chained(left, None)
    # Edits that overlap may add work twice; all fixes are never worse than the best single one.
    extra = sum(case.found.outside_ns for case in edits)
    gain = (before.period_ns + extra) / max(best, 1.0)
    noise = HOST_NOISE if _host_bound(before) or _host_bound(now) else 0.02
    low = min(gain, max(case.low for case in edits))
    together = Gain(context.p.step_ms(replace(now, period_ns=best)), gain, low, gain * (1 + noise) ** 2, "replay")
    return _Chained(left, together)


def _unjudged(reason: str) -> Checks:
    how = "see the trust checks for what to record differently"
    return Checks(cannot_tell=[CannotTell(rule.code, f"predictions are withheld: {reason}", how) for rule in rules()])


def _no_less(one: Run, floor_ns: float) -> Run:
    return replace(one, period_ns=max(one.period_ns, floor_ns))


def _weigh(context: Context, rule: Rule, found: Found, before: Run) -> _Case:
    if found.edit is None:
        return _Case(rule, found, 1.0, 1.0, 1.0, before.period_ns)
    expected = run(found.edit(context.program), context.p.machine)
    bounds = [
        run(edit(context.program), context.p.machine) if edit else expected for edit in (found.cautious, found.hopeful)
    ]
    runs = [_no_less(one, floor) for one, floor in zip((expected, *bounds), found.floor_ns, strict=True)]
    if not _gpu_bound(before):
        # A GPU that no longer idles runs a little slower than the recorded kernels say.
        runs = [replace(one, period_ns=one.period_ns * (1 + CLOCK_DRIFT)) if _gpu_bound(one) else one for one in runs]
    gains = [(before.period_ns + found.outside_ns) / max(one.period_ns, 1.0) for one in runs]
    noise = HOST_NOISE if _host_bound(before) or _host_bound(runs[0]) else 0.02
    low, high = min(gains) / (1 + noise), max(gains) * (1 + noise)
    return _Case(rule, found, gains[0], low, high, runs[0].period_ns)


def _host_bound(one: Run) -> bool:
    return one.host_ns >= 0.9 * one.period_ns


def _gpu_bound(one: Run) -> bool:
    return one.gpu_ns >= 0.95 * one.period_ns


def _inherits(context: Context, case: _Case, best: _Case, left: float) -> str:
    if case.expected < context.thresholds.min_speedup and left >= LATE_GAIN:
        return f"Alone it brings little; once the findings above are fixed it brings {left:.2f}x."
    if case is best or case.found.edit is None or (left - 1) >= INHERITS_BELOW * (case.expected - 1):
        return ""
    return f"After the findings above it brings {max(left, 1.0):.2f}x: the same time is counted once, not twice."


def _finding(context: Context, case: _Case, inherits: str) -> Finding:
    found = case.found
    total = sum(site.ns for site in found.sites) or 1.0
    sites = [_site(site, total) for site in found.sites[:MOST_SITES]]
    per_step = PerStep(sum(site.count for site in found.sites), sum(site.ns for site in found.sites) / 1e6)
    step_ms = context.p.step_ms(replace(run_of(case.step_ns), period_ns=case.step_ns))
    gain = Gain(step_ms, case.expected, case.low, case.high, "replay")
    if found.edit is None:
        gain = Gain(None, None, None, None, found.gain_note or "not computed")
    return Finding(
        case.rule.code, case.rule.kind, found.title, sites, sites[0] if sites else None, per_step, gain, found.evidence,
        found.why_it_may_be_wrong, found.fix, f"gapless explain {case.rule.code}", found.assumptions, inherits,
    )  # fmt: skip


def run_of(period_ns: float) -> Run:
    """A run of which only the period is known."""
    return Run(period_ns, 0.0, 0.0, [])


def _site(site: SiteCost, total: float) -> Site:
    return Site(
        site.place.op, site.place.module, site.place.file, site.place.line, PerStep(site.count, site.ns / 1e6),
        site.ns / total, site.start_ns, site.dur_ns,
    )  # fmt: skip
