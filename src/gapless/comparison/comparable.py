"""May two traces be compared, and which rows may not?

Differences are told worst first. What one side did not record is withheld, not shown as zero; what the recorder's own
switches distort is compared only after its cost is taken out. `no` means that nothing at all is common to both.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from gapless.analyses.call_names import CallClass
from gapless.analyses.op_costs import base_name
from gapless.analyses.steps import WHOLE_WINDOW
from gapless.comparison.side import Side
from gapless.model.diff import Comparable
from gapless.tables.coding import categories, codes

NOT_COMPARABLE = "one side does not hold a step time"
GPU_ROWS = "GPU work"
HOST_ROWS = "host work"
FRAME_ROWS = "Python frames"
OP_ROWS = "host ops"
SHAPE_ROWS = "shapes"
RECORDED_ROWS = "step time as recorded"
_SWITCHES = {
    "with_stack": "stacks", "record_shapes": "shapes", "profile_memory": "memory events", "with_modules": "modules",
    "with_flops": "FLOPs",
}  # fmt: skip
MOST_OPS_LOOKED_AT = 4_000
OTHER_SHAPES = 0.1
"""Where fewer of the matrix products of both sides than this have the same inputs, they worked on other data."""


@dataclass
class Findings:
    """What the other questions need to know: `stops` is why no verdict on time may be given, '' if it may;
    `switches` are the flags that only one side was recorded with."""

    status: str = "yes"
    reasons: list[str] = field(default_factory=list)
    withheld: list[str] = field(default_factory=list)
    corrected: list[str] = field(default_factory=list)
    stops: str = ""
    switches: list[str] = field(default_factory=list)

    @property
    def same_switches(self) -> bool:
        """Were both recorded with the same flags?"""
        return not self.switches

    def partly(self, reason: str, *withheld: str) -> None:
        """Note a difference that takes some rows away."""
        self.status = "partly" if self.status == "yes" else self.status
        self.reasons.append(reason)
        self.withheld.extend(row for row in withheld if row not in self.withheld)

    def answer(self) -> Comparable:
        """The contract's part."""
        return Comparable(self.status, self.reasons, self.withheld, self.corrected)  # type: ignore[arg-type]


def comparable(before: Side, after: Side) -> Findings:
    """Look at everything that can make a number meaningless."""
    found = Findings()
    if not _anything_common(before, after, found):
        return found
    _recorded(before, after, found)
    _trust(before, after, found)
    _device(before, after, found)
    _steps(before, after, found)
    _shapes(before, after, found)
    _switches(before, after, found)
    _remarks(before, after, found)
    return found


def _anything_common(before: Side, after: Side, found: Findings) -> bool:
    host = before.has_host and after.has_host
    if host or (before.has_gpu and after.has_gpu) or (before.has_calls and after.has_calls):
        return True
    found.status = "no"
    found.reasons.append(
        f"the before trace holds {_content(before)}, the after trace {_content(after)}: nothing is common to both"
    )
    found.stops = "nothing is common to both traces"
    found.withheld += [GPU_ROWS, HOST_ROWS]
    return False


def _content(side: Side) -> str:
    parts = [
        word
        for word, there in (("CPU ops", side.has_host), ("API calls", side.has_calls), ("GPU work", side.has_gpu))
        if there
    ]
    return " and ".join(parts) or "nothing that could be compared"


def _recorded(before: Side, after: Side, found: Findings) -> None:
    for mine, other, name in ((before, after, "before"), (after, before, "after")):
        if other.has_gpu and not mine.has_gpu:
            found.partly(f"the {name} trace holds no GPU work, so kernels, copies and GPU time are left out", GPU_ROWS)
            found.stops = f"the {name} trace holds no GPU work"
        if other.has_host and not mine.has_host:
            found.partly(f"the {name} trace holds no CPU ops, so host work is left out", HOST_ROWS, OP_ROWS)
            found.stops = found.stops or f"the {name} trace holds no CPU ops"


def _trust(before: Side, after: Side, found: Findings) -> None:
    for side, name in ((before, "before"), (after, "after")):
        failed = {check.check: check.detail for check in side.report.trust if check.status == "fail"}
        if "launch-blocking" in failed:
            found.partly(f"the {name} trace was recorded with CUDA_LAUNCH_BLOCKING=1: its times are not what users see")
            found.stops = f"the {name} trace was recorded with CUDA_LAUNCH_BLOCKING=1"
        if "lost-records" in failed and side.has_gpu:
            found.partly(f"the {name} trace: {failed['lost-records']}", GPU_ROWS)
            found.stops = found.stops or f"too many GPU records of the {name} trace are lost"
        withheld = side.p.withheld
        if withheld and side.has_gpu and "launch-blocking" not in failed and "lost-records" not in failed:
            found.partly(f"the step time of the {name} trace without the profiler is withheld: {withheld}")


def _device(before: Side, after: Side, found: Findings) -> None:
    names = [sorted({d["name"] for d in side.report.trace["devices"] if d["name"]}) for side in (before, after)]
    if names[0] and names[1] and names[0] != names[1]:
        found.partly(
            f"other GPU: {', '.join(names[0])} before, {', '.join(names[1])} after; the step times differ for that reason too"
        )
        found.stops = found.stops or "the two ran on different GPUs"
    count = [len(side.report.trace["devices"]) for side in (before, after)]
    if before.has_gpu and after.has_gpu and count[0] != count[1]:
        found.partly(f"{count[0]} GPUs before, {count[1]} after; the busiest of each is compared")
    ranks = [side.report.trace["rank"] for side in (before, after)]
    if ranks[0] is not None and ranks[1] is not None and ranks[0] != ranks[1]:
        found.partly(f"rank {ranks[0]} before, rank {ranks[1]} after: ranks may have different work")
    worlds = [side.report.trace["world_size"] for side in (before, after)]
    if worlds[0] and worlds[1] and worlds[0] != worlds[1]:
        found.partly(f"{worlds[0]} ranks before, {worlds[1]} after: each may have a different share of the work")


def _steps(before: Side, after: Side, found: Findings) -> None:
    whole = [side.s.steps.marker == WHOLE_WINDOW for side in (before, after)]
    if whole[0] != whole[1]:
        name = "before" if whole[0] else "after"
        found.partly(
            f"the {name} trace marks no steps, so its whole window stands against one step; name an annotation that both have "
            "with --step-marker"
        )
        found.stops = found.stops or f"the {name} trace marks no steps"
    elif whole[0]:
        found.partly("neither trace marks steps: their whole windows are compared, which must hold the same work")
    elif abs(len(before.used) - len(after.used)) > 0:
        found.reasons.append(f"{len(before.used)} steps count before, {len(after.used)} after; figures are per step")


def _shapes(before: Side, after: Side, found: Findings) -> None:
    if before.has_shapes != after.has_shapes:
        return
    share = _common_inputs(before, after)
    if share is not None and share < OTHER_SHAPES:
        found.partly(
            "the inputs have other shapes (another batch, sequence or model): times are those of different work",
            SHAPE_ROWS,
        )
        found.stops = found.stops or "the two worked on inputs of different shapes"


def _common_inputs(before: Side, after: Side) -> float | None:
    """Of the matrix, convolution and attention ops that both sides launched: the share that found one with the same inputs
    on the other side. None where there are too few, or where shapes change from step to step anyway."""
    shapes = []
    for side in (before, after):
        steps = [_launching(side, step) for step in side.used[-2:]]
        if not steps or (len(steps) > 1 and steps[0] != steps[1]):
            return None
        shapes.append(steps[-1])
    total = common = 0
    for name in shapes[0].keys() & shapes[1].keys():
        old, new = shapes[0][name], shapes[1][name]
        total += min(old.total(), new.total())
        for text, n in old.items():
            common += min(n, max((m for other, m in new.items() if _same_inputs(text, other)), default=0))
    return common / total if total else None


def _launching(side: Side, step: int) -> dict[str, Counter[str]]:
    """Input shapes of the ops of a step that launched matrix products and the like, by op name."""
    s = side.s
    launches = (CallClass.LAUNCH, CallClass.GRAPH_LAUNCH)
    mine = np.isin(s.links.call_class, [int(k) for k in launches]) & (s.steps.step_of_call == step)
    calls = np.flatnonzero(mine & (s.links.op_of_call >= 0))
    texts = categories(s.raw.ops["input_dims"])
    dims = codes(s.raw.ops["input_dims"])
    found: dict[str, Counter[str]] = {}
    for op in s.links.op_of_call[calls[:MOST_OPS_LOOKED_AT]].tolist():
        name = base_name(side.op_names[int(side.op_code[op])])
        if dims[op] >= 0 and (name in _MATH or "conv" in name or "attention" in name):
            found.setdefault(name, Counter())[texts[int(dims[op])]] += 1
    return found


_MATH = ("mm", "bmm", "addmm", "baddbmm", "mv", "addmv")


def _same_inputs(old: str, new: str) -> bool:
    """Equal shapes, or one has an output argument more (compiled code calls `mm(out=...)`)."""
    return old == new or old.startswith(new[:-1]) or new.startswith(old[:-1])


def _switches(before: Side, after: Side, found: Findings) -> None:
    flags = [_flags(side) for side in (before, after)]
    for flag in sorted(flags[0] ^ flags[1]):
        name = "before" if flag in flags[0] else "after"
        found.switches.append(flag)
        what = _SWITCHES.get(flag, flag)
        withheld = {"with_stack": FRAME_ROWS, "record_shapes": SHAPE_ROWS}.get(flag)
        found.partly(f"only the {name} trace was recorded with {what}", *([withheld] if withheld else []))
    if not found.same_switches:
        found.reasons.append("recording costs more on one side: step times are compared without the profiler's cost")
        found.withheld.append(RECORDED_ROWS)
        found.corrected += ["step time", "host time"]


def _flags(side: Side) -> set[str]:
    """The recorder's switches, by what the file holds rather than by what it says."""
    flags = {flag for flag in side.s.raw.meta.flags if flag not in ("with_stack", "record_shapes")}
    return flags | ({"with_stack"} if side.has_stacks else set()) | ({"record_shapes"} if side.has_shapes else set())


def _remarks(before: Side, after: Side, found: Findings) -> None:
    """Differences worth knowing that take nothing away."""
    versions = [dict(side.report.trace["versions"]) for side in (before, after)]
    changed = [
        f"{name} {versions[0][name]} before, {versions[1][name]} after"
        for name in sorted(versions[0].keys() & versions[1].keys())
        if versions[0][name] != versions[1][name]
    ]
    if changed:
        found.reasons.append("other versions: " + "; ".join(changed))
    if before.s.raw.meta.truncated or after.s.raw.meta.truncated:
        name = "before" if before.s.raw.meta.truncated else "after"
        found.partly(f"the {name} trace is cut off: its last steps are missing")
