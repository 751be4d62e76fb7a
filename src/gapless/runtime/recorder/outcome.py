"""Which files did a recording leave, and how is each written and completed?"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gapless.runtime.recorder import metadata, names


@dataclass(slots=True)
class Outcome:
    """Writes the windows of one process and keeps what later facts must be added to."""

    folder: Path
    base: str
    rank: int
    record: Callable[[str], dict[str, object]]
    """The metadata for the role 'timing' or 'stack', as known at the moment of the call."""
    timing: metadata.Written | None = None
    stack: metadata.Written | None = None
    _spare: Path | None = field(default=None)
    _early_stack: Path | None = field(default=None)

    def work_folder(self) -> Path:
        """Where raw exports go: the output folder itself, so that nothing fills another disk."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder

    def keep(self, raw: Path) -> None:
        """Keep the raw export of the trial step, for a script that ends before its window."""
        self.drop_spare()
        self._spare = raw

    def write_timing(self, raw: Path) -> metadata.Written:
        """Write the timing window; the trial step is not needed any more."""
        self.drop_spare()
        target = names.reserve(self.folder, self.base, self.rank, time.time())
        self.timing = self._written(raw, target, "timing")
        stack, self._early_stack = self._early_stack, None
        if stack is not None:
            self.stack = self._written(stack, names.stack_name(target), "stack")
        return self.timing

    def keep_stack(self, raw: Path) -> None:
        """Keep the raw export of the window with stacks until the timing window, which names it, is written."""
        self.drop_stack()
        self._early_stack = raw

    def promote_spare(self) -> bool:
        """Make the trial step the timing window, where nothing better was recorded; False where there is none."""
        if self.timing is not None or self._spare is None:
            return False
        raw, self._spare = self._spare, None
        self.write_timing(raw)
        return True

    def complete(self) -> None:
        """Write the final metadata into every file."""
        self.drop_spare()
        self.drop_stack()
        for role, written in (("timing", self.timing), ("stack", self.stack)):
            if written is not None:
                metadata.amend(written, self.record(role))

    def paths(self) -> list[Path]:
        """The files written, timing window first."""
        return [w.path for w in (self.timing, self.stack) if w is not None]

    def drop_spare(self) -> None:
        """Delete the trial step's raw export."""
        if self._spare is not None:
            self._spare.unlink(missing_ok=True)
            self._spare = None

    def drop_stack(self) -> None:
        """Delete the raw export of the window with stacks."""
        if self._early_stack is not None:
            self._early_stack.unlink(missing_ok=True)
            self._early_stack = None

    def _written(self, raw: Path, target: Path, role: str) -> metadata.Written:
        try:
            return metadata.write(raw, target, self.record(role))
        except BaseException:
            target.unlink(missing_ok=True)
            target.with_name(target.name + ".part").unlink(missing_ok=True)
            raise
        finally:
            raw.unlink(missing_ok=True)
