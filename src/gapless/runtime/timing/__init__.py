"""How long does a call really take? `measure` one, `compare` several; host, GPU, cache and launch told apart."""

from __future__ import annotations

from gapless.runtime.timing.compare import compare
from gapless.runtime.timing.comparison import Comparison
from gapless.runtime.timing.measure import measure
from gapless.runtime.timing.options import Options
from gapless.runtime.timing.result import Check, Measurement, Quantity, Verdict

__all__ = ["Check", "Comparison", "Measurement", "Options", "Quantity", "Verdict", "compare", "measure"]
