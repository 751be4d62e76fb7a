"""What do the honesty checks look at? Everything gathered in one measurement, with None where nothing was observed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gapless.runtime.timing.graph_time import GraphEvidence
from gapless.runtime.timing.nvml import GpuState
from gapless.runtime.timing.quantities import Stray
from gapless.runtime.timing.result import Quantity, Verdict

__all__ = ["Facts"]


@dataclass(frozen=True)
class Facts:
    """Everything the checks look at; None means not observed."""

    verdict: Verdict
    headline: Quantity
    quantities: Mapping[str, Quantity]
    on_gpu: bool
    distortions: tuple[list[str], list[str]]
    patched: list[str]
    stray: Stray | None = None
    syncs: tuple[str, ...] | None = None
    stalls: str = ""
    grown: Mapping[str, int] = field(default_factory=dict)
    allocations_seen: bool = False
    before: GpuState | None = None
    after: GpuState | None = None
    constant: list[str] | None = None
    mutated: list[int] | None = None
    accumulated: bool = False
    first_sum: list[float] | None = None
    last_sum: list[float] | None = None
    graph: GraphEvidence | None = None
    eager_kernels: float | None = None
    footprint_bytes: int = 0
    l2_bytes: int | None = None
    flops: float | None = None
    bytes: float | None = None
    peak_flops: float | None = None
    peak_bytes: float | None = None
