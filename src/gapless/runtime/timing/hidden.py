"""Where does the subject wait for the GPU inside a call, and from which line?

Two detectors together: torch's sync debug mode reports blocking operations and stream waits as warnings, and the
Python entry points of explicit waits are counted. What both miss (pageable non_blocking copies, other libraries)
shows up as a call that cannot be queued behind a blocker.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import torch

from gapless.runtime.timing.backend import Run, SyncSite

__all__ = ["find_syncs"]

_TORCH = str(Path(torch.__file__).parent)
_HERE = str(Path(__file__).parent)
_SKIPPED = (_TORCH, _HERE, str(warnings.__file__))
_WAITS: tuple[tuple[Any, str, str], ...] = (
    (torch.cuda, "synchronize", "device"),
    (torch.accelerator, "synchronize", "device"),
    (torch.cuda.Event, "synchronize", "event"),
    (torch.cuda.Stream, "synchronize", "stream"),
)


def _user_site() -> tuple[str, int]:
    """File and line of the innermost frame outside torch and this package."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_SKIPPED):
            return name, frame.f_lineno
        if frame.f_back is None:
            return name, frame.f_lineno
        frame = frame.f_back
    return "?", 0


@contextmanager
def _counted_waits(found: Counter[tuple[str, str, int, bool]]) -> Iterator[None]:
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in _WAITS]

    def counting(original: Callable[..., object], kind: str) -> Callable[..., object]:
        def wrapper(*args: object, **kwargs: object) -> object:
            found[(kind, *_user_site(), True)] += 1
            before = torch.cuda.get_sync_debug_mode()
            torch.cuda.set_sync_debug_mode(0)
            try:
                return original(*args, **kwargs)
            finally:
                torch.cuda.set_sync_debug_mode(before)

        return wrapper

    try:
        for owner, name, kind in _WAITS:
            setattr(owner, name, counting(getattr(owner, name), kind))
        yield
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)


def find_syncs(run: Run) -> tuple[SyncSite, ...]:
    """Run the subject once and list its waits, most frequent first; everything is put back afterwards."""
    found: Counter[tuple[str, str, int, bool]] = Counter()
    previous = torch.cuda.get_sync_debug_mode()
    show = warnings.showwarning

    def note(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if "called a synchroniz" in str(message):
            found[("operation", *_user_site(), False)] += 1
        elif "debug mode is a prototype" not in str(message):
            show(message, category, filename, lineno, file, line)

    with warnings.catch_warnings(), _counted_waits(found):
        warnings.simplefilter("always")
        warnings.showwarning = note
        torch.cuda.set_sync_debug_mode("warn")
        try:
            run()
        finally:
            torch.cuda.set_sync_debug_mode(previous)
    return tuple(SyncSite(kind, file, line, n, declared) for (kind, file, line, declared), n in found.most_common())
