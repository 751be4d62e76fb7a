"""# unfused-optimizer: the optimizer launches its update in pieces

## What it does
Finds `Optimizer.step` regions that update parameters one by one (`foreach=False`) or list by list (`foreach`, the
default) where PyTorch has a fused kernel.

## Why it costs
One by one, each parameter costs 8 to 12 launches, and the GPU waits for all of them. By lists, the launches are few,
but each of a dozen passes reads and writes all parameters, gradients and moments again, and the host still builds every
list. The fused kernel reads and writes each tensor once, in one launch for up to about 30 to 100 of them.

## How the gain is computed
The region keeps the Python before its first op (collecting parameters and their state). The rest becomes 40 us and 1.5
us a parameter on the host, but no less than 40 us and 3 us a parameter in all (measured on an H200 host), and kernels
that move the tensors once over this trace's bandwidth. By lists: 100 us and 7 us a parameter, and kernels as now.
Cautious: 1.5 times that host time and GPU time; hopeful: 0.75.

## When it may be wrong
Only Adam, AdamW and SGD have a fused kernel on every GPU; for others the by-list form is assumed. Hooks round the step,
sparse gradients and parameters on several devices keep the slow path.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from gapless.analyses.host import ANNOTATION
from gapless.replay.whatif import host_ns
from gapless.rules._jobs import Job
from gapless.rules._swap import Swap, swapped
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Edit, Found, Outcome
from gapless.tables.intervals import as_ns

CODE = KIND = "unfused-optimizer"

MARK = "Optimizer.step#"
FUSED_KINDS = frozenset(("Adam", "AdamW", "SGD"))
FIXED_NS, PER_PARAMETER_NS, WHOLE_PER_PARAMETER_NS = 40_000.0, 1_500.0, 3_000.0
LISTS_FIXED_NS, LISTS_PER_PARAMETER_NS = 100_000.0, 7_000.0
"""Host time of a step by lists (H200 host, 120 parameters: RMSprop 0.86 ms, Adagrad 1.34 ms)."""
LEAST_LAUNCHES = 8
"""Fewer launches than this a step are not worth a finding."""
TENSORS_PER_LAUNCH = 48
"""Parameters one fused kernel takes at most (36 for Adam, 48 for SGD with momentum)."""

FIX = """\
# {name} has a fused kernel: one argument.
optimizer = torch.optim.{name}(model.parameters(), lr=..., fused=True)

# Trainer of transformers: TrainingArguments(optim="adamw_torch_fused")
"""
FIX_OTHER = """\
# {name} has no fused kernel. Update lists of parameters instead of single ones:
optimizer = torch.optim.{name}(model.parameters(), lr=..., foreach=True)

# or let the compiler fuse the whole step:
step = torch.compile(optimizer.step)
"""


@dataclass(frozen=True, slots=True)
class _Region:
    """One optimizer step: forest row, name of the optimizer, kernels, number of parameters, end of the Python head."""

    row: int
    name: str
    jobs: list[Job]
    parameters: int
    head_end: int
    by_list: bool


def check(c: Context) -> Outcome:
    """Does an optimizer update parameters in pieces?"""
    regions = [region for region in _regions(c) if region.name in FUSED_KINDS or not region.by_list]
    if not regions:
        return Clean()
    launches = sum(len(region.jobs) for region in regions)
    parameters = sum(region.parameters for region in regions)
    name = regions[0].name
    gpu = sum(job.ns for region in regions for job in region.jobs)
    forest = c.s.links.forest
    rows = as_ns([region.row for region in regions])
    host = sum(host_ns(c.program, forest.start[rows[i : i + 1]], forest.end[rows[i : i + 1]]) for i in range(rows.size))
    fused = name in FUSED_KINDS
    needed = sum(_host_ns(c, region) for region in regions)
    how = "one list at a time" if regions[0].by_list else "one parameter at a time"
    return Found(
        f"{name} updates {how}: {launches} launches a step",
        c.base_sites(rows, forest.end[rows] - forest.start[rows]),
        _edit(c, regions, 1.0),
        [
            f"{launches} kernels for about {parameters} parameters, {gpu / 1e6:.3f} ms on the GPU, "
            f"{host / 1e6:.3f} ms on the host (without the profiler)",
            f"{'fused' if fused else 'by lists'}, the host would need about {needed / 1e6:.3f} ms",
        ],
        "Hooks, sparse gradients and parameters on several devices keep the slow path; a step that waits for "
        "other work of the host gains less.",
        (FIX if fused else FIX_OTHER).replace("{name}", name),
        cautious=_edit(c, regions, 1.5),
        hopeful=_edit(c, regions, 0.75),
        assumptions=[
            f"the fused step costs the host {FIXED_NS / 1e3:.0f} us and {WHOLE_PER_PARAMETER_NS / 1e3:.0f} us a "
            f"parameter, or its present head and {PER_PARAMETER_NS / 1e3:.1f} us a parameter, whichever is more"
            if fused
            else f"a step by lists costs the host {LISTS_PER_PARAMETER_NS / 1e3:.0f} us a parameter",
            "each tensor crosses the memory bus once" if fused else "the kernels take as long as now",
        ],
    )


def optimizer_rows(c: Context) -> list[int]:
    """Forest rows of the optimizer steps in the base step."""
    forest = c.s.links.forest
    marked = np.flatnonzero(np.array([name.startswith(MARK) for name in c.op_names] or [False])[c.op_code])
    rows = c.in_base(forest.of_op[marked])
    return [int(row) for row in rows.tolist() if forest.source[row] == ANNOTATION]


def _regions(c: Context) -> list[_Region]:
    forest = c.s.links.forest
    found = []
    for row in optimizer_rows(c):
        low, high = int(forest.start[row]), int(forest.end[row])
        jobs = [job for job in c.jobs if low <= job.start < high and job.op >= 0]
        names = Counter(job.name for job in jobs)
        if len(jobs) < LEAST_LAUNCHES or any(name.startswith("_fused") for name in names):
            continue
        if any(job.family not in ("pointwise", "optimizer", "reduction", "memset", "copy", "memcpy") for job in jobs):
            continue
        by_list = any(name.startswith("_foreach") for name in names)
        name = c.name_of(row).removeprefix(MARK).partition(".")[0]
        found.append(_Region(row, name, jobs, _parameters(jobs, names, by_list), _head_end(c, low, high), by_list))
    return found


def _head_end(c: Context, low: int, high: int) -> int:
    """Start of the region's first op."""
    starts = c.s.links.forest.start[c.root_ops]
    at = int(np.searchsorted(starts, low))
    return min(int(starts[at]), high) if at < starts.size else high


def _parameters(jobs: list[Job], names: Counter[str], by_list: bool) -> int:
    """How many parameters are updated? One by one: as often as its rarest regular op runs. By lists: the length of the
    recorded list, else the thread blocks of the first pass (one a tensor, if the tensors are small)."""
    if not by_list:
        regular = [count for count in names.values() if count >= max(names.values()) / 4]
        return max(min(regular), 1)
    first = next(job for job in jobs if job.name.startswith("_foreach"))
    lists = first.args.lists() if first.args else []
    if lists and lists[0].shapes:
        return sum(
            len(job.args.lists()[0].shapes) for job in _of_op_once(jobs, first.name) if job.args and job.args.lists()
        )
    same = [job for job in jobs if job.op == first.op]
    return max(min(sum(job.blocks for job in same), len(same) * 110), 1)


def _of_op_once(jobs: list[Job], name: str) -> list[Job]:
    """One job an op of this name; a name that runs twice a pass counts the first half."""
    firsts = list({job.op: job for job in reversed(jobs) if job.name == name}.values())[::-1]
    lengths = [job.args.lists()[0].shapes if job.args and job.args.lists() else () for job in firsts]
    return [job for i, job in enumerate(firsts) if lengths[i] not in lengths[:i]]


def _host_ns(c: Context, region: _Region) -> float:
    forest = c.s.links.forest
    if region.name not in FUSED_KINDS:
        return LISTS_FIXED_NS + LISTS_PER_PARAMETER_NS * region.parameters
    head = host_ns(c.program, forest.start[[region.row]], as_ns([region.head_end]))
    rest = FIXED_NS + PER_PARAMETER_NS * region.parameters
    return max(head + rest, FIXED_NS + WHOLE_PER_PARAMETER_NS * region.parameters)


def _gpu_ns(c: Context, region: _Region) -> float:
    """GPU time of the fused update: present time times the passes over memory it needs, of those it makes now."""
    now = sum(job.ns for job in region.jobs)
    if region.name not in FUSED_KINDS:
        return now
    needed = 5 if region.name == "SGD" else 7
    kernels = -(-region.parameters // TENSORS_PER_LAUNCH)
    passes = sum(_passes(name) for name in {job.name for job in region.jobs})
    return max(
        now * min(needed / max(passes, 1), 1.0) if region.by_list else _bytes_ns(c, region, needed), 2_500.0 * kernels
    )


def _passes(name: str) -> int:
    """Tensors that one op of an optimizer reads and writes."""
    plain = name.removeprefix("_foreach_").removesuffix("_")
    return {"addcmul": 4, "addcdiv": 4, "lerp": 3, "add": 3, "sub": 3, "maximum": 3, "copy": 2, "zero": 1}.get(plain, 2)


def _bytes_ns(c: Context, region: _Region, needed: int) -> float:
    """Time to move every parameter `needed` times; a tenth of the present GPU time where sizes are unknown."""
    written = [job.cost.bytes_written for job in region.jobs if job.cost]
    each_op = Counter(job.name for job in region.jobs)
    if not written:
        return 0.1 * sum(job.ns for job in region.jobs)
    total = sum(written) / max(sum(each_op.values()) / max(region.parameters, 1), 1.0)
    return needed * total / c.best_bandwidth


def _edit(c: Context, regions: list[_Region], factor: float) -> Edit:
    forest = c.s.links.forest
    swaps = []
    for region in regions:
        low, high = int(forest.start[region.row]), int(forest.end[region.row])
        now = host_ns(c.program, as_ns([low]), as_ns([high]))
        host = min(factor * _host_ns(c, region), now)
        gpu = min(factor * _gpu_ns(c, region), sum(job.ns for job in region.jobs))
        swaps.append(Swap(as_ns([low]), as_ns([high]), low, host, gpu, region.jobs[0].stream))
    return swapped(swaps)
