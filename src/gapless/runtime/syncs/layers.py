"""Which torch functions (layer A) and which ops (layer B) run on this thread, and do their copies keep the host?"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from gapless.runtime.gputrace import Dispatcher
from gapless.runtime.syncs.backend import Backend
from gapless.runtime.syncs.compiled import keep_dynamo_out
from gapless.runtime.syncs.copies import COPY_OPS, INDEX_OPS, STAGED_BYTES, Copy, find_copy
from gapless.runtime.syncs.gate import Gate
from gapless.runtime.syncs.races import RaceGuard
from gapless.runtime.syncs.record import Recorder

_CROSSING = COPY_OPS | INDEX_OPS
_GETTER = type(torch.Tensor.shape.__get__)  # type: ignore[attr-defined]
_LONG = frozenset({torch.Tensor.backward, torch.autograd.backward, torch.autograd.grad})


class SourceLayer(TorchFunctionMode):
    """Layer A: the torch functions that the user's code calls (`Tensor.item`, `Tensor.__bool__`, `torch.tensor`)."""

    def __init__(self, recorder: Recorder, gate: Gate, guard: RaceGuard | None, trace: Dispatcher | None) -> None:
        super().__init__()
        self._recorder = recorder
        self._trace = trace
        self._gate = gate
        self._guard = guard

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the wrapped function returns
        """Runs `func` with its name on this thread's stack."""
        if func.__class__ is _GETTER:
            return func(*args, **(kwargs or {}))
        recorder = self._recorder
        state = recorder.local.state
        if state.open is not None:
            recorder.close(state)
        state.calls += 1
        if self._guard is not None and self._guard.pending:
            self._guard.before_function(func, args)
        # A backward pass runs the user's own code; its ops hold the hooks themselves.
        trace = None if state.stack or func in _LONG else self._trace
        state.stack.append(("A", func, None))
        if trace is not None:
            trace.hold()
        try:
            result = func(*args, **(kwargs or {}))
        finally:
            if trace is not None:
                trace.release()
            state.stack.pop()
            if state.open is not None:
                recorder.close(state)
        if self._gate.breach is not None:
            self._gate.raise_breach()
        return result


class OpLayer(TorchDispatchMode):
    """Layer B: the ops underneath, with the copies among them timed, because some stall unseen by torch's detectors."""

    supports_higher_order_operators = True

    def __init__(
        self,
        recorder: Recorder,
        gate: Gate,
        guard: RaceGuard | None,
        trace: Dispatcher | None,
        backend: Backend | None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._trace = trace
        self._recorder = recorder
        self._gate = gate
        self._guard = guard
        self._backend = backend

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Compiled regions stay compiled; what they run inside is then seen by layer C alone."""
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the op returns
        """Runs the op with its name on this thread's stack."""
        kwargs = kwargs or {}
        recorder, guard = self._recorder, self._guard
        state = recorder.local.state
        if state.open is not None:
            recorder.close(state)
        state.calls += 1
        copy = None
        if func in _CROSSING and self._backend is not None:
            copy = find_copy(func, args, kwargs, self._backend)
        if guard is not None and guard.pending:
            guard.before_op(func, args, kwargs, copy)
        # Inside a torch function the hooks are on already, except inside a backward pass.
        trace = self._trace if not state.stack or state.stack[-1][1] in _LONG else None
        state.stack.append(("B", func, copy.forget() if copy is not None else None))
        if trace is not None:
            trace.hold()
        try:
            if copy is not None and copy.pageable_async:
                result = self._timed(copy, func, args, kwargs)
            else:
                result = func(*args, **kwargs)
        finally:
            if trace is not None:
                trace.release()
            state.stack.pop()
            if state.open is not None:
                recorder.close(state)
        if guard is not None and copy is not None and copy.non_blocking and copy.pinned:
            guard.after_copy(copy, result)
        if self._gate.breach is not None:
            self._gate.raise_breach()
        return result

    def _timed(self, copy: Copy, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401 - whatever the op returns
        """Runs a non-blocking copy of pageable memory and notes it if the host was kept until the GPU had caught up."""
        backend = self._backend
        tensor = copy.device if copy.device is not None else _target(kwargs)
        if backend is None or tensor is None:
            return func(*args, **kwargs)
        idle = backend.idle(tensor)
        mark = backend.mark(tensor) if idle is False else None
        begin_ns = time.perf_counter_ns()
        result = func(*args, **kwargs)
        stall_ns = time.perf_counter_ns() - begin_ns
        if idle is False and mark is not None and mark.done():
            self._recorder.on_pageable(copy.forget(), begin_ns, stall_ns, False)
        elif idle and (copy.direction == "DtoH" or copy.size_bytes > STAGED_BYTES):
            self._recorder.on_pageable(copy.forget(), begin_ns, stall_ns, True)
        return result


def _target(kwargs: Mapping[str, Any]) -> torch.Tensor | None:
    """A tensor on the device that a conversion goes to: an empty one stands for it."""
    device = kwargs.get("device")
    return torch.empty(0, device=device) if isinstance(device, torch.device) else None


for _function in (SourceLayer.__torch_function__, OpLayer.__torch_dispatch__):
    keep_dynamo_out(_function)  # type: ignore[arg-type]
