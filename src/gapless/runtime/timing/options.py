"""How may a measurement be steered? The defaults are meant to be honest without being touched."""

from __future__ import annotations

from dataclasses import dataclass

from gapless.model.errors import UsageError

__all__ = ["Options"]

_L2 = ("both", "warm", "cold")
_HEADLINES = ("auto", "t_gpu", "t_gpu_cold", "t_tput", "t_lat", "t_graph")


@dataclass(frozen=True)
class Options:
    """Options of `measure` and `compare`.

    `l2`: both | warm | cold. `headline`: auto, or the id of the quantity to quote ("forced" is then said).
    `budget_s`: time for each quantity. `target`: half width of the 95 % interval of the median to aim for.
    `graph`: whether to try a CUDA graph. `kernels`: whether to add the profiler pass that explains the result; off,
    since it makes every later launch of the process slower.
    `grad_to_none`: clear gradients before each call. `flops`, `bytes`: work of one call, checked against the hardware.
    """

    l2: str = "both"
    headline: str = "auto"
    budget_s: float = 2.0
    target: float = 0.01
    min_samples: int = 30
    warmup_s: float = 0.2
    graph: bool = True
    kernels: bool = False
    grad_to_none: bool = False
    flops: float | None = None
    bytes: float | None = None
    name: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.l2 not in _L2:
            raise UsageError(f"l2={self.l2!r} is not known; use one of {', '.join(_L2)}")
        if self.headline not in _HEADLINES:
            raise UsageError(f"headline={self.headline!r} is not known; use one of {', '.join(_HEADLINES)}")
        if not 0 < self.budget_s <= 3600:
            raise UsageError(f"budget_s={self.budget_s!r} is not a time; give seconds per quantity, such as 2.0")
        if not 0 < self.target < 1:
            raise UsageError(f"target={self.target!r} is not a share; give a half width such as 0.01 for 1 %")
        if self.min_samples < 6:
            raise UsageError(f"min_samples={self.min_samples} supports no interval of a median; give 6 or more")
