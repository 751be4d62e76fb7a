"""Which of several functions is faster, and how sure is that? The result of `compare`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from gapless.runtime.timing.blocks import Decision

__all__ = ["COMPARE_SCHEMA", "Comparison", "Row"]

COMPARE_SCHEMA = "gapless.compare/1"


@dataclass(frozen=True)
class Row:
    """One function against the baseline."""

    name: str
    decision: Decision


@dataclass(frozen=True)
class Comparison:
    """Verdicts against the baseline (the first function given); `times_us[name][block]` keeps every sample."""

    names: tuple[str, ...]
    baseline: str
    quantity: str
    why: str
    rows: tuple[Row, ...]
    medians_us: Mapping[str, float]
    times_us: Mapping[str, tuple[tuple[float, float], ...]]
    blocks: int
    band: float
    confidence: str
    cycles_note: str
    warnings: tuple[str, ...]
    fingerprint: Mapping[str, str | float | int | None]
    spent_s: float
    schema: str = field(default=COMPARE_SCHEMA)

    def __getitem__(self, name: str) -> Decision:
        return next(row.decision for row in self.rows if row.name == name)

    def __str__(self) -> str:
        from gapless.runtime.timing.screen import comparison_screen

        return comparison_screen(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from gapless.runtime.timing.page import comparison_page

        return comparison_page(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data with every sample."""
        return asdict(self)

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=1)
