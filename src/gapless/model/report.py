"""What does a report say? The JSON contract `gapless.report/1` as dataclasses; renderers read nothing else.

Names and nesting are the JSON's. `to_dict` (in `render.json_`) writes the fields in this order. Additions are free,
removals are not. Milliseconds are floats for people; everything that must add up is int64 nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

SCHEMA = "gapless.report/1"

TrustStatus = Literal["ok", "note", "warn", "fail", "unknown"]
Bound = Literal["gpu-compute", "gpu-memory", "host", "sync", "input", "copy", "communication", "compile", "unknown"]
Method = Literal["replay", "formula", "bound"]


@dataclass(frozen=True, slots=True)
class TrustCheck:
    """One question about how far the file can be trusted, and its answer in a sentence."""

    check: str
    status: TrustStatus
    detail: str


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step's marker on the stepping thread, whether it counts, and why not."""

    name: str
    start_ns: int
    end_ns: int
    used: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """What a step is here, and which steps were found."""

    marker: str
    steps: list[StepRow]


@dataclass(frozen=True, slots=True)
class StepNumbers:
    """Per step, median; the busiest device, the thread that steps. None where the file cannot tell.

    wall_ms: the marker as recorded. steady_ms: replay, profiler included. unprofiled_ms: the step without the
    profiler; `unprofiled_method` is 'measured' (baseline in the trace), 'estimated' or 'withheld' (reason given).
    """

    wall_ms: float | None = None
    steady_ms: float | None = None
    unprofiled_ms: float | None = None
    unprofiled_low_ms: float | None = None
    unprofiled_high_ms: float | None = None
    unprofiled_method: str = "withheld"
    unprofiled_why: str = ""
    gpu_busy_ms: float | None = None
    host_work_ms: float | None = None
    host_wait_ms: float | None = None
    launches: float | None = None
    kernels: float | None = None
    graph_launches: float | None = None
    syncs: float | None = None
    copies: float | None = None
    copy_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What bounds the step, in one word and one sentence."""

    bound: Bound
    sentence: str


@dataclass(frozen=True, slots=True)
class Part:
    """One exclusive share of a device's window; `cause` only for idle. Parts sum to the wall exactly."""

    state: str
    cause: str | None
    ns: int
    share: float


@dataclass(frozen=True, slots=True)
class DeviceAccount:
    """Where one device's window went."""

    device: int
    wall_ns: int
    parts: list[Part]


@dataclass(frozen=True, slots=True)
class HostPart:
    """One exclusive share of a host thread's window; parts sum to the wall exactly."""

    state: str
    detail: str
    ns: int


@dataclass(frozen=True, slots=True)
class HostAccount:
    """Where one host thread's window went. `role`: main, autograd, loader or other."""

    thread: str
    role: str
    wall_ns: int
    parts: list[HostPart]


@dataclass(frozen=True, slots=True)
class Waited:
    """What a blocking call waited for; the parts are milliseconds and sum to the call's time."""

    gpu_work_ms: float
    copy_ms: float
    untraced_ms: float
    overhead_ms: float


@dataclass(frozen=True, slots=True)
class SyncRow:
    """Blocking calls of one site: how often, how long, what for, and the idle that follows."""

    name: str
    origin: Literal["explicit", "hidden", "profiler"]
    op: str | None
    module: str | None
    file: str | None
    line: int | None
    count: int
    wall_ms: float
    waited: Waited
    idle_after_ms: float
    gain: float | None = None
    waited_for: list[str] = field(default_factory=list)
    start_ns: int | None = None


@dataclass(frozen=True, slots=True)
class PerStep:
    """How often and how long per step."""

    count: float
    ms: float


@dataclass(frozen=True, slots=True)
class Site:
    """One place where a fault happens; `share` is its part of the finding's cost."""

    op: str | None
    module: str | None
    file: str | None
    line: int | None
    per_step: PerStep
    share: float
    start_ns: int | None = None
    dur_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Gain:
    """What fixing all sites brings: predicted unprofiled step time, speed-up (before/after) and its bounds."""

    step_ms: float | None
    speedup: float | None
    low: float | None
    high: float | None
    method: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of a kind, its sites, cost, predicted gain, evidence, doubts and fix."""

    code: str
    kind: str
    title: str
    sites: list[Site]
    where: Site | None
    per_step: PerStep
    gain: Gain
    evidence: list[str]
    why_it_may_be_wrong: str
    fix: str
    docs: str
    assumptions: list[str] = field(default_factory=list)
    inherits: str = ""


@dataclass(frozen=True, slots=True)
class CannotTell:
    """A check that could not look, why, and how to record what it needs."""

    code: str
    reason: str
    how: str


@dataclass(frozen=True, slots=True)
class Checks:
    """Every check in one of three states, by rule code."""

    found: list[str] = field(default_factory=list)
    clean: list[str] = field(default_factory=list)
    cannot_tell: list[CannotTell] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Issue:
    """Something odd, repaired or lost while reading."""

    code: str
    severity: str
    count: int
    detail: str
    example: str


@dataclass(frozen=True, slots=True)
class Report:
    """Everything a report says; see the module docstring. `tables` holds the top rows of kernels, ops, launches and
    copies as lists of plain dicts with units in their keys."""

    tool: dict[str, str]
    trace: dict[str, Any]
    trust: list[TrustCheck]
    window: Window
    step: StepNumbers
    verdict: Verdict
    accounting: list[DeviceAccount]
    host: list[HostAccount]
    syncs: list[SyncRow]
    findings: list[Finding]
    checks: Checks
    issues: list[Issue] = field(default_factory=list)
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    all_fixes: Gain | None = None
    schema: str = SCHEMA
