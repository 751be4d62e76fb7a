"""What happened on each thread: which functions and ops were running when the host waited, where, and how long?"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from gapless.runtime.gputrace import SyncEvent
from gapless.runtime.syncs.copies import Copy
from gapless.runtime.syncs.frames import Location, locate
from gapless.runtime.syncs.names import func_name

_INDEXING = ("Tensor.__getitem__", "Tensor.__setitem__")

CAPACITY = 200_000
"""Waits kept; older ones give way and are counted."""


@dataclass(slots=True)
class Wait:
    """One wait of the host. kind: device, stream, event, or pageable (a copy that no detector of torch's reports).

    chain: what was running, outermost first: torch's Python functions, torch functions, ops, the copy.
    stall_ns: host time of the wait, with the copy that it belongs to. waited_ns: the part spent on earlier GPU work.
    layers: A torch function, B op, C torch's trace hook, D torch's sync debug mode.
    """

    kind: str
    chain: tuple[str, ...]
    where: Location
    thread: str
    step: int
    phase: str
    begin_ns: int
    stall_ns: int
    waited_ns: int | None
    already_idle: bool | None
    copy: Copy | None
    layers: str
    own_ns: int = 0


class ThreadState:
    """What one thread is doing: running functions and ops (A and B layers), and a wait that has not ended."""

    __slots__ = ("calls", "last", "name", "open", "stack", "unconfirmed")

    def __init__(self) -> None:
        self.stack: list[tuple[str, object, Copy | None]] = []
        self.open: Wait | None = None
        self.last: Wait | None = None
        self.calls = 0
        self.unconfirmed = 0
        self.name = threading.current_thread().name


class _Local(threading.local):
    """Gives each thread a state of its own at its first look."""

    def __init__(self, states: list[ThreadState]) -> None:
        self.state = ThreadState()
        states.append(self.state)


class Recorder:
    """Collects the waits of every thread; the layers call it, the report reads it."""

    def __init__(self, *, deps: bool = False) -> None:
        self.waits: deque[Wait] = deque(maxlen=CAPACITY)
        self.dropped = 0
        self.step = 0
        self.boundaries_ns: list[int] = []
        self.phase = ""
        self.own_ns = 0
        self._deps = deps
        self.on_wait: Callable[[Wait], None] | None = None
        self._lock = threading.Lock()
        self._states: list[ThreadState] = []
        self.local = _Local(self._states)
        """`local.state` is this thread's state."""

    @property
    def calls(self) -> int:
        """Functions and ops seen by the A and B layers, all threads."""
        return sum(state.calls for state in self._states)

    def mark_step(self) -> None:
        """A step ended now."""
        self.close(self.local.state)
        self.step += 1
        self.boundaries_ns.append(time.perf_counter_ns())

    def on_sync(self, event: SyncEvent) -> None:
        """C layer: torch is about to wait on this thread."""
        state = self.local.state
        if state.open is not None:
            self._finish(state, state.open, event.begin_ns)
        state.unconfirmed += event.kind == "stream"
        begin_ns = time.perf_counter_ns()
        layers = "".join(sorted({layer for layer, _, _ in state.stack})) + "C"
        copy = state.stack[-1][2] if state.stack else None
        wait = Wait(
            event.kind, (), locate(sys._getframe(1), deps=self._deps), state.name, self.step, self.phase,
            event.begin_ns, event.waited_ns or 0, event.waited_ns, event.already_idle, copy, layers,
        )  # fmt: skip
        wait.chain = self._chain(state, wait.where, copy)
        own_ns = time.perf_counter_ns() - begin_ns
        wait.own_ns = own_ns
        self.own_ns += own_ns
        if state.stack:
            state.open = wait
        else:
            self._keep(state, wait)

    def on_pageable(self, copy: Copy, begin_ns: int, stall_ns: int, already_idle: bool | None) -> None:
        """B layer: a non-blocking copy of pageable memory kept the host, which torch does not report."""
        state = self.local.state
        start_ns = time.perf_counter_ns()
        where = locate(sys._getframe(1), deps=self._deps)
        chain = self._chain(state, where, copy)
        layers = "".join(sorted({layer for layer, _, _ in state.stack}))
        self._keep(
            state,
            Wait("pageable", chain, where, state.name, self.step, self.phase, begin_ns, stall_ns, None,
                 already_idle, copy, layers),
        )  # fmt: skip
        self.own_ns += time.perf_counter_ns() - start_ns

    def on_debug_warning(self) -> None:
        """D layer: torch's own detector warned of a wait that layer C saw, or of one that it could not see.

        Warnings come when the call ends; those of autograd's threads when the backward pass does, on its caller's.
        """
        state = self.local.state
        wait = state.open or state.last
        if state.unconfirmed and wait is not None:
            state.unconfirmed -= 1
            wait.layers += "" if "D" in wait.layers else "D"
            return
        for other in self._states:
            if other.unconfirmed:
                other.unconfirmed -= 1
                return
        where = locate(sys._getframe(1), deps=self._deps)
        chain = self._chain(state, where, None)
        now_ns = time.perf_counter_ns()
        self._keep(
            state, Wait("stream", chain, where, state.name, self.step, self.phase, now_ns, 0, None, None, None, "D")
        )

    def close(self, state: ThreadState) -> None:
        """The innermost running function of this thread begins or ends: a wait that was open ends here."""
        if state.open is not None:
            self._finish(state, state.open, time.perf_counter_ns())

    def _finish(self, state: ThreadState, wait: Wait, end_ns: int) -> None:
        state.open = None
        # A copy keeps the host until it is done; any other op goes on with work of its own after the wait.
        if wait.copy is not None or wait.waited_ns is None:
            wait.stall_ns = max(wait.stall_ns, end_ns - wait.begin_ns - wait.own_ns)
        self._keep(state, wait)

    def _keep(self, state: ThreadState, wait: Wait) -> None:
        state.last = wait
        with self._lock:
            if len(self.waits) == self.waits.maxlen:
                self.dropped += 1
            self.waits.append(wait)
        if self.on_wait is not None:
            self.on_wait(wait)

    @staticmethod
    def _chain(state: ThreadState, where: Location, copy: Copy | None) -> tuple[str, ...]:
        names = [*where.entries, *(func_name(func) for _, func, _ in state.stack)]
        if copy is not None:
            names.extend(copy.names())
        elif names and names[-1] in _INDEXING:
            # torch turned a list or a CPU tensor into an index on the GPU, below the ops that can be seen.
            names.extend(("aten::_to_copy", "copy:HtoD"))
        return tuple(dict.fromkeys(names))
