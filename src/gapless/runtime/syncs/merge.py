"""Which waits belong to the same place and cause, and how often and how long did each place wait per step?"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

from gapless.runtime.syncs.findings import FindingKind, SyncFinding
from gapless.runtime.syncs.fixes import fix_of
from gapless.runtime.syncs.record import Wait


def merge(waits: Iterable[Wait], steps: Sequence[int], allowed_by: str = "") -> list[SyncFinding]:
    """One finding a place and cause, dearest first. `steps`: the measured ones, all of them counted."""
    groups: dict[tuple[object, ...], list[Wait]] = {}
    for wait in waits:
        key = (wait.where.site, wait.where.via, fix_of(wait.chain, wait.kind).key)
        groups.setdefault(key, []).append(wait)
    findings = [_finding(group, steps, allowed_by) for group in groups.values()]
    return sorted(
        findings, key=lambda finding: (-finding.stall_ms, -finding.count_per_step, finding.file, finding.line)
    )


def _finding(group: list[Wait], steps: Sequence[int], allowed_by: str) -> SyncFinding:
    first = group[0]
    site, via = first.where.site, first.where.via
    fix = fix_of(first.chain, first.kind)
    per_step = Counter(wait.step for wait in group)
    counts = [per_step[step] for step in steps]
    stalls = [wait.stall_ns for wait in group]
    waited = [wait.waited_ns for wait in group if wait.waited_ns is not None]
    modules = list(dict.fromkeys(wait.where.module_path for wait in group if wait.where.module_path))
    ops = [name for name in first.chain if "::" in name]
    return SyncFinding(
        kind=_kind(first),
        file=site.file,
        line=site.line,
        function=site.function,
        expression=site.expression(),
        via=f"{via} `{via.expression()}`" if via is not None else "",
        idiom=next((name for name in reversed(first.chain) if "::" not in name and not name.startswith("copy:")), ""),
        op=ops[-1] if ops else "",
        modules=modules[:8],
        module_count=len(modules),
        threads=sorted({wait.thread for wait in group}),
        phases=sorted({wait.phase for wait in group if wait.phase}),
        counts=counts,
        count_per_step=len(group) / max(len(steps), 1),
        varies=len(set(counts)) > 1,
        stall_ms=sum(stalls) / 1e6,
        stall_ms_per_step=sum(stalls) / 1e6 / max(len(steps), 1),
        stall_median_ms=statistics.median(stalls) / 1e6,
        stall_max_ms=max(stalls) / 1e6,
        waited_ms=sum(waited) / 1e6 if waited else None,
        already_idle=sum(wait.already_idle is True for wait in group) / len(group),
        copy_bytes=sum(wait.copy.size_bytes for wait in group if wait.copy is not None),
        fix_key=fix.key,
        dependency=fix.dependency,
        why=fix.reason,
        fix=fix.rewrite,
        note=fix.note,
        evidence="".join(sorted({layer for wait in group for layer in wait.layers})),
        allowed_by=allowed_by,
    )


def _kind(wait: Wait) -> FindingKind:
    if wait.kind == "pageable":
        return "pageable-copy"
    if wait.kind == "stream" and wait.copy is not None:
        return "blocking-copy"
    if wait.kind == "device":
        return "device"
    return "event" if wait.kind == "event" else "stream"
