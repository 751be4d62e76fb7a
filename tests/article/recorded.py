"""How do the tests read the articles' experiments, and how do they change one of them before it is read?"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

import gapless
from gapless.api import ReportOptions, Trace

Event = dict[str, Any]


class Recorded:
    """The H200's recordings; each is read once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._read: dict[str, Trace] = {}

    def trace(self, name: str) -> Trace:
        """One recording: its path below `h200`, without the ending."""
        if name not in self._read:
            self._read[name] = gapless.load(self.root / f"{name}.json.gz")
        return self._read[name]

    def report(self, name: str, **options: Any) -> dict[str, Any]:
        """The report on one recording, as a user's script gets it."""
        return gapless.report(self.trace(name), options=ReportOptions(**options)).to_dict()

    def changed(self, name: str, change: Callable[[list[Event]], list[Event]]) -> Trace:
        """The recording with other events."""
        value = json.loads(gzip.decompress((self.root / f"{name}.json.gz").read_bytes()))
        value["traceEvents"] = change(value["traceEvents"])
        return gapless.load(BytesIO(json.dumps(value).encode()))

    def tables(self) -> dict[str, dict[str, float]]:
        """The totals of the profiler's own tables, us, by article file."""
        found: dict[str, dict[str, float]] = json.loads((self.root / "article" / "tables.json").read_text())
        return found


def parts(report: dict[str, Any]) -> dict[tuple[str, str | None], int]:
    """Where the only device's time went: ns by state and cause."""
    (account,) = report["accounting"]
    return {(part["state"], part["cause"]): part["ns"] for part in account["parts"]}


def trust(report: dict[str, Any], check: str) -> tuple[str, str]:
    """The answer to one question of trust: status and sentence."""
    (found,) = [c for c in report["trust"] if c["check"] == check]
    return found["status"], found["detail"]


def left_out(report: dict[str, Any]) -> dict[str, str]:
    """The steps that do not count for a reason of their own, and the reason; the last one, which only closes, not."""
    steps = report["window"]["steps"]
    return {s["name"]: s["why"] for s in steps if not s["used"] and not s["why"].startswith("closes")}


def profilers(trace: Trace) -> pl.DataFrame:
    """The waits that the recorder itself made."""
    return trace.syncs.filter(pl.col("origin").cast(pl.String) == "profiler").collect()


def host_work(trace: Trace) -> list[int]:
    """Host work of every step, ns."""
    return trace.steps.collect()["host_work_ns"].to_list()
