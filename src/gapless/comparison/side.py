"""What is known about one of two traces before they are compared: its study, prediction, places and report."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gapless.analyses.blocking import Origin
from gapless.analyses.host import OP
from gapless.analyses.kernel_names import KernelIdentity, decode
from gapless.analyses.places import Places
from gapless.analyses.study import Study
from gapless.analyses.sync_sites import SyncSite, sync_sites
from gapless.model.diff import DiffSide
from gapless.model.report import Report
from gapless.replay.predict import Prediction
from gapless.tables.coding import categories, codes, matches
from gapless.tables.intervals import Int, as_ns

Mask = NDArray[np.bool_]
HOST_BOUND_SHARE = 0.9
"""A step is bound by the host where its host work alone takes this share of it."""


@dataclass
class Side:
    """One trace for all questions. Per-step figures are means over `used`, the steps that count."""

    s: Study
    p: Prediction
    places: Places
    report: Report

    @cached_property
    def used(self) -> list[int]:
        """Steps that count."""
        return self.s.steps.used_indices()

    @cached_property
    def count(self) -> int:
        """How many steps per-step figures are averaged over."""
        return max(len(self.used), 1)

    @cached_property
    def base(self) -> int:
        """The step that stands for the others: the replay's, else the last one that counts."""
        if self.p.program is not None and self.p.program.base_step in self.used:
            return self.p.program.base_step
        return self.used[-1] if self.used else 0

    @cached_property
    def has_gpu(self) -> bool:
        """Does the file hold GPU work?"""
        return self.s.raw.activities.height > 0

    @cached_property
    def has_calls(self) -> bool:
        """Does the file hold launches or other calls?"""
        return self.s.raw.calls.height > 0

    @cached_property
    def has_host(self) -> bool:
        """Does the file hold CPU ops?"""
        return self.s.raw.ops.height > 0

    @cached_property
    def has_shapes(self) -> bool:
        """Were shapes recorded?"""
        return self.has_host and self.s.raw.ops["input_dims"].null_count() < self.s.raw.ops.height

    @cached_property
    def has_stacks(self) -> bool:
        """Were Python frames recorded?"""
        return self.s.raw.frames.height > 0

    @cached_property
    def identities(self) -> list[KernelIdentity]:
        """Decoded identity of each distinct activity name, by code."""
        return [decode(text) for text in categories(self.s.raw.activities["name"])]

    @cached_property
    def activity_code(self) -> Int:
        """Name code of each activity."""
        return codes(self.s.raw.activities["name"])

    @cached_property
    def op_names(self) -> list[str]:
        """Names of `ops` by code."""
        return categories(self.s.raw.ops["name"])

    @cached_property
    def op_code(self) -> Int:
        """Name code of each op."""
        return codes(self.s.raw.ops["name"])

    @cached_property
    def step_of_row(self) -> Int:
        """The step in which each forest row starts (-1: none, or after the last marker)."""
        start, steps = self.s.links.forest.start, self.s.steps
        spot = np.searchsorted(steps.start, start, side="right") - 1
        return np.where((spot >= 0) & (start < steps.until[np.maximum(spot, 0)]), spot, -1)

    @cached_property
    def counted(self) -> Mask:
        """Which forest rows start inside a step that counts?"""
        return np.asarray(np.isin(self.step_of_row, self.used))

    def op_rows(self, *prefixes: str) -> Int:
        """Forest rows, in steps that count, of ops and annotations whose names begin so, by start."""
        rows = self.s.links.forest.of_op[matches(self.s.raw.ops["name"], lambda n: n.startswith(prefixes))]
        rows = rows[self.counted[rows]]
        return rows[np.argsort(self.s.links.forest.start[rows], kind="stable")]

    def name_of_op(self, op: int) -> str | None:
        """Name of a row of `ops`; None for -1."""
        return self.op_names[int(self.op_code[op])] if op >= 0 else None

    @cached_property
    def step_ns(self) -> Int:
        """Recorded length of each used step: on the device it is cut where the GPU begins its work, on the host where
        the marker does; whichever of the two bounds the step."""
        host = (self.s.steps.until - self.s.steps.start)[self.used]
        device = self.s.busiest
        if device is None or self.host_bound is not False:
            return as_ns(host)
        pieces = self.s.devices[device].pieces
        return as_ns(pieces[1] - pieces[0]) if pieces[0].size else as_ns(host)

    @cached_property
    def host_bound(self) -> bool | None:
        """Does the host alone need (nearly) the whole step? None where the replay cannot tell."""
        one = self.p.unprofiled
        if one is None or self.p.withheld:
            return None
        return one.host_ns >= HOST_BOUND_SHARE * one.period_ns

    @cached_property
    def period_ms(self) -> float | None:
        """Step time as recorded without any model: the longer of the host's and the GPU's median period."""
        host = (self.s.steps.until - self.s.steps.start)[self.used]
        device = self.s.busiest
        pieces = self.s.devices[device].pieces if device is not None else None
        lengths = [host] if pieces is None or pieces[0].size == 0 else [host, pieces[1] - pieces[0]]
        medians = [float(np.median(length)) / 1e6 for length in lengths if length.size]
        return max(medians) if medians else None

    @cached_property
    def outermost_regions(self) -> Int:
        """Forest rows of compiled regions in the steps that count, nested ones included."""
        return self.op_rows("Torch-Compiled Region")

    @cached_property
    def waits(self) -> list[SyncSite]:
        """Places where the program itself waits for the GPU, in the steps that count."""
        return [site for site in sync_sites(self.s, self.places) if site.origin is not Origin.PROFILER]

    @cached_property
    def is_op(self) -> Mask:
        """Which forest rows are operators?"""
        return np.asarray(self.s.links.forest.source == OP)


def describe(side: Side, recorded_ms: float | None) -> DiffSide:
    """One side as the answer shows it."""
    one, step = side.p.unprofiled, side.report.step
    known = one is not None and not side.p.withheld
    return DiffSide(
        trace=side.report.trace,
        step=step,
        bound=side.report.verdict.bound,
        marker=side.s.steps.marker,
        steps_used=len(side.used),
        recorded_ms=recorded_ms,
        step_spread=spread(side),
        host_ms=one.host_ns / 1e6 if one is not None and known else step.host_work_ms,
        gpu_ms=one.gpu_ns / 1e6 if one is not None and known else step.gpu_busy_ms,
        host_bound=side.host_bound,
        compiled=side.outermost_regions.size > 0,
    )


def recorded(before: Side, after: Side) -> tuple[float | None, float | None]:
    """Step times as recorded, both by the same measure: the steady ones of the replay where it may be trusted on both
    sides, else the periods."""
    steady = before.report.step.steady_ms, after.report.step.steady_ms
    if None not in steady and not before.p.withheld and not after.p.withheld:
        return steady
    return before.period_ms, after.period_ms


def spread(side: Side) -> float | None:
    """Half the range of the recorded steps over their median; None with fewer than two."""
    steps = side.step_ns
    if steps.size < 2:
        return None
    return float(steps.max() - steps.min()) / 2 / max(float(np.median(steps)), 1.0)
