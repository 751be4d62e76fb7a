"""Comparisons of handed traces, each made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import gapless
from gapless.api import DiffView, Trace

SHARED = Path(__file__).resolve().parents[3] / "shared" / "traces"

Compared = Callable[[str, str], DiffView]


@pytest.fixture(scope="session")
def compared(shared: Path) -> Compared:
    """Two traces by their paths below the handed ones, compared."""

    @cache
    def load(name: str) -> Trace:
        return gapless.load(shared / f"{name}.json.gz")

    @cache
    def compare(before: str, after: str) -> DiffView:
        return gapless.diff(load(before), load(after))

    return compare
