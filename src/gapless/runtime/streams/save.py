"""How does a checkpoint reach the disk while training goes on? `save_async(tensors, path)`."""

from __future__ import annotations

import contextlib
import os
import threading
import uuid
from pathlib import Path

import torch

from gapless.model.errors import UsageError
from gapless.runtime.streams.to_host import HostCopy, to_host


class Saving:
    """A file being written. At every moment it is complete or absent; what had its name before stays until then."""

    def __init__(self, copy: HostCopy[object], path: Path, before: Saving | None) -> None:
        self.path = path
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(copy, before), name=f"save {path.name}")
        self._thread.start()

    def done(self) -> bool:
        """Whether it has ended, well or not; never waits."""
        return not self._thread.is_alive()

    def result(self) -> Path:
        """The path, once the file is complete. Waits; raises what went wrong."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self.path

    def _run(self, copy: HostCopy[object], before: Saving | None) -> None:
        try:
            value = copy.result()
            if before is not None:
                before._thread.join()
            _write(value, self.path)
        except BaseException as error:  # a thread has nobody to raise to: result() raises it
            self._error = error


_latest: dict[Path, Saving] = {}
_lock = threading.Lock()


def save_async(value: object, path: str | os.PathLike[str]) -> Saving:
    """Writes tensors, or any structure of them such as a state dict, to `path` with torch.save, in the background.

    The values are those of the moment of the call; later updates do not show in the file. A thread writes a temporary
    file beside the target, which takes the target's name when it is complete; several savings to one path finish in
    order. The interpreter waits for the thread at its end. Call `result()` before relying on the file.
    """
    target = Path(path).absolute()
    if not target.parent.is_dir():
        raise UsageError(f"{target.parent} is no folder, so {target.name} cannot be written there: create it first")
    copy = to_host(value)
    with _lock:
        for other in [other for other, saving in _latest.items() if saving.done()]:
            del _latest[other]
        saving = _latest[target] = Saving(copy, target, _latest.get(target))
    return saving


def _write(value: object, target: Path) -> None:
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with temporary.open("xb") as file:
            torch.save(value, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
