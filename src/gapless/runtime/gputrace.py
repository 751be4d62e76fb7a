"""Which synchronisations does torch itself ask of the GPU, on any thread, just before they happen?

torch calls the hooks of `torch.cuda._gpu_trace` and never forgets one. So one dispatcher is installed, once a process;
it returns at once while nobody listens, and torch's hooks are off while nobody holds them (see `gpuswitch`).

The dispatcher waits for the same stream, event or device itself, with a clock round it: the host would block there
anyway, and that is the only way to know how long, on threads where no op can be bracketed too. torch's own wait then
finds nothing left to wait for.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast

import torch

from gapless.runtime.gpudriver import Driver, SyncKind, load_driver
from gapless.runtime.gpuswitch import TraceSwitch, hooks_flag


@dataclass(frozen=True, slots=True)
class SyncEvent:
    """One synchronisation: what is waited for, when it began, and how long earlier GPU work kept the host.

    already_idle: the GPU had finished before the host asked; None if unknown. waited_ns: None if it was not measured.
    """

    kind: SyncKind
    handle: int
    begin_ns: int
    waited_ns: int | None
    already_idle: bool | None


Listener = Callable[[SyncEvent], None]


class Dispatcher:
    """Hands every synchronisation to the listeners of the moment; does nothing while there are none."""

    def __init__(self, driver: Driver | None, switch: TraceSwitch | None = None) -> None:
        self._driver = driver
        self._switch = switch
        self._listeners: tuple[Listener, ...] = ()
        self._lock = threading.Lock()
        self._local = threading.local()

    @property
    def switchable(self) -> bool:
        """Whether torch's hooks are off between `hold` and `release`; otherwise they stay on for good."""
        return self._switch is not None

    def hold(self) -> None:
        """torch's hooks are on until `release`. Hold them shortly: no user code should raise meanwhile."""
        if self._switch is not None:
            self._switch.hold()

    def release(self) -> None:
        """Ends one `hold`."""
        if self._switch is not None:
            self._switch.release()

    def subscribe(self, listener: Listener) -> None:
        """From now on `listener` is called on the thread that is about to wait."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

    def unsubscribe(self, listener: Listener) -> None:
        """Ends a subscription; no error if there was none."""
        with self._lock:
            self._listeners = tuple(other for other in self._listeners if other != listener)

    def fire(self, kind: SyncKind, handle: int = 0) -> None:
        """Called by torch before it waits; waits first and measures, unless this call comes from a listener."""
        listeners = self._listeners
        if not listeners or getattr(self._local, "busy", False):
            return
        self._local.busy = True
        try:
            event = self._measure(kind, handle)
            for listener in listeners:
                listener(event)
        finally:
            self._local.busy = False

    def _measure(self, kind: SyncKind, handle: int) -> SyncEvent:
        begin_ns = time.perf_counter_ns()
        if self._driver is None:
            return SyncEvent(kind, handle, begin_ns, None, None)
        idle = self._driver.done(kind, handle)
        if idle:
            return SyncEvent(kind, handle, begin_ns, 0, True)
        if idle is None and kind != "device":
            return SyncEvent(kind, handle, begin_ns, None, None)
        waited = self._driver.wait(kind, handle)
        return SyncEvent(kind, handle, begin_ns, time.perf_counter_ns() - begin_ns if waited else None, idle)


_install_lock = threading.Lock()
_installed: Dispatcher | None = None


def dispatcher() -> Dispatcher | None:
    """The process's dispatcher, installed at the first call; None where this torch has no trace hooks for a GPU."""
    global _installed
    with _install_lock:
        if _installed is None:
            hooks = _hooks()
            if hooks is None:
                return None
            flag = hooks_flag()
            # Whoever turned the hooks on before (torch's own sanitizer) needs them on all the time.
            mine = flag is not None and not flag.value
            made = Dispatcher(load_driver(), TraceSwitch(flag) if flag is not None and mine else None)
            try:
                hooks.register_callback_for_device_synchronization(lambda: made.fire("device"))
                hooks.register_callback_for_stream_synchronization(lambda handle: made.fire("stream", handle))
                hooks.register_callback_for_event_synchronization(lambda handle: made.fire("event", handle))
                torch._C._activate_gpu_trace()
            except AttributeError:
                return None
            if flag is not None and mine:
                flag.value = False
            _installed = made
        return _installed


class _Hooks(Protocol):
    def register_callback_for_device_synchronization(self, cb: Callable[[], None]) -> None: ...
    def register_callback_for_stream_synchronization(self, cb: Callable[[int], None]) -> None: ...
    def register_callback_for_event_synchronization(self, cb: Callable[[int], None]) -> None: ...


def _hooks() -> _Hooks | None:
    for backend in ("cuda", "xpu"):
        module = getattr(torch, backend, None)
        if module is not None and module.is_available():
            try:
                return cast("_Hooks", importlib.import_module(f"torch.{backend}._gpu_trace"))
            except ImportError:
                return None
    return None
