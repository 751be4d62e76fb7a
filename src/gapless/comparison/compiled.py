"""What does torch.compile do on each side: regions, breaks, recompilations, guards, graphs, and does it pay?

Everything is per step and read from the rows that compiled code writes. A region inside another continues it after a
graph break. Guards are `TorchDynamo Cache Lookup`, pre-graph bytecode and the runtime wrapper's prologue. Compile time is
what the whole recorded window spent compiling or autotuning, or what the user gives; steps to break even are compile
time over the time that the change takes off a step, never where the step is not faster.
"""

from __future__ import annotations

import math

import numpy as np

from gapless.analyses.blocking import Origin
from gapless.analyses.call_names import CallClass
from gapless.analyses.causes import Cause
from gapless.comparison.breaks import gave_up, graph_breaks, inner_regions
from gapless.comparison.side import Side, recorded
from gapless.comparison.work import Work
from gapless.model.diff import Compile, CompileSide, GraphBreak, Speedup
from gapless.tables.coding import matches
from gapless.tables.intervals import Int, as_ns
from gapless.tables.nesting import nearest

GUARDS = ("TorchDynamo Cache Lookup", "Pregraph bytecode", "AOTDispatcher Runtime Wrapper Prologue")
REGION = "Torch-Compiled Region"
GRAPH_CALL = "## Call CompiledFxGraph "


def compiled(
    before: Side, after: Side, old: list[Work], new: list[Work], speedup: Speedup, compile_seconds: float | None
) -> Compile:
    """torch.compile on both sides, and whether the after side's compiling pays."""
    mine, other = _side(before, old), _side(after, new)
    given = compile_seconds * 1e3 if compile_seconds is not None else None
    cost = given if given is not None else other.cost_ms if other.cost_ms > 0 else None
    steps, words = _break_even(before, after, speedup, cost, other)
    breaks: list[GraphBreak] = [*graph_breaks(before, "before"), *graph_breaks(after, "after")]
    return Compile(
        regions=other.regions, graph_breaks=other.graph_breaks, recompiles=other.recompiles, guard_ms=other.guard_ms,
        host_ms_before=mine.host_ms, host_ms_after=other.host_ms, cost_ms=cost, break_even_steps=steps, break_even=words,
        cost_source="given" if given is not None else "window" if cost is not None else "unknown",
        before=mine, after=other, breaks=breaks,
    )  # fmt: skip


def _break_even(
    before: Side, after: Side, speedup: Speedup, cost: float | None, other: CompileSide
) -> tuple[int | None, str]:
    if not (other.regions or other.recompiles):
        none = "not known: no compiled region ran in the after trace, so compiling did not take effect"
        return None, none if cost is not None or other.gave_up else ""
    if speedup.verdict == "undecided":
        return None, "not known: whether the step is faster is undecided"
    if speedup.verdict != "faster":
        return None, "never: the step is not faster"
    if cost is None:
        return None, "not known: the trace holds no compilation; pass --compile-seconds"
    if speedup.basis == "unprofiled":
        then, now = before.report.step.unprofiled_ms, after.report.step.unprofiled_ms
    else:
        then, now = recorded(before, after)
    if then is None or now is None or then <= now:
        return None, "never: the step is not faster"
    steps = math.ceil(cost / (then - now))
    return steps, f"after {steps} step{'s' if steps != 1 else ''}"


def _side(side: Side, pieces: list[Work]) -> CompileSide:
    one, s = side.p.unprofiled, side.s
    regions = side.outermost_regions
    inner = inner_regions(side)
    calls = side.op_rows(GRAPH_CALL)
    per_step = [sorted(_names(side, calls[side.step_of_row[calls] == step])) for step in side.used]
    graphs = s.links.call_class == int(CallClass.GRAPH_LAUNCH)
    graphs &= np.isin(s.steps.step_of_call, side.used) & (s.links.first_activity >= 0)
    copies = [p for p in pieces if p.region is not None and not p.in_graph] if any(p.in_graph for p in pieces) else []
    return CompileSide(
        regions=regions.size / side.count,
        graph_breaks=inner.size / side.count,
        gave_up=gave_up(side),
        recompiles=_recompiles(side),
        guard_ms=_guards(side),
        host_ms=one.host_ns / 1e6 if one is not None and not side.p.withheld else None,
        recorded_host_ms=side.report.step.host_work_ms,
        graphs=len({name for names in per_step for name in names}),
        cache_hits=all(names == per_step[0] for names in per_step) if calls.size and len(per_step) > 1 else None,
        versions=sorted({name.removeprefix(f"{REGION}: ") for name in _names(side, regions) if _later_version(name)}),
        graph_launches=float(graphs.sum()) / side.count,
        graph_kernels=float(s.links.activity_count[graphs].sum()) / side.count,
        input_copies=[f"{p.label} ({p.ns / 1e3:.1f} us)" for p in copies[:20]],
        no_graph_why=_no_graph(side, pieces) if regions.size and not graphs.any() else "",
        cost_ms=_compiling_ms(side),
    )


def _names(side: Side, rows: Int) -> list[str]:
    return [side.op_names[code] for code in side.op_code[side.s.links.forest.row[rows]].tolist()]


def _later_version(region: str) -> bool:
    """`Torch-Compiled Region: 2/1`: the second version of function 2."""
    version = region.rpartition("/")[2].partition("_")[0]
    return "/" in region and version.isdigit() and int(version) > 0


def _recompiles(side: Side) -> float:
    """Compilations in the steps that count: compiled frames where their rows are there, else outermost timed rows."""
    s, forest = side.s, side.s.links.forest
    frames = side.op_rows("_compile.compile_inner")
    if frames.size:
        return frames.size / side.count
    flag = np.zeros(forest.source.size, dtype=bool)
    flag[forest.of_op] = matches(s.raw.ops["name"], lambda n: n.endswith("(dynamo_timed)"))
    flag &= s.states.cause_of_row == int(Cause.COMPILE)
    inside = (forest.parent >= 0) & flag[np.maximum(forest.parent, 0)]
    return float((flag & ~inside & side.counted).sum()) / side.count


def _guards(side: Side) -> float:
    """Median over steps of the time in guard rows, the outermost of nested ones."""
    forest = side.s.links.forest
    rows = side.op_rows(*GUARDS)
    flag = np.zeros(forest.source.size, dtype=bool)
    flag[rows] = True
    rows = rows[~((forest.parent[rows] >= 0) & flag[np.maximum(forest.parent[rows], 0)])]
    total = np.bincount(
        side.step_of_row[rows], weights=forest.end[rows] - forest.start[rows], minlength=side.s.steps.count
    )
    return float(np.median(total[side.used])) / 1e6 if side.used else 0.0


def _compiling_ms(side: Side) -> float:
    """Time in the whole window that compiling and autotuning took: the outermost of the rows that say so."""
    s, forest = side.s, side.s.links.forest
    flag = np.zeros(forest.source.size, dtype=bool)
    flag[forest.of_op] = matches(
        s.raw.ops["name"], lambda n: n.endswith("(dynamo_timed)") or n == "entire_frame_compile"
    )
    inside = (forest.parent >= 0) & (nearest(flag, forest.parent)[np.maximum(forest.parent, 0)] >= 0)
    return float((forest.end - forest.start)[flag & ~inside].sum()) / 1e6


def _no_graph(side: Side, pieces: list[Work]) -> str:
    """Why no CUDA graph runs although code is compiled, as far as the trace shows."""
    s = side.s
    inside = [p for p in pieces if p.region is not None]
    if any(p.identity.family == "memcpy" and "HtoD" in p.identity.canonical for p in inside):
        return "a compiled region copies data from the host, which a CUDA graph cannot hold"
    waits = s.syncs.call[s.origin[s.syncs.call] == int(Origin.HIDDEN)]
    regions = side.outermost_regions
    forest = s.links.forest
    start = as_ns(s.raw.calls["start_ns"].to_numpy())[waits]
    spot = np.searchsorted(forest.start[regions], start, side="right") - 1
    if regions.size and bool(((spot >= 0) & (start < forest.end[regions[np.maximum(spot, 0)]])).any()):
        return "the host waits for the GPU inside a compiled region"
    return 'none was asked for (mode="reduce-overhead"), or it was skipped: TORCH_LOGS=cudagraphs says why, the trace does not'
