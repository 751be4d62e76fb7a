"""What may a user choose about a recording?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Literal

from gapless.model.errors import UsageError

STEP_SOURCES = ("auto", "optimizer", "dataloader", "forward", "time")

MIN_RUNAWAY_BYTES = 1 << 30

Stacks = Literal["window", "always", "never"]


@dataclass(frozen=True, slots=True)
class Options:
    """The switches of `gapless run` and `gapless.profile`.

    steps: used steps in the window; None: 5, and more where steps are shorter than 4 ms. One further step is recorded
    to close the window. skip: steps before anything is measured; None: until step times are steady.
    max_events, max_mb: budget of the timing window, in trace events and in MB (10**6 bytes) of JSON before compression.
    stacks: 'window' records them in a second short window, 'always' in the timing window, 'never' not at all.
    """

    folder: str = "gapless-traces"
    steps: int | None = None
    skip: int | None = None
    max_events: int = 1_000_000
    max_mb: float = 200.0
    stacks: Stacks = "window"
    memory: bool = False
    sync_events: bool = False
    step_on: str = "auto"
    report: bool = True

    @property
    def runaway_bytes(self) -> int:
        """Growth of the process' memory at which a window is cut: 1 GiB, or four times the budget of JSON."""
        return max(MIN_RUNAWAY_BYTES, int(4e6 * self.max_mb))

    def to_json(self) -> str:
        """One line of JSON, as `from_json` reads it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Options:
        """The options `to_json` wrote."""
        data = json.loads(text)
        return checked(cls(**{entry.name: data[entry.name] for entry in fields(cls) if entry.name in data}))


def checked(options: Options) -> Options:
    """The options themselves, or a UsageError that says which one cannot be used."""
    lowest: Mapping[str, tuple[float | None, float]] = {
        "--steps": (options.steps, 1),
        "--skip": (options.skip, 0),
        "--max-events": (options.max_events, 1),
        "--max-mb": (options.max_mb, 0.001),
    }
    for flag, (value, low) in lowest.items():
        if value is not None and value < low:
            raise UsageError(f"{flag} {value:g}: nothing could be recorded; give {low:g} or more")
    known = options.step_on in STEP_SOURCES or ":" in options.step_on
    if not known or options.step_on.startswith(":") or options.step_on.endswith(":"):
        raise UsageError(
            f"--step-on {options.step_on}: not a step source; give one of {', '.join(STEP_SOURCES)} "
            "or module.path:function"
        )
    return options
