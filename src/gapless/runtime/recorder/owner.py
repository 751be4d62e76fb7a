"""Who holds the profiler: us, the script itself, or nobody?

torch has one profiler a process. While ours runs, a script that starts its own must get it: ours steps aside first.
While the script's runs, ours waits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch.autograd.profiler as autograd_profiler

_NAMES = ("_prepare_profiler", "_enable_profiler", "_disable_profiler")


class ProfilerOwner:
    """Watches the three functions through which every torch profiler starts and stops."""

    def __init__(self, step_aside: Callable[[], None]) -> None:
        self.foreign = False
        self._step_aside = step_aside
        self._ours = False
        self._pid = os.getpid()
        self._saved: dict[str, Any] = {}
        self._placed: dict[str, Any] = {}

    def install(self) -> None:
        """Begin to watch."""
        for name in _NAMES:
            original = getattr(autograd_profiler, name, None)
            if original is not None:
                self._saved[name] = original
                self._placed[name] = self._watched(original, starts=name != "_disable_profiler")
                setattr(autograd_profiler, name, self._placed[name])

    def remove(self) -> None:
        """Put the originals back, unless someone replaced ours meanwhile (ours then only passes through)."""
        for name, original in self._saved.items():
            if getattr(autograd_profiler, name) is self._placed[name]:
                setattr(autograd_profiler, name, original)
        self._saved.clear()

    @contextmanager
    def ours(self) -> Iterator[None]:
        """Marks what is called within as our own profiler's doing."""
        before, self._ours = self._ours, True
        try:
            yield
        finally:
            self._ours = before

    def _watched(self, original: Any, *, starts: bool) -> Any:  # noqa: ANN401 - the wrapped functions are torch's own
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            if not self._ours and self._saved and os.getpid() == self._pid:
                if starts and not self.foreign:
                    self._step_aside()
                self.foreign = starts
            return original(*args, **kwargs)

        return call
