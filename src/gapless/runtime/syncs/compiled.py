"""Is torch.compile in use, so that a layer of ours would be traced into the user's graphs and guarded on?

Dynamo inlines a TorchFunctionMode and recompiles when it comes or goes; the source layer must therefore be off the
stack before anything compiled runs. A TorchDispatchMode of the right kind is left alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch


def compile_in_use() -> bool:
    """Whether something was already handed to torch.compile in this process."""
    module = sys.modules.get("torch._dynamo.eval_frame")
    backends: dict[int, object] = getattr(module, "cached_backends", {}) if module is not None else {}
    return any(backend is not None for backend in backends.values())


class CompileWatcher:
    """Calls `on_compile` before the first use of torch.compile; `torch.compile` is the original again after `stop`."""

    def __init__(self, on_compile: Callable[[], None]) -> None:
        self._on_compile = on_compile
        self._original: Callable[..., Any] | None = None
        self._replacement: Callable[..., Any] | None = None

    def start(self) -> None:
        """Listens from now on."""
        original = torch.compile

        def compile(*args: object, **kwargs: object) -> object:  # noqa: A001
            self._on_compile()
            return original(*args, **kwargs)  # type: ignore[call-overload]

        self._original, self._replacement = original, compile
        torch.compile = compile  # type: ignore[assignment]

    def stop(self) -> None:
        """Ends it, unless somebody else has replaced torch.compile since."""
        if self._original is not None and torch.compile is self._replacement:
            torch.compile = self._original
        self._original = None


def keep_dynamo_out(function: FunctionType) -> None:
    """Dynamo must not try to compile this function of ours when compiled code calls back into Python."""
    frames = getattr(torch._C._dynamo, "eval_frame", None)
    try:
        action = frames._FrameAction.SKIP  # type: ignore[union-attr]
        frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(action, action))  # type: ignore[union-attr]
    except (AttributeError, TypeError):
        skip: Callable[[object], None] | None = getattr(frames, "skip_code", None)
        if skip is not None:
            skip(function.__code__)
