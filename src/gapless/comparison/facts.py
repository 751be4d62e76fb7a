"""What do the single questions answer, gathered for those who put a name to the change?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from gapless.analyses.host_states import AUTOGRAD, MAIN
from gapless.comparison.align import Alignment
from gapless.comparison.fusion import Fusion
from gapless.comparison.side import Side, recorded
from gapless.comparison.work import Work
from gapless.model.diff import Compile, CountRow, Kernels, Speedup, Structure, SyncSiteRow


@dataclass
class Facts:
    """Both sides and what was found about them; `old`, `new` are the pieces of GPU work of the two base steps."""

    before: Side
    after: Side
    old: list[Work]
    new: list[Work]
    speedup: Speedup
    counts: list[CountRow]
    sync_sites: list[SyncSiteRow]
    kernels: Kernels
    structure: Structure
    fusion: Fusion
    pairs: Alignment
    compile: Compile

    @cached_property
    def by_name(self) -> dict[str, tuple[float | None, float | None]]:
        """Counts by what they count."""
        return {row.what: (row.before, row.after) for row in self.counts}

    def pair(self, what: str) -> tuple[float, float]:
        """A count on both sides, zero where unknown."""
        old, new = self.by_name.get(what, (None, None))
        return old or 0.0, new or 0.0

    @cached_property
    def step_ms(self) -> float:
        """The longer of the two recorded steps."""
        old, new = recorded(self.before, self.after)
        return max(old or 0.0, new or 0.0)

    @cached_property
    def host(self) -> tuple[dict[str, float], dict[str, float]]:
        """Host milliseconds per step by what the stepping threads did, on both sides."""
        return _host(self.before), _host(self.after)


def _host(side: Side) -> dict[str, float]:
    found: dict[str, float] = {}
    for account in side.report.host:
        if account.role in (MAIN, AUTOGRAD):
            for part in account.parts:
                if part.state in ("work", "launch"):
                    found[part.detail] = found.get(part.detail, 0.0) + part.ns / side.count / 1e6
    return found
