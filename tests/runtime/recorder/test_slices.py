"""Slices of time: each takes its time also where the main thread is late."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="recording needs torch")

from gapless.runtime.recorder import steps


def test_a_late_main_thread_is_not_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Callable[[], None]] = []
    came = threading.Semaphore(0)

    def queue(call: Callable[[], None]) -> bool:
        asked.append(call)
        came.release()
        return True

    monkeypatch.setattr(steps, "SLICE_S", 0.01)
    monkeypatch.setattr(steps, "call_on_main_thread", queue)
    beats: list[int] = []
    finder = steps.StepFinder("time", lambda: beats.append(1), lambda *_: None)
    finder.install()
    try:
        for number in range(1, 4):
            assert came.acquire(timeout=30)
            assert not came.acquire(timeout=0.2), "asked again while the first request still waits"
            assert len(asked) == number
            asked[-1]()
            assert len(beats) == number
    finally:
        finder.remove()
