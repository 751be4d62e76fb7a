"""Which profiler session is open, and how does it end: kept as a file, or dropped?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gapless.runtime.recorder.surroundings import SessionLike, Surroundings


@dataclass(slots=True)
class Tape:
    """At most one session at a time. An interrupted `end` can be repeated: the session stays until it is exported."""

    around: Surroundings
    _session: SessionLike | None = None

    def prepare(self, *, stacks: bool) -> None:
        """A new session; the GPU's tracing is on from here."""
        self._session = self.around.session(stacks=stacks)
        self._session.prepare()

    def begin(self, step: int, max_s: float | None) -> None:
        """Drain the device and record from here on; `max_s` ends it inside a step."""
        if self._session is not None:
            self.around.window_opens(max_s)
            self.around.sync()
            self._session.begin(step)

    def mark(self, step: int) -> None:
        """The next recorded step begins."""
        if self._session is not None:
            self._session.mark(step)

    def end(self) -> Path | None:
        """End the open session and export it; None where none is open."""
        if self._session is None:
            return None
        try:
            self._session.end()
        finally:
            self.around.window_closes()
        raw = self._session.export(self.around.work_folder())
        self._session = None
        return raw

    def drop(self) -> None:
        """End the open session and forget it."""
        session, self._session = self._session, None
        if session is not None:
            try:
                session.end()
            finally:
                self.around.window_closes()
