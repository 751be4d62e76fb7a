"""What does a rule answer: found (with an edit that fixes it), clean, or cannot tell?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gapless.analyses.places import Place
from gapless.replay.program import Program

Edit = Callable[[Program], Program]


@dataclass(frozen=True, slots=True)
class SiteCost:
    """One place of a fault: how often and how many nanoseconds per step, and one example in the trace."""

    place: Place
    count: float
    ns: float
    start_ns: int | None = None
    dur_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A fault. `edit` takes it out of the program at all sites, as far as one expects; `cautious` and `hopeful` under
    the assumptions that bound the gain (None: same as `edit`). `floor_ns` is the least step time the fix can reach for
    a reason outside the program, as (expected, cautious, hopeful), e.g. how fast loader workers deliver.

    `outside_ns` is time per step that the fix saves but the representative step does not hold (a pause in one step of
    many). `gain_note` says why no gain is computed where `edit` is None."""

    title: str
    sites: list[SiteCost]
    edit: Edit | None
    evidence: list[str]
    why_it_may_be_wrong: str
    fix: str
    cautious: Edit | None = None
    hopeful: Edit | None = None
    floor_ns: tuple[float, float, float] = (0.0, 0.0, 0.0)
    outside_ns: float = 0.0
    assumptions: list[str] = field(default_factory=list)
    gain_note: str = ""


@dataclass(frozen=True, slots=True)
class Clean:
    """The rule looked and found nothing."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The rule could not look: why, and how to record what it needs."""

    reason: str
    how: str


Outcome = Found | Clean | Unknown
