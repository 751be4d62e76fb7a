"""How is a window stopped, or a time slice ended, in the middle of a step that takes too long or records too much?

A daemon thread looks at the clock and at the process' memory; what must happen then runs on the main thread, between
two bytecodes, the way a signal handler does, but without touching the script's signals.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

_STATM = Path("/proc/self/statm")
_CALLBACK = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


def resident_bytes() -> int:
    """The process' resident memory; 0 where the system does not say."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def call_on_main_thread(call: Callable[[], None]) -> bool:
    """Ask the interpreter to run `call` on the main thread soon; False where it cannot take the request now.

    `call` must not raise: there is no frame to raise into.
    """
    _waiting.append(call)
    if ctypes.pythonapi.Py_AddPendingCall(_RUN_NEXT, None) != 0:
        _waiting.pop()
        return False
    return True


def _run_next(_: int | None) -> int:
    if _waiting:
        _waiting.popleft()()
    return 0


_waiting: deque[Callable[[], None]] = deque()
# The interpreter holds a bare pointer to it, also while it returns: it must live as long as the process.
_RUN_NEXT = _CALLBACK(_run_next)


class Guard:
    """Calls `act(reason)` on the main thread once: when memory grew by `max_growth_bytes`, or `max_s` have passed."""

    def __init__(
        self,
        act: Callable[[str], None],
        *,
        max_growth_bytes: int | None = None,
        max_s: float | None = None,
        interval_s: float = 0.1,
    ) -> None:
        self._act = act
        self._limit = max_growth_bytes
        self._max_s = max_s
        self._interval_s = min(interval_s, max_s) if max_s is not None else interval_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="gapless-guard", daemon=True)

    def start(self) -> None:
        """Begin to watch from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Watch no longer; an action that was already asked for does not come any more."""
        self._stop.set()

    def _watch(self) -> None:
        base, began = resident_bytes(), time.monotonic()
        while not self._stop.wait(self._interval_s):
            reason = self._reason(base, time.monotonic() - began)
            if reason is not None and call_on_main_thread(partial(self._run, reason)):
                return

    def _reason(self, base: int, elapsed_s: float) -> str | None:
        if self._max_s is not None and elapsed_s >= self._max_s:
            return "time"
        if self._limit is not None and resident_bytes() - base > self._limit:
            return "memory"
        return None

    def _run(self, reason: str) -> None:
        if not self._stop.is_set():
            self._stop.set()
            self._act(reason)
