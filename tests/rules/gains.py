"""How much does a finding's edit bring, by replay?"""

from __future__ import annotations

from gapless.replay.engine import run
from gapless.rules.context import Context
from gapless.rules.outcome import Edit, Found, Outcome


def found(outcome: Outcome) -> Found:
    """The finding; fails the test where there is none."""
    assert isinstance(outcome, Found), outcome
    return outcome


def gain(c: Context, edit: Edit | None) -> float:
    """Step time before over after."""
    assert edit is not None
    machine = c.p.machine
    return run(c.program, machine).period_ns / run(edit(c.program), machine).period_ns


def gains(c: Context, one: Found) -> tuple[float, float, float]:
    """Low, expected, high: checks that they are in order."""
    low, middle, high = (gain(c, e or one.edit) for e in (one.cautious, one.edit, one.hopeful))
    assert low <= middle * 1.001
    assert middle <= high * 1.001
    return low, middle, high
