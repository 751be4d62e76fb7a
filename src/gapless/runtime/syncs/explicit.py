"""Where does the code ask to wait? torch's Python functions that synchronise run with the trace hooks on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from gapless.runtime.gputrace import Dispatcher
from gapless.runtime.syncs.compiled import keep_dynamo_out

_NAMES = (
    (("cuda",), "synchronize"), (("cuda",), "empty_cache"), (("cuda", "Stream"), "synchronize"),
    (("cuda", "Event"), "synchronize"), (("accelerator",), "synchronize"), (("accelerator",), "empty_cache"),
    (("xpu",), "synchronize"), (("xpu", "Stream"), "synchronize"), (("xpu", "Event"), "synchronize"),
)  # fmt: skip


class ExplicitCalls:
    """Wraps these functions while it runs; each is the original again after `stop`, unless replaced by others since."""

    def __init__(self, trace: Dispatcher) -> None:
        self._trace = trace
        self._replaced: list[tuple[Any, str, Any, Any]] = []

    def start(self) -> None:
        """Wraps what this torch has."""
        for path, name in _NAMES:
            owner: Any = torch
            for part in path:
                owner = getattr(owner, part, None)
            original = getattr(owner, name, None)
            if original is not None:
                wrapped = self._wrap(original)
                setattr(owner, name, wrapped)
                self._replaced.append((owner, name, original, wrapped))

    def stop(self) -> None:
        """Puts the originals back."""
        for owner, name, original, wrapped in reversed(self._replaced):
            if getattr(owner, name, None) is wrapped:
                setattr(owner, name, original)
        self._replaced.clear()

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        trace = self._trace

        @functools.wraps(original)
        def held(*args: object, **kwargs: object) -> object:
            trace.hold()
            try:
                return original(*args, **kwargs)
            finally:
                trace.release()

        keep_dynamo_out(held)  # type: ignore[arg-type]
        return held
