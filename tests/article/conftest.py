"""The articles' experiments as recorded on an H200, or a skip with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from .recorded import Recorded


@pytest.fixture(scope="session")
def h200(shared: Path) -> Recorded:
    return Recorded(shared / "h200")
