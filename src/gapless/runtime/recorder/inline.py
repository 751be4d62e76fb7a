"""How is a window recorded from inside a program? `gapless.profile` as a context manager or a decorator."""

from __future__ import annotations

import functools
import logging
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, TypeVar

from gapless.runtime.recorder import names
from gapless.runtime.recorder.options import Options, Stacks, checked
from gapless.runtime.recorder.recorder import Recorder

P = ParamSpec("P")
R = TypeVar("R")

_log = logging.getLogger("gapless")


class profile:  # noqa: N801 - read as a verb, like torch.profiler.profile
    """Record a window of the steps inside the block.

        with gapless.profile("traces/", steps=3) as p:
            for batch in loader:
                train(batch)
                p.step()
        print(p.paths)

    A step begins at each `p.step()`; a block that never calls it has its steps found as `gapless run` finds them. As a
    decorator, each call of the function is a step, and the window closes by itself. `paths` holds the files written:
    the timing window, then the one with stacks. Trouble with the profiler is a warning, never an exception.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] = "gapless-traces",
        *,
        steps: int | None = None,
        skip: int | None = None,
        max_events: int = 1_000_000,
        max_mb: float = 200.0,
        stacks: Stacks = "window",
        memory: bool = False,
        sync_events: bool = False,
        step_on: str = "auto",
        name: str | None = None,
    ) -> None:
        self.options = checked(
            Options(
                folder=os.fspath(folder),
                steps=steps,
                skip=skip,
                max_events=max_events,
                max_mb=max_mb,
                stacks=stacks,
                memory=memory,
                sync_events=sync_events,
                step_on=step_on,
                report=False,
            )
        )
        self._name = names.stem(name or sys.argv[0] or "trace")
        self._recorder: Recorder | None = None

    @property
    def paths(self) -> list[Path]:
        """The files written so far, timing window first."""
        return [] if self._recorder is None else self._recorder.outcome.paths()

    @property
    def done(self) -> bool:
        """Whether the plan is complete: further steps cost nothing and record nothing."""
        return self._recorder is not None and self._recorder.window.phase == "done"

    def start(self) -> None:
        """Begin; the block's own way in."""
        self._recorder = Recorder(self.options, base=self._name, say=_log.info, problem=_warn)
        self._recorder.start()

    def step(self) -> None:
        """A step has ended and the next one begins."""
        if self._recorder is None:
            self.start()
        if self._recorder is not None:
            self._recorder.step()

    def stop(self, reason: str = "the block ended") -> None:
        """End the recording and write what there is."""
        if self._recorder is None:
            return
        self._recorder.stop(reason)
        if not self.paths:
            _warn(f"no trace was written: {self._recorder.why_empty()}")

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop("the block ended" if kind is None else f"the block raised {kind.__name__}")

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function: each call of it is a step."""

        @functools.wraps(function)
        def stepped(*args: P.args, **kwargs: P.kwargs) -> R:
            if not self.done:
                self.step()
            try:
                return function(*args, **kwargs)
            except BaseException as error:
                self.stop(f"the function raised {type(error).__name__}")
                raise

        return stepped


def _warn(line: str) -> None:
    warnings.warn(f"gapless: {line}", RuntimeWarning, stacklevel=4)
