"""What does the watch report: one finding a place, with its cost, reason and fix, as data and as one screen of text?"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from gapless.model.sync_fix import Dependency
from gapless.runtime.syncs.races import Race

SCHEMA = "gapless.syncs/1"
"""Schema of `SyncReport.to_dict`; additions are free, removals are not."""

FindingKind = Literal["device", "stream", "event", "blocking-copy", "pageable-copy"]


@dataclass(frozen=True, slots=True)
class SyncFinding:
    """One place that waits. Counts and times are of the measured steps alone.

    counts: waits in each measured step. stall_ms: total host time of these waits with the copies they belong to.
    waited_ms: the part spent on GPU work queued earlier (None: not measured). already_idle: share of waits for which
    the GPU had already finished, so that they cost nothing today. evidence: layers that saw it.
    """

    kind: FindingKind
    file: str
    line: int
    function: str
    expression: str
    via: str
    idiom: str
    op: str
    modules: list[str]
    module_count: int
    threads: list[str]
    phases: list[str]
    counts: list[int]
    count_per_step: float
    varies: bool
    stall_ms: float
    stall_ms_per_step: float
    stall_median_ms: float
    stall_max_ms: float
    waited_ms: float | None
    already_idle: float
    copy_bytes: int
    fix_key: str
    dependency: Dependency
    why: str
    fix: str
    note: str
    evidence: str
    allowed_by: str = ""

    def head(self) -> str:
        """One line: where, what, how often, how long."""
        idle = f", GPU already idle {self.already_idle:.0%}" if self.already_idle else ""
        times = f"{self.count_per_step:g}/step" + (f" (varies: {_counts(self.counts)})" if self.varies else "")
        if self.evidence == "D":
            return f"{_place(self.file, self.line)} `{self.expression}`  {times}, time not measured"
        return (
            f"{_place(self.file, self.line)} `{self.expression}`  {times}, {self.stall_ms_per_step:.3g} ms/step "
            f"(median {self.stall_median_ms:.3g}, max {self.stall_max_ms:.3g} ms a wait){idle}"
        )

    def body(self) -> list[str]:
        """The lines under the head: what ran, why it waits, what to write instead."""
        inside = " > ".join(name for name in (self.idiom, self.op) if name)
        where = [f"{self.kind}: {inside}" if inside else self.kind]
        if self.via:
            where.append(f"in {self.via}")
        if self.modules:
            more = f" and {self.module_count - 1} more" if self.module_count > 1 else ""
            where.append(f"module {self.modules[0]}{more}")
        if self.threads and self.threads != ["MainThread"]:
            where.append(f"thread {', '.join(self.threads)}")
        need = "the host needs this value" if self.dependency == "true" else "the host does not need this"
        lines = ["; ".join(where), f"why ({need}): {self.why}"]
        lines += [f"{'fix: ' if index == 0 else '     '}{line}" for index, line in enumerate(self.fix.splitlines())]
        if self.note:
            lines.append(f"note: {self.note}")
        return lines


@dataclass(frozen=True, slots=True)
class Overhead:
    """What watching cost. per_call_ns: extra host time for one torch call, measured now on a tiny CPU op."""

    calls: int
    per_call_ns: float
    waits_ms: float

    @property
    def total_ms(self) -> float:
        """Lower bound: calls times cost of one on a tiny op, and what handling the waits took."""
        return self.calls * self.per_call_ns / 1e6 + self.waits_ms


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What one watch saw. hidden: waits nobody asked for, dearest first. explicit: calls of synchronize, only listed.

    wall_ms: host time of the measured steps, the watch's own cost included. outside: waits before, after or in warm-up.
    """

    layers: str
    steps: int
    warmup: int
    step_source: str
    wall_ms: float
    hidden: list[SyncFinding]
    explicit: list[SyncFinding]
    allowed: list[SyncFinding]
    races: list[Race]
    outside: int
    over_budget: dict[int, int]
    budget: int | None
    overhead: Overhead
    notes: list[str] = field(default_factory=list)
    schema: str = SCHEMA

    @property
    def hidden_ms(self) -> float:
        """Host time spent in hidden waits of the measured steps."""
        return sum(finding.stall_ms for finding in self.hidden)

    @property
    def hidden_per_step(self) -> float:
        """Hidden waits of a step, on average over the measured ones."""
        return sum(sum(finding.counts) for finding in self.hidden) / max(self.steps, 1)

    def to_dict(self) -> dict[str, object]:
        """The report as plain data for JSON."""
        data = asdict(self)
        for race, source in zip(data["races"], self.races, strict=True):
            race["copy_site"], race["access_site"] = str(source.copy_site), str(source.access_site)
            race["text"] = source.text()
        data["overhead"]["total_ms"] = self.overhead.total_ms
        data["hidden_ms"], data["hidden_per_step"] = self.hidden_ms, self.hidden_per_step
        return data

    def text(self, top: int = 10) -> str:
        """One screen: the verdict, the dearest findings, what was asked for, races, what the watch cost."""
        lines = [self._verdict()]
        for number, finding in enumerate(self.hidden[:top], 1):
            lines += ["", f"{number:2}. {finding.head()}", *(f"    {line}" for line in finding.body())]
        if len(self.hidden) > top:
            rest = self.hidden[top:]
            lines += ["", f"and {len(rest)} more places, {sum(f.stall_ms for f in rest):.3g} ms"]
        for race in self.races:
            lines += ["", f"RACE x{race.count}  {race.text()}"]
        for title, group in (("asked for", self.explicit), ("allowed", self.allowed)):
            if group:
                lines += ["", f"{title}:", *(f"    {finding.head()}" for finding in group[:top])]
        lines.append("")
        lines += [f"note: {note}" for note in self.notes]
        lines.append(
            f"watching cost at least {self.overhead.total_ms:.3g} ms ({self.overhead.calls} calls at "
            f"{self.overhead.per_call_ns / 1e3:.2g} us); layers {self.layers or 'none'}"
        )
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

    def _verdict(self) -> str:
        what = f"{self.steps} step{'s' if self.steps != 1 else ''} ({self.step_source}"
        what += f", {self.warmup} before them left out)" if self.warmup else ")"
        if not self.hidden:
            return f"no hidden wait in {what}"
        share = f" ({self.hidden_ms / self.wall_ms:.0%})" if self.wall_ms else ""
        return (
            f"{self.hidden_per_step:.3g} hidden waits a step cost {self.hidden_ms:.3g} ms of "
            f"{self.wall_ms:.3g} ms host time{share} in {what}"
        )


def _place(file: str, line: int) -> str:
    if not file:
        return "backward pass (autograd's own thread)"
    try:
        return f"{Path(file).relative_to(Path.cwd())}:{line}"
    except ValueError:
        return f"{file}:{line}"


def _counts(counts: list[int]) -> str:
    shown = ",".join(str(count) for count in counts[-6:])
    return shown if len(counts) <= 6 else f"..{shown}"
