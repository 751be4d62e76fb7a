"""What may a rule look at? One studied trace, its replay, and figures derived from both once.

Rules own no arithmetic on events: what they need beyond the tables is a method here or an analysis.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gapless.analyses.blocking import Origin
from gapless.analyses.borrowed import Borrowed
from gapless.analyses.host import ANNOTATION, CALL, FRAME, OP
from gapless.analyses.kernel_names import KernelIdentity, decode
from gapless.analyses.op_args import OpArgs
from gapless.analyses.op_costs import OpCost, op_cost
from gapless.analyses.places import Places
from gapless.analyses.study import Study
from gapless.model.peaks import DevicePeaks, find_peaks
from gapless.replay.predict import Prediction
from gapless.replay.program import Program
from gapless.rules._attention import Chain, chains_of
from gapless.rules._compiled import Work, work_of
from gapless.rules._jobs import Job, TextTable, best_seen_bandwidth, jobs_of
from gapless.rules.outcome import SiteCost
from gapless.tables.coding import categories, codes, matches
from gapless.tables.intervals import Int, as_ns

Mask = NDArray[np.bool_]
DEFAULT_GAP_NS = 3_000.0
DEFAULT_OP_NS = 8_000.0


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Numbers below which a rule stays silent; each rule says why it chose its own."""

    min_speedup: float = 1.02
    """A gain below 2 % is inside the noise of every measurement we have (GPU-bound truth moves by 1 %)."""
    stall_ns: int = 300_000
    stall_share: float = 0.03


@dataclass
class Context:
    """One trace for all rules. `s` the study, `p` the prediction, `places` of forest rows; `stacks` the window of the
    same program that was recorded with stacks, where `s` has none."""

    s: Study
    p: Prediction
    places: Places
    thresholds: Thresholds = field(default_factory=Thresholds)
    stacks: Borrowed | None = None
    _costs: dict[tuple[str, str | None, str | None, str | None], OpCost | None] = field(default_factory=dict)
    _roots: dict[int, Int] = field(default_factory=dict)

    @property
    def program(self) -> Program:
        """The representative step without the profiler; only where predictions are not withheld for want of one."""
        if self.p.clean is None:
            raise ValueError("no program: the caller must check `p.clean` first")
        return self.p.clean

    @cached_property
    def op_names(self) -> list[str]:
        """Names of `ops` by code."""
        return categories(self.s.raw.ops["name"])

    @cached_property
    def op_code(self) -> Int:
        """Name code of each op."""
        return codes(self.s.raw.ops["name"])

    @cached_property
    def call_names(self) -> list[str]:
        """Names of `calls` by code."""
        return categories(self.s.raw.calls["name"])

    @cached_property
    def call_code(self) -> Int:
        """Name code of each call."""
        return codes(self.s.raw.calls["name"])

    @cached_property
    def identities(self) -> list[KernelIdentity]:
        """Decoded identity of each distinct activity name, by code."""
        return [decode(text) for text in categories(self.s.raw.activities["name"])]

    @cached_property
    def activity_code(self) -> Int:
        """Name code of each activity."""
        return codes(self.s.raw.activities["name"])

    @cached_property
    def peaks(self) -> DevicePeaks | None:
        """Peaks of the traced device by its name; None if unknown."""
        for device in self.s.raw.meta.devices:
            found = find_peaks(device.name)
            if found is not None:
                return found
        return None

    @cached_property
    def step_count(self) -> int:
        """How many steps per-step figures are averaged over."""
        return max(len(self.counted_steps), 1)

    @cached_property
    def counted_steps(self) -> list[int]:
        """Steps that are warm and complete on the host side."""
        steps = self.s.steps.used_indices()
        last = self.s.steps.count - 1
        if last not in steps and self.s.steps.why[last].startswith("closes"):
            steps.append(last)
        return steps

    @cached_property
    def counted_rows(self) -> Mask:
        """Which forest rows start inside a counted step (any thread)?"""
        start = self.s.links.forest.start
        spot = np.searchsorted(self.s.steps.start, start, side="right") - 1
        good = np.isin(spot, self.counted_steps)
        return np.asarray(good & (start < self.s.steps.until[np.maximum(spot, 0)]))

    def in_base(self, rows: Int) -> Int:
        """Those forest rows that start inside the program's base step."""
        start = self.s.links.forest.start[rows]
        return rows[(start >= self.program.base_start) & (start < self.program.base_end)]

    def op_rows(self, *names: str) -> Int:
        """Forest rows, in counted steps, of ops with one of these names (overload suffix ignored)."""
        wanted = matches(self.s.raw.ops["name"], lambda n: n in names or n.rpartition(".")[0] in names)
        rows = self.s.links.forest.of_op[wanted]
        return np.sort(rows[self.counted_rows[rows]])

    def outermost(self, rows: Int) -> Int:
        """Those of `rows` that no other of them contains."""
        forest = self.s.links.forest
        flag = np.zeros(forest.source.size, dtype=bool)
        flag[rows] = True
        parent = forest.parent[rows].copy()
        keep = np.ones(rows.size, dtype=bool)
        active = np.flatnonzero(parent >= 0)
        while active.size:
            hit = flag[parent[active]]
            keep[active[hit]] = False
            active = active[~hit]
            parent[active] = forest.parent[parent[active]]
            active = active[parent[active] >= 0]
        return rows[keep]

    def name_of(self, row: int) -> str:
        """Name of an op, annotation or call row."""
        forest = self.s.links.forest
        if forest.source[row] == CALL:
            return self.call_names[int(self.call_code[forest.row[row]])]
        if forest.source[row] in (OP, ANNOTATION):
            return self.op_names[int(self.op_code[forest.row[row]])]
        return str(self.s.raw.frames["name"][int(forest.row[row])])

    def chain(self, row: int, most: int = 12) -> list[str]:
        """Names from the outermost op down to `row` (annotations and frames left out)."""
        forest = self.s.links.forest
        out: list[str] = []
        while row >= 0 and len(out) < most:
            if forest.source[row] in (OP, CALL):
                out.append(self.name_of(row))
            row = int(forest.parent[row])
        return out[::-1]

    def sites(self, rows: Int, ns: Int | None = None, steps: int | None = None) -> list[SiteCost]:
        """Sites of these forest rows: grouped by place, with count and time per step, most time first.

        `steps` is how many steps the rows come from (default: all counted ones; 1 for rows of the base step).
        """
        over = steps or self.step_count
        forest = self.s.links.forest
        cost = forest.end[rows] - forest.start[rows] if ns is None else ns
        if rows.size == 0:
            return []
        keys, group = np.unique(self.places.key[rows], return_inverse=True)
        group = group.reshape(-1)
        spent = np.bincount(group, weights=cost, minlength=keys.size)
        count = np.bincount(group, minlength=keys.size)
        longest = np.lexsort((forest.start[rows] - forest.end[rows], group))
        example = rows[longest[np.searchsorted(group[longest], np.arange(keys.size))]]
        order = np.argsort(-spent, kind="stable")
        return [
            SiteCost(
                self.places.known[int(keys[i])], float(count[i]) / over, float(spent[i]) / over,
                int(forest.start[example[i]]), int(forest.end[example[i]] - forest.start[example[i]]),
            )
            for i in order.tolist()
        ]  # fmt: skip

    @cached_property
    def user_syncs(self) -> Int:
        """Rows of `Syncs` in counted steps that the program made on its stepping threads (not the recorder's)."""
        calls = self.s.syncs.call
        counted = np.isin(self.s.steps.step_of_call[calls], self.counted_steps)
        thread = as_ns(self.s.raw.calls["thread"].to_numpy())[calls]
        stepping = np.array([role in ("main", "autograd") for role in self.s.states.roles] or [False])
        return np.flatnonzero(counted & stepping[thread] & (self.s.origin[calls] != int(Origin.PROFILER)))

    @cached_property
    def typical_gap_ns(self) -> float:
        """Host time between two ops, without the profiler: lower quartile of the program's Python pieces (the upper ones
        hold faults); 3 us if there are few."""
        program, forest = self.program, self.s.links.forest
        row = program.piece_row
        source = np.where(row >= 0, forest.source[np.maximum(row, 0)], FRAME)
        gaps = program.piece_ns[np.isin(source, (ANNOTATION, FRAME)) & (program.piece_ns > 0)]
        return float(np.percentile(gaps, 25)) if gaps.size >= 5 else DEFAULT_GAP_NS

    @cached_property
    def typical_op_ns(self) -> float:
        """Host time of a small operator that launches one kernel, without the profiler: lower quartile of the program's
        outermost ops with exactly one item; 8 us if there are fewer than three."""
        program, forest = self.program, self.s.links.forest
        rows = self.in_base(self.outermost(np.flatnonzero((forest.source == OP) & self.counted_rows)))
        start, end = forest.start[rows], forest.end[rows]
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
        items = np.searchsorted(program.item_start, end) - np.searchsorted(program.item_start, start)
        one = np.flatnonzero(items == 1)
        if one.size < 3:
            return DEFAULT_OP_NS
        piece = np.cumsum(np.concatenate([[0.0], program.piece_ns]))
        host = (
            piece[np.searchsorted(program.piece_start, end[one])]
            - piece[np.searchsorted(program.piece_start, start[one])]
        )
        host += program.item_ns[np.minimum(np.searchsorted(program.item_start, start[one]), program.item_ns.size - 1)]
        return float(np.percentile(host, 25))

    @cached_property
    def bandwidth(self) -> float:
        """Bytes per nanosecond that memory-bound kernels reach: the best this trace shows for kernels of at least 10 us
        with known traffic, else 75 % of the device's peak, else 2000 GB/s."""
        best = best_seen_bandwidth(self)
        ceiling = self.peaks.bandwidth_gbs if self.peaks else 8_000.0
        if best > 0:
            return min(best, ceiling)
        return 0.75 * self.peaks.bandwidth_gbs if self.peaks else 2_000.0

    def op_cost(self, op: int) -> OpCost | None:
        """FLOPs and bytes of one row of `ops`, from its shapes; None without shapes or for unknown ops."""
        texts = self.texts.of(op)
        key = self.op_names[int(self.op_code[op])], texts.dims, texts.types, texts.concrete
        if key not in self._costs:
            self._costs[key] = op_cost(*key)
        return self._costs[key]

    @cached_property
    def has_shapes(self) -> bool:
        """Were shapes recorded?"""
        return self.s.raw.ops.height > 0 and self.s.raw.ops["input_dims"].null_count() < self.s.raw.ops.height

    @cached_property
    def activity_ops(self) -> Int:
        """Op row of each activity of the program (-1: none)."""
        rows = self.program.act_row
        launch = np.where(rows >= 0, self.s.links.launch_of[np.maximum(rows, 0)], -1)
        return np.where(launch >= 0, self.s.links.op_of_call[np.maximum(launch, 0)], -1)

    def families(self, program: Program) -> list[str]:
        """Kernel family of each activity of a program ('added' for those that an edit brought in)."""
        return [
            "added" if row < 0 else self.identities[int(self.activity_code[row])].family
            for row in program.act_row.tolist()
        ]

    @cached_property
    def texts(self) -> TextTable:
        """The recorded arguments of every op."""
        return TextTable(self.s.raw.ops)

    @cached_property
    def jobs(self) -> list[Job]:
        """Every GPU activity of the program with the op that launched it, in launch order."""
        return jobs_of(self)

    @cached_property
    def attentions(self) -> list[Chain]:
        """Every attention of the program that is written out."""
        return chains_of(self)

    @cached_property
    def compiled(self) -> Work:
        """The program's launching ops with their host time, and which of them run in compiled graphs."""
        return work_of(self)

    @cached_property
    def best_bandwidth(self) -> float:
        """Bytes per nanosecond that a well-written memory-bound kernel reaches here: the best this trace shows, but at
        least 75 % of the device's peak where that is known (a trace may hold no good kernel)."""
        return max(self.bandwidth, 0.75 * self.peaks.bandwidth_gbs if self.peaks else 0.0)

    @cached_property
    def gpu_bound(self) -> bool:
        """Does the GPU, not the host, set the program's pace when nothing blocks?"""
        one = self.p.unprofiled
        return one is not None and one.gpu_ns > one.host_ns

    @cached_property
    def root_ops(self) -> Int:
        """Forest rows of ops that no other op contains, by start."""
        forest = self.s.links.forest
        is_op = forest.source == OP
        above = self.s.links.op_above[np.maximum(forest.parent, 0)]
        rows = np.flatnonzero(is_op & ((forest.parent < 0) | (above < 0)))
        return rows[np.argsort(forest.start[rows], kind="stable")]

    def root_ops_on(self, thread: int) -> Int:
        """Those of `root_ops` that ran on one thread, by start."""
        if thread not in self._roots:
            self._roots[thread] = self.root_ops[self.s.links.forest.thread[self.root_ops] == thread]
        return self._roots[thread]

    def root_of(self, row: int) -> int:
        """The outermost op above (or at) a forest row; -1 if there is none."""
        forest, found = self.s.links.forest, -1
        while row >= 0:
            if forest.source[row] == OP:
                found = row
            row = int(forest.parent[row])
        return found

    def base_sites(self, rows: Int, ns: Int) -> list[SiteCost]:
        """Sites of forest rows of the base step alone: counts and times as they are in that step."""
        return [
            replace(site, count=site.count * self.step_count, ns=site.ns * self.step_count)
            for site in self.sites(rows, ns)
        ]

    def job_sites(self, jobs: list[Job]) -> list[SiteCost]:
        """Sites of GPU activities: the ops that launched them, with their GPU time per step."""
        known = [job for job in jobs if job.op_row >= 0]
        return self.base_sites(as_ns([job.op_row for job in known]), as_ns([round(job.ns) for job in known]))

    def args_of(self, row: int) -> OpArgs | None:
        """The arguments of the op at a forest row; None without shapes."""
        forest = self.s.links.forest
        if row < 0 or forest.source[row] != OP:
            return None
        return self.texts.of(int(forest.row[row])).args
