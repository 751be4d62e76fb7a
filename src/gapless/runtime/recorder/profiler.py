"""How is one torch.profiler session driven, and what becomes of it when it cannot start?"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, record_function

from gapless.runtime.recorder import device
from gapless.runtime.recorder.owner import ProfilerOwner

_GPU_ACTIVITY = {"cuda": "CUDA", "xpu": "XPU", "mtia": "MTIA", "hpu": "HPU"}


def activities(kind: str | None) -> list[ProfilerActivity]:
    """CPU, and the accelerator's activity where this process uses one and torch can record it.

    GPU activity is never asked for before the script has initialised its GPU: the profiler would initialise it.
    """
    wanted = None if kind is None else _GPU_ACTIVITY.get(kind, "PrivateUse1")
    profiler: Any = torch.profiler
    supported = {str(a).rsplit(".", 1)[-1]: a for a in profiler.supported_activities()}
    chosen = [ProfilerActivity.CPU]
    if wanted in supported and kind != "mps":
        chosen.append(supported[wanted])
    return chosen


class Session:
    """One recording: `prepare` (GPU tracing on, nothing kept yet), `begin`, `mark` at each step, `end`, `export`."""

    def __init__(
        self, owner: ProfilerOwner, *, stacks: bool, memory: bool, sync_events: bool, markers: bool = True
    ) -> None:
        config = None
        if sync_events:
            config = torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)
        self.kind = device.in_use()
        self._owner = owner
        self._markers = markers
        self._marker: Any = None
        self._state = "new"
        self._profile = torch.profiler.profiler._KinetoProfile(
            activities=activities(self.kind),
            record_shapes=True,
            profile_memory=memory,
            with_stack=stacks,
            experimental_config=config,
        )

    def prepare(self) -> None:
        """Turn GPU tracing on; what runs until `begin` is discarded."""
        with self._owner.ours(), quiet_kineto():
            self._profile.prepare_trace()
        self._state = "prepared"

    def begin(self, step: int) -> None:
        """Start to record; the step that begins now is number `step`."""
        with self._owner.ours():
            self._profile.start_trace()
        self._state = "recording"
        self._open(step)

    def mark(self, step: int) -> None:
        """The recorded step has ended and number `step` begins."""
        self._close()
        self._open(step)

    def end(self) -> None:
        """Stop recording. A session that was only prepared is started first: torch cannot stop it otherwise."""
        self._close()
        if self._state == "prepared":
            with self._owner.ours():
                self._profile.start_trace()
            self._state = "recording"
        if self._state == "recording":
            self._state = "ended"
            with self._owner.ours():
                self._profile.stop_trace()

    def export(self, folder: Path) -> Path:
        """Write the profiler's JSON to a new temporary file in `folder` and return its path."""
        handle, name = tempfile.mkstemp(dir=folder, prefix=".gapless-", suffix=".json")
        os.close(handle)
        path = Path(name)
        try:
            self._profile.export_chrome_trace(name)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return path

    def _open(self, step: int) -> None:
        if self._markers:
            self._marker = record_function(f"ProfilerStep#{step}")
            self._marker.__enter__()

    def _close(self) -> None:
        if self._marker is not None:
            marker, self._marker = self._marker, None
            marker.__exit__(None, None, None)


@contextmanager
def quiet_kineto() -> Iterator[None]:
    """Keep the profiler's own log lines off the job's standard error, unless the user set its log level.

    Kineto reads the level once, when the first profiler of the process starts; the variable is gone again after that.
    """
    if "KINETO_LOG_LEVEL" in os.environ:
        yield
        return
    os.environ["KINETO_LOG_LEVEL"] = "99"
    try:
        yield
    finally:
        os.environ.pop("KINETO_LOG_LEVEL", None)
