"""Which waits are allowed, how many a step may have, and what happens when there are more?"""

from __future__ import annotations

import fnmatch
import threading
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Literal

from gapless.model.errors import GateBreachedError, UsageError
from gapless.runtime.syncs.fixes import fix_of, is_explicit
from gapless.runtime.syncs.frames import Site
from gapless.runtime.syncs.record import Wait

Action = Literal["report", "warn", "raise"]

SWITCH = "GAPLESS_SYNCS"
"""Environment variable: off, report, warn or raise, for every watch of the process whatever its code says."""


def switched(on: Action, environ: Mapping[str, str]) -> Action | Literal["off"]:
    """What the environment makes of a watch that its code sets to `on`."""
    value = environ.get(SWITCH, "").strip().lower()
    if value not in ("", "off", "report", "warn", "raise"):
        raise UsageError(f"{SWITCH}={value!r} is not off, report, warn or raise: set one of them, or unset it")
    return value or on  # type: ignore[return-value]


class HiddenSyncError(GateBreachedError):
    """A step waited for the GPU more often than its budget allows."""


class Gate:
    """Counts the hidden waits of each step against a budget.

    allow: `train.py:88`, `train.py`, `package.module.*` (module and function), `kind:stream`, `fix:readback`.
    budget: hidden waits a step may have; without one, `raise` and `warn` mean 0 and `report` means no limit.
    """

    def __init__(self, allow: Iterable[str], budget: int | None, on: Action, warmup: int) -> None:
        if on not in ("report", "warn", "raise"):
            raise UsageError(f"on={on!r} is not report, warn or raise: it says what to do with waits over the budget")
        if budget is not None and budget < 0:
            raise UsageError(f"budget={budget} is negative: give the number of hidden waits a step may have")
        self.allow = tuple(allow)
        self.on = on
        self.budget = budget if budget is not None or on == "report" else 0
        self.breach: Wait | None = None
        self.over: dict[int, int] = {}
        self.warmup = warmup
        self._counts: dict[int, int] = {}
        self._lock = threading.Lock()

    def allowed(self, wait: Wait) -> str:
        """The entry of the allow-list that covers this wait, '' if none does."""
        for entry in self.allow:
            if _matches(entry, wait):
                return entry
        return ""

    def on_wait(self, wait: Wait) -> None:
        """Counts one wait; the layers raise at the next chance if it was one too many."""
        if self.budget is None or wait.step < self.warmup or is_explicit(wait) or self.allowed(wait):
            return
        with self._lock:
            count = self._counts[wait.step] = self._counts.get(wait.step, 0) + 1
            if count > self.budget:
                self.over[wait.step] = count
                if self.on == "raise" and self.breach is None:
                    self.breach = wait

    def raise_breach(self) -> None:
        """Raises for the wait that was one too many, once."""
        wait, self.breach = self.breach, None
        if wait is not None:
            raise HiddenSyncError(self.describe(wait))

    def describe(self, wait: Wait) -> str:
        """One line: which wait, where, why, what to do."""
        fix = fix_of(wait.chain, wait.kind)
        site = wait.where.site
        return (
            f"{site}: `{site.expression()}` waited {wait.stall_ns / 1e6:.2f} ms for the GPU in step {wait.step}, over "
            f"the budget of {self.budget} hidden waits per step: {fix.reason} Allow it with allow={{'{site}'}}, or: "
            f"{fix.rewrite.splitlines()[-1]}"
        )


def _matches(entry: str, wait: Wait) -> bool:
    if entry.startswith("kind:"):
        return wait.kind == entry[5:]
    if entry.startswith("fix:"):
        return fix_of(wait.chain, wait.kind).key == entry[4:]
    return any(site is not None and _covers(entry, site) for site in (wait.where.site, wait.where.via))


def _covers(entry: str, site: Site) -> bool:
    path, _, line = entry.rpartition(":")
    if path and line.isdigit():
        return site.line == int(line) and _ends_with(site.file, path)
    if entry.endswith(".py"):
        return _ends_with(site.file, entry)
    return fnmatch.fnmatchcase(f"{site.module}.{site.function}", entry)


def _ends_with(file: str, path: str) -> bool:
    wanted = PurePath(path).parts
    return PurePath(file).parts[-len(wanted) :] == wanted
