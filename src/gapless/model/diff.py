"""What does a comparison of two traces say? The JSON contract `gapless.diff/1` as dataclasses; renderers read nothing else.

Names and nesting are the JSON's. Everything that has two sides has them as a pair of fields, so that swapping the two
files mirrors the answer. Times and counts are per step unless a name says otherwise; None where a side cannot tell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from gapless.model.report import Bound, StepNumbers

SCHEMA = "gapless.diff/1"

Status = Literal["yes", "partly", "no"]
Outcome = Literal["faster", "slower", "same", "undecided"]
KernelChange = Literal["same", "faster", "slower", "removed", "added"]
FusionClass = Literal["kernel", "dispatcher", "none", "mixed"]


@dataclass(frozen=True, slots=True)
class DiffSide:
    """One of the two traces. `step` is the report's; `host_ms` and `gpu_ms` are what the host and the busiest stream
    need per step without the profiler, `step_spread` half the range of the recorded steps over their median."""

    trace: dict[str, Any]
    step: StepNumbers
    bound: Bound
    marker: str
    steps_used: int
    recorded_ms: float | None = None
    step_spread: float | None = None
    host_ms: float | None = None
    gpu_ms: float | None = None
    host_bound: bool | None = None
    compiled: bool = False


@dataclass(frozen=True, slots=True)
class Comparable:
    """May the two be compared? `reasons` are the differences that matter, worst first; `withheld` names the rows that
    are left out because of them, `corrected` those that are compared after a correction."""

    status: Status
    reasons: list[str] = field(default_factory=list)
    withheld: list[str] = field(default_factory=list)
    corrected: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Speedup:
    """Step time before over step time after. `value`: without the profiler; `recorded`: as recorded, replayed steadily.

    `noise` is the relative difference that means nothing here. `low`, `high` bound the true ratio given the noise and,
    where both sides are bound by the host, how fast the host ran what both share: `host_speed` is the time of those
    operations after over before. `basis`: which of the two ratios the verdict rests on. `why` is one sentence.
    """

    value: float | None
    recorded: float | None
    noise: float | None
    verdict: Outcome
    low: float | None = None
    high: float | None = None
    host_speed: float | None = None
    basis: Literal["unprofiled", "recorded", "none"] = "none"
    why: str = ""


@dataclass(frozen=True, slots=True)
class CountRow:
    """One count per step; `unit` is 'count' or 'bytes'."""

    what: str
    before: float | None
    after: float | None
    unit: Literal["count", "bytes"] = "count"


@dataclass(frozen=True, slots=True)
class SyncSiteRow:
    """Blocking calls of one place, per step."""

    name: str
    origin: str
    op: str | None
    module: str | None
    file: str | None
    line: int | None
    before: float
    after: float
    before_ms: float
    after_ms: float


@dataclass(frozen=True, slots=True)
class KernelRow:
    """Kernels of one identity and size. `name`, `op` and `shapes` are those of the side that has it (before's where both
    have); `name_after` and `op_after` differ where the same kernel goes by another name or was launched by another op.

    `before`, `after`: calls per step. `*_us`: median of one call; `*_ms`: per step. `change`: same, faster, slower (by
    more than the clock's drift), removed, added. `resized`: the same kernel on data of another size (another grid).
    """

    name: str
    name_after: str
    family: str
    dtype: str | None
    tensor_core: bool | None
    tile: str | None
    op: str | None
    op_after: str | None
    shapes: str | None
    shapes_after: str | None
    before: float
    after: float
    before_us: float | None
    after_us: float | None
    before_ms: float
    after_ms: float
    bytes: float | None
    change: KernelChange
    renamed: bool = False
    resized: bool = False
    full_name: str = ""
    full_name_after: str = ""


@dataclass(frozen=True, slots=True)
class FusedRow:
    """One kernel that does what several did: `replaces` are the ops whose kernels are gone, `kernels` how many they were
    per step, `count` how often it runs per step, `bytes_saved` what no longer travels per step, read plus written.

    `bytes_exact` is False where the compiler's own figure was not recorded and bytes follow from the ops' shapes.
    """

    name: str
    replaces: list[str]
    bytes_saved: float | None
    count: float
    kernels: float
    before_ms: float
    after_ms: float
    bytes_exact: bool = False
    source: str = ""


@dataclass(frozen=True, slots=True)
class Kernels:
    """The multiset of kernels. `fused`: kernels of the after side that do the work of several of the before side;
    `unfused`: the same the other way round."""

    same: list[KernelRow] = field(default_factory=list)
    removed: list[KernelRow] = field(default_factory=list)
    added: list[KernelRow] = field(default_factory=list)
    fused: list[FusedRow] = field(default_factory=list)
    unfused: list[FusedRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Copies:
    """The multiset of copies and memsets, by direction and size."""

    same: list[KernelRow] = field(default_factory=list)
    removed: list[KernelRow] = field(default_factory=list)
    added: list[KernelRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class StructureRow:
    """A stretch of GPU work of one step that is not the same on both sides, between two that are.

    `before`, `after`: the ops that launched it, in order, repeated ones as `aten::add x3`. `count`: how often the stretch
    occurs, `region_*` the compiled region that the first of it lies in, `module` its module, if recorded.
    """

    before: list[str]
    after: list[str]
    count: int
    before_ms: float
    after_ms: float
    region_before: str | None = None
    region_after: str | None = None
    module: str | None = None


@dataclass(frozen=True, slots=True)
class RegionRow:
    """A compiled region and the ops of the other side that it took over, in order."""

    region: str
    side: Literal["before", "after"]
    count: int
    ops: list[str]


@dataclass(frozen=True, slots=True)
class Structure:
    """One step of each side aligned by what its GPU work is, its order and its shapes. `matched`: pieces of GPU work that
    correspond; `note` says what was not looked at, '' if nothing."""

    matched: int = 0
    only_before: int = 0
    only_after: int = 0
    changed: list[StructureRow] = field(default_factory=list)
    regions: list[RegionRow] = field(default_factory=list)
    note: str = ""


@dataclass(frozen=True, slots=True)
class GraphBreak:
    """Where compiled code was left, how often a step, and why, as far as the trace shows."""

    side: Literal["before", "after"]
    file: str | None
    line: int | None
    function: str | None
    reason: str
    count: float


@dataclass(frozen=True, slots=True)
class CompileSide:
    """What one trace shows of torch.compile, per step. `gave_up`: calls through torch.compile that ran no compiled region
    (only stacks show it). `graphs`: distinct compiled graphs called. `cache_hits`: every step called the same graphs.
    `versions`: compiled regions that are not the first of their function, so that it was compiled again before.
    `input_copies`: work launched next to the CUDA graphs inside compiled regions, usually inputs copied into place.
    `cost_ms`: compiling inside the recorded window, all of it, not per step."""

    regions: float = 0.0
    graph_breaks: float = 0.0
    gave_up: float = 0.0
    recompiles: float = 0.0
    guard_ms: float = 0.0
    host_ms: float | None = None
    recorded_host_ms: float | None = None
    graphs: int = 0
    cache_hits: bool | None = None
    versions: list[str] = field(default_factory=list)
    graph_launches: float = 0.0
    graph_kernels: float = 0.0
    input_copies: list[str] = field(default_factory=list)
    no_graph_why: str = ""
    cost_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Compile:
    """torch.compile on both sides. The plain fields are the after side's; `cost_ms` is `--compile-seconds` where given
    (`cost_source` says which). `break_even_steps`: steps until the compile time is earned back; None is never, and
    `break_even` says it in words."""

    regions: float
    graph_breaks: float
    recompiles: float
    guard_ms: float
    host_ms_before: float | None
    host_ms_after: float | None
    cost_ms: float | None
    break_even_steps: int | None
    break_even: str = ""
    cost_source: Literal["given", "window", "unknown"] = "unknown"
    before: CompileSide = field(default_factory=CompileSide)
    after: CompileSide = field(default_factory=CompileSide)
    breaks: list[GraphBreak] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class WaitRow:
    """Time per step lost to one cause: the host blocked in a call, or the GPU idle. `moved_to`, `moved_from`: the row
    that a wait went to or came from, `moved_ms` how much of it."""

    cause: str
    before_ms: float
    after_ms: float
    who: Literal["host", "gpu"] = "host"
    moved_to: str | None = None
    moved_from: str | None = None
    moved_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Change:
    """Something that differs and says what was changed: `kind` is the kind of finding that it fixes (or brings back),
    '' where there is none. `text` names it. `ms`: what it takes off the step's host, waits or GPU work, at most;
    negative where the after side has more of it."""

    what: str
    kind: str
    text: str
    ms: float
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class Predicted:
    """A finding of the before trace that the change addressed: what it promised and what came of it. `kept`: the realised
    speed-up lies within the promised bounds, the noise allowed for."""

    speedup: float
    kind: str
    realised: float | None
    code: str = ""
    low: float | None = None
    high: float | None = None
    kept: bool | None = None
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Diff:
    """Everything a comparison says; see the module docstring. `summary` is one paragraph, words first."""

    tool: dict[str, str]
    before: DiffSide
    after: DiffSide
    summary: str
    comparable: Comparable
    speedup: Speedup
    counts: list[CountRow]
    sync_sites: list[SyncSiteRow]
    kernels: Kernels
    copies: Copies
    structure: Structure
    fusion: FusionClass
    fusion_why: str
    compile: Compile
    waits: list[WaitRow]
    changes: list[Change]
    predicted: Predicted | None = None
    schema: str = SCHEMA
