"""What does the plan of a recording need of the profiler and of the process round it, and what does it tell of itself?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class SessionLike(Protocol):
    """What the window needs of a profiler session."""

    def prepare(self) -> None:
        """Turn GPU tracing on."""

    def begin(self, step: int) -> None:
        """Record from here: step number `step`."""

    def mark(self, step: int) -> None:
        """The next step begins."""

    def end(self) -> None:
        """Stop."""

    def export(self, folder: Path) -> Path:
        """Write the JSON to a new file."""


class Surroundings(Protocol):
    """What the window asks of the process round it."""

    def sync(self) -> None:
        """Drain the device."""

    def session(self, *, stacks: bool) -> SessionLike:
        """A new session."""

    def tracer_lasts(self) -> bool:
        """Whether a recording slows down what runs after it, until the process ends."""

    def profiler_is_free(self) -> bool:
        """Whether the script runs no profiler."""

    def work_folder(self) -> Path:
        """Where raw exports go."""

    def trial_done(self, raw: Path) -> tuple[int, int]:
        """Events and bytes of the trial step's export."""

    def window_opens(self, max_s: float | None) -> None:
        """Recording begins; `max_s` ends it inside a step."""

    def window_closes(self) -> None:
        """Recording has ended."""

    def timing_done(self, raw: Path) -> None:
        """The timing window's export is there."""

    def stack_done(self, raw: Path) -> None:
        """The second window's export is there."""

    def finished(self) -> None:
        """Nothing more will be asked."""


@dataclass(slots=True)
class Facts:
    """`window` of the metadata: what was done to get this window."""

    cold_steps: int = 0
    steady: bool | None = None
    first_step: int | None = None
    recorded_steps: int = 0
    planned_steps: int | None = None
    trial_events: int | None = None
    trial_bytes: int | None = None
    cut: str | None = None
    stopped_by_budget: bool = False

    def to_json(self) -> dict[str, object]:
        """The fields by name."""
        return {name: getattr(self, name) for name in self.__slots__}
