"""What was measured, in a form that can be read, kept and loaded again: quantities, verdict, checks, fingerprint."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from gapless.model.errors import UsageError
from gapless.runtime.timing.stats import Summary, summarize

__all__ = ["QUANTITIES", "SCHEMA", "Check", "Headline", "Measurement", "Quantity", "Verdict"]

SCHEMA = "gapless.measure/1"

QUANTITIES: dict[str, str] = {
    "t_first": "first call, with compilation and loading",
    "t_naive": "what a clock without a sync shows",
    "t_lat": "one call and its device sync (latency)",
    "t_tput": "per call in a loop with one sync at the end",
    "t_enq": "host time to queue one call",
    "t_gpu": "GPU time per call, queued back to back, warm L2",
    "t_gpu_cold": "GPU time of one call after an L2 flush",
    "t_gpu_again": "the same call once more, L2 as it left it",
    "t_pair": "event pair round one call without a blocker",
    "t_graph": "GPU time per call in a CUDA graph, warm L2",
    "t_graph_cold": "the same with inputs rotated through L2",
    "t_graph_floor": "a graph of one smallest kernel",
    "t_floor": "event pair round nothing",
    "t_kern_sum": "profiler: sum of kernel times",
    "t_kern_span": "profiler: first start to last end, per call",
}
"""Every quantity and what it is, in the order of the screen; microseconds per call."""


@dataclass(frozen=True)
class Quantity:
    """One quantity with all its samples in the order taken; `why` says why there are none."""

    id: str
    samples_us: tuple[float, ...] = ()
    calls_per_sample: int = 1
    stop: str = ""
    invalid: int = 0
    why: str = ""
    note: str = ""
    mhz: tuple[float, ...] = ()

    @property
    def known(self) -> bool:
        """Whether there is a number."""
        return bool(self.samples_us)

    @property
    def us(self) -> float | None:
        """The median in microseconds, None where unknown."""
        return median(self.samples_us) if self.samples_us else None

    @cached_property
    def summary(self) -> Summary | None:
        """Interval, spread, trend and modes of the samples."""
        return summarize(self.samples_us) if self.samples_us else None


@dataclass(frozen=True)
class Verdict:
    """Which side limits a loop of this call.

    `kind`: gpu-bound | marginal | launch-bound | host-serialised | host-only | inconsistent | unknown;
    `ratio`: t_enq / t_gpu.
    """

    kind: str
    ratio: float | None
    sentence: str
    advice: str = ""
    disagreements: tuple[str, ...] = ()


@dataclass(frozen=True)
class Check:
    """One honesty check. `status`: pass | warn | fail | unknown; unknown is never pass."""

    id: str
    title: str
    status: str
    evidence: str
    advice: str = ""


@dataclass(frozen=True)
class Headline:
    """The one number to quote: which quantity, and why that one."""

    id: str
    why: str
    forced: bool = False


@dataclass(frozen=True)
class Measurement:
    """The result of `measure`; print it for one screen, index it for a quantity, save it to compare later."""

    name: str
    backend: str
    headline: Headline
    verdict: Verdict
    quantities: Mapping[str, Quantity]
    checks: tuple[Check, ...]
    fingerprint: Mapping[str, str | float | int | None]
    facts: Mapping[str, str | float | int | None]
    syncs: tuple[str, ...] = ()
    warmup: str = ""
    spent_s: float = 0.0
    schema: str = field(default=SCHEMA)

    def __getitem__(self, quantity: str) -> Quantity:
        return self.quantities[quantity]

    @property
    def us(self) -> float | None:
        """The headline in microseconds; None where it is unknown."""
        return self.quantities[self.headline.id].us

    @property
    def ok(self) -> bool:
        """Whether no check failed and the quantities agree with each other."""
        return self.verdict.kind != "inconsistent" and all(c.status != "fail" for c in self.checks)

    def check(self, check_id: str) -> Check:
        """The check with this id (H01 to H20)."""
        return next(c for c in self.checks if c.id == check_id)

    def __str__(self) -> str:
        from gapless.runtime.timing.screen import measurement_screen

        return measurement_screen(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from gapless.runtime.timing.page import measurement_page

        return measurement_page(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data with every sample, plus the summaries a reader wants."""
        data = asdict(self)
        for name, quantity in self.quantities.items():
            if quantity.summary is not None:
                data["quantities"][name]["summary"] = asdict(quantity.summary)
        return data

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=1)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON; the file is complete or absent."""
        target = Path(path)
        partial = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            partial.write_text(self.to_json(), encoding="utf-8")
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Measurement:
        """Read back what `save` wrote."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            return cls.from_dict(data)
        except OSError as error:
            raise UsageError(
                f"{path}: cannot be read ({error.strerror}); give a file that Measurement.save wrote"
            ) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{path}: not a measurement of schema {SCHEMA} ({type(error).__name__}: {error}); "
                "give a file that Measurement.save wrote"
            ) from error

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Measurement:
        """Build from `to_dict`'s data; fields this version does not know are left out."""
        if data["schema"] != SCHEMA:
            raise ValueError(f"schema is {data['schema']!r}")
        return cls(
            name=str(data["name"]),
            backend=str(data["backend"]),
            headline=Headline(**_known(Headline, data["headline"])),
            verdict=Verdict(**_known(Verdict, data["verdict"])),
            quantities={k: Quantity(**_known(Quantity, v)) for k, v in data["quantities"].items()},
            checks=tuple(Check(**_known(Check, c)) for c in data["checks"]),
            fingerprint=dict(data["fingerprint"]),
            facts=dict(data["facts"]),
            syncs=tuple(data["syncs"]),
            warmup=str(data["warmup"]),
            spent_s=float(data["spent_s"]),
        )


def _known(kind: type, data: Mapping[str, Any]) -> dict[str, Any]:
    names = kind.__dataclass_fields__  # type: ignore[attr-defined]
    return {
        k: tuple(v) if isinstance(v, Sequence) and not isinstance(v, str) else v for k, v in data.items() if k in names
    }
