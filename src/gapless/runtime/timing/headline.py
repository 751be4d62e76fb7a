"""Which one of the quantities answers "how long does it take"? Pure."""

from __future__ import annotations

from collections.abc import Mapping

from gapless.runtime.timing.options import Options
from gapless.runtime.timing.quantities import Stray
from gapless.runtime.timing.result import Headline, Quantity, Verdict

__all__ = ["choose"]

COLD_FOOTPRINT = 10
"""A single kernel whose data is below this many L2 sizes is quoted with a cold cache."""


def choose(
    found: Mapping[str, Quantity],
    verdict: Verdict,
    options: Options,
    kernels_per_call: float | None,
    footprint_bytes: int,
    l2_bytes: int | None,
    stray: Stray | None,
) -> Headline:
    """GPU time where the GPU is the limit, loop time where the host is; latency where work escapes the stream."""
    if options.headline != "auto":
        return Headline(
            options.headline if options.headline in found else "t_lat", "asked for by the caller", forced=True
        )
    if stray is not None and stray.counts:
        return Headline(
            "t_lat", "work runs outside the measured stream (H03): only the device-wide latency holds all of it"
        )
    if verdict.kind in ("gpu-bound", "marginal"):
        cold = found.get("t_gpu_cold")
        if options.l2 == "cold" and cold is not None and cold.known:
            return Headline("t_gpu_cold", "GPU time with a cold L2, as asked")
        single = kernels_per_call is not None and round(kernels_per_call) == 1
        small = l2_bytes is not None and 0 < footprint_bytes < COLD_FOOTPRINT * l2_bytes
        if options.l2 == "both" and single and small and cold is not None and cold.known:
            return Headline(
                "t_gpu_cold",
                "GPU time with a cold L2: a single kernel on little data, whose inputs a program rarely finds cached",
            )
        return Headline("t_gpu", "GPU time with a warm L2: the GPU is the limit")
    if verdict.kind == "launch-bound":
        return Headline(
            "t_tput", "time per call in a loop: the host is the limit; t_gpu and t_graph show what the GPU needs"
        )
    if verdict.kind == "host-serialised":
        return Headline("t_tput", "time per call in a loop: host and GPU take turns")
    if verdict.kind == "host-only":
        return Headline("t_tput", "host time per call in a loop")
    return Headline("t_lat", "latency of one call, the only time that needs no model")
