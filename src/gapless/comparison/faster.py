"""Did the step become faster, and by how much more than noise?

The ratio is before over after, of step times without the profiler; where a side cannot say, of those recorded, if both
were recorded with the same switches. Noise: what step times of one program move between runs (10 % bound by the host,
2 % by the GPU, 3 % where the recorder measured a baseline) and the spread of the recorded steps, of both sides together.
Where both sides are bound by the host the ratio is also taken with the host's speed levelled (see `host_speed`): the
verdict is faster or slower only where both ratios say so beyond the noise; where they disagree because the two hosts
were not equally fast, it is undecided. One file against itself has no noise.
"""

from __future__ import annotations

import math
from typing import Literal

from gapless.comparison.comparable import NOT_COMPARABLE, Findings
from gapless.comparison.host_speed import differs, host_speed
from gapless.comparison.side import Side, recorded, spread
from gapless.model.diff import Outcome, Speedup

HOST_NOISE, GPU_NOISE, MEASURED_NOISE = 0.10, 0.02, 0.03
GPU_BOUND_SHARE = 0.8
SWITCH_NOISE = {"with_stack": 0.42, "record_shapes": 0.15}
"""Where one side alone was recorded with a switch its cost is taken out, with an error of its own: step times bound by
the host came out up to this much apart for one program (H200 pairs, with and without stacks)."""
TOO_NOISY = 0.5
"""Beyond this no verdict `same` is worth anything."""


def faster(before: Side, after: Side, known: Findings) -> Speedup:
    """The verdict on step time."""
    value = _ratio(before.report.step.unprofiled_ms, after.report.step.unprofiled_ms)
    as_recorded = _ratio(*recorded(before, after))
    basis: Literal["unprofiled", "recorded"] = "unprofiled" if value is not None else "recorded"
    ratio = value if value is not None else as_recorded
    if before.report.trace["sha256"] == after.report.trace["sha256"]:
        return Speedup(value, as_recorded, 0.0, "same", 1.0, 1.0, 1.0, basis, "both files are the same")
    why = _no_verdict(known, ratio, basis)
    if ratio is None or why:
        return Speedup(value, as_recorded, None, "undecided", why=why)
    noise = _noise(before, after, known, basis == "unprofiled")
    both_host = before.host_bound is not False and after.host_bound is not False
    speed = host_speed(before, after)
    levelled = ratio * speed if both_host and speed is not None and known.same_switches else ratio
    low, high = min(ratio, levelled) / (1 + noise), max(ratio, levelled) * (1 + noise)
    verdict, why = _verdict(low, high, noise, speed if both_host else None, ratio, levelled)
    return Speedup(value, as_recorded, noise, verdict, low, high, speed, basis, why)


def _no_verdict(known: Findings, ratio: float | None, basis: str) -> str:
    """Why no verdict may be given; '' if one may."""
    if known.stops:
        return known.stops
    if ratio is None:
        return NOT_COMPARABLE
    if basis == "recorded" and not known.same_switches:
        return (
            "the step time of one side without the profiler is not known, and the two were recorded with other switches"
        )
    return ""


def _verdict(
    low: float, high: float, noise: float, speed: float | None, ratio: float, levelled: float
) -> tuple[Outcome, str]:
    base = f"differences below {noise:.0%} mean nothing here"
    if low > 1:
        return "faster", base
    if high < 1:
        return "slower", base
    if speed is not None and differs(speed) and abs(math.log(ratio / levelled)) > math.log1p(noise):
        word = "slower" if speed > 1 else "faster"
        return "undecided", (
            f"both sides are bound by the host, and the host ran what both have {max(speed, 1 / speed):.2f}x {word} in the after "
            f"trace: the step times say {ratio:.2f}x, with the host's speed levelled {levelled:.2f}x"
        )
    if noise > TOO_NOISY:
        return "undecided", f"the recorded steps differ so much among themselves ({noise:.0%}) that nothing can be said"
    return "same", base


def _noise(before: Side, after: Side, known: Findings, unprofiled: bool) -> float:
    parts = []
    if before.host_bound is not False or after.host_bound is not False:
        parts += [SWITCH_NOISE.get(switch, 0.05) for switch in known.switches]
    for side in (before, after):
        usual = _usual_noise(side)
        if unprofiled and side.p.measured_ms is not None:
            usual = MEASURED_NOISE
        seen = spread(side)
        parts.append(max(usual, (seen or 0.0) / math.sqrt(max(side.count, 1))))
    return math.hypot(*parts)


def _usual_noise(side: Side) -> float:
    """How far step times of such a program move between runs: between the GPU's and the host's, by who needs the step."""
    one = side.p.unprofiled
    if one is None or side.host_bound is not False:
        return HOST_NOISE
    if one.gpu_ns >= GPU_BOUND_SHARE * one.period_ns:
        return GPU_NOISE
    share = one.host_ns / max(one.period_ns, 1.0)
    return share * HOST_NOISE + (1 - share) * GPU_NOISE


def _ratio(before: float | None, after: float | None) -> float | None:
    return before / after if before and after else None
