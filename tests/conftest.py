"""Shared fixtures: where the handed traces lie, if they do."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared" / "traces"
"""Folder of the handed traces; absent outside the developers' tree."""


@pytest.fixture(scope="session")
def shared() -> Path:
    """The handed traces, or a skip with a reason."""
    if not SHARED.is_dir():
        pytest.skip("the handed traces (../shared/traces) are not here")
    return SHARED
