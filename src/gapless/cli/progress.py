"""How far has reading come? A bar with bytes and time left, on a terminal, for reads longer than a blink."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

DELAY_S = 0.5
"""Reads shorter than this show no bar: it would only flicker."""


class ReadProgress:
    """Call it with bytes read and bytes in all (None if not known); use it as a context manager."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._started = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._wanted = sys.stderr.isatty()

    def __call__(self, done: int, total: int | None = None) -> None:
        """Show `done` of `total` bytes."""
        if not self._wanted or (self._bar is None and time.monotonic() - self._started < DELAY_S):
            return
        if self._bar is None or self._task is None:
            self._bar, self._task = _start(self._label, total)
        self._bar.update(self._task, completed=done, total=total)

    def __enter__(self) -> ReadProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def _start(label: str, total: int | None) -> tuple[Progress, TaskID]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.text import Text

    from gapless.render import safe

    bar = Progress(
        TextColumn("reading {task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        transient=True,
    )
    bar.start()
    return bar, bar.add_task(Text(safe.line(label, 40)).plain, total=total)
