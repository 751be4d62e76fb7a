"""Running scripts in a fresh process, plainly and under `gapless run`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from recorder_jobs import Ran, finish


@pytest.fixture
def plain(tmp_path: Path) -> Callable[..., Ran]:
    """Run `python script args`."""

    def run(source: str, *args: str, name: str = "job.py") -> Ran:
        (tmp_path / name).write_text(source)
        return finish([sys.executable, name, *args], tmp_path)

    return run


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[..., Ran]:
    """Run `gapless run FLAGS script args`."""

    def run(source: str, *args: str, flags: tuple[str, ...] = (), name: str = "job.py") -> Ran:
        (tmp_path / name).write_text(source)
        command = [sys.executable, "-m", "gapless", "run", "--no-report", "-o", "out", *flags, name, *args]
        return finish(command, tmp_path)

    return run
