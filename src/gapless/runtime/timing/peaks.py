"""What can this GPU not exceed? Loose upper bounds, only good for saying that a claim is impossible."""

from __future__ import annotations

__all__ = ["peak_bytes_per_s", "peak_flops"]

_DENSE_FLOPS_PER_CLOCK_PER_SM = {(7, 0): 1024, (7, 5): 2048, (8, 0): 4096, (8, 6): 4096, (8, 9): 4096, (9, 0): 8192}
"""The fastest dense format of each architecture, integers included; architectures not listed have no bound."""


def peak_flops(properties: object, max_mhz: int | None) -> float | None:
    """Operations per second of the fastest dense format at the highest clock, None where unknown."""
    capability = (int(getattr(properties, "major", 0)), int(getattr(properties, "minor", 0)))
    per_clock = _DENSE_FLOPS_PER_CLOCK_PER_SM.get(capability)
    units = int(getattr(properties, "multi_processor_count", 0))
    if per_clock is None or not max_mhz or not units:
        return None
    return per_clock * units * max_mhz * 1e6


def peak_bytes_per_s(properties: object) -> float | None:
    """Twice the memory clock times the bus width; L2 hits can exceed it, so it bounds cold data only."""
    khz, bits = getattr(properties, "memory_clock_rate", None), getattr(properties, "memory_bus_width", None)
    return 2 * float(khz) * 1e3 * float(bits) / 8 if khz and bits else None
