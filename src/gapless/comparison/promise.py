"""Was the promise kept: what the before trace's finding predicted for this change, and what came of it?

The finding is the best one whose kind the recognised change fixes. The promise counts as kept where the realised
speed-up, with the noise of the comparison, meets the bounds that the finding gave.
"""

from __future__ import annotations

from collections.abc import Sequence

from gapless.comparison import words
from gapless.model.diff import Change, Predicted, Speedup
from gapless.model.report import Finding

_INSTEAD: dict[str, tuple[str, ...]] = {
    "unfused-pointwise": ("launch-bound", "unfused-attention"),
    "launch-bound": ("unfused-pointwise",),
    "graph-break": ("unfused-pointwise", "launch-bound"),
    "gc-pause": ("host-stall",),
    "host-stall": ("gc-pause",),
    "hidden-sync": ("readback", "small-upload", "pageable-copy"),
    "dtype-conversion": ("fp32-matmul",),
}
"""Kinds under which a finding may predict a change that has another kind's signature, in order."""


def promise(findings: Sequence[Finding], changes: Sequence[Change], speedup: Speedup) -> Predicted | None:
    """Predicted and realised side by side; None where no finding predicted what was changed."""
    finding = _predicting(findings, [c for c in changes if c.ms >= 0 and c.kind])
    if finding is None or finding.gain.speedup is None:
        return None
    realised = speedup.value if speedup.value is not None else speedup.recorded
    low, high = finding.gain.low or finding.gain.speedup, finding.gain.high or finding.gain.speedup
    kept = None
    if realised is not None and speedup.verdict != "undecided":
        margin = 1 + (speedup.noise or 0.0)
        kept = low / margin <= realised <= high * margin
    return Predicted(
        finding.gain.speedup, finding.kind, realised, finding.code, low, high, kept,
        _sentence(finding, low, high, realised, kept),
    )  # fmt: skip


def _predicting(findings: Sequence[Finding], changes: Sequence[Change]) -> Finding | None:
    known = [f for f in findings if f.gain.speedup is not None]
    for change in changes:
        for kinds in ((change.kind,), _INSTEAD.get(change.kind, ())):
            for kind in kinds:
                there = [f for f in known if f.kind == kind]
                if there:
                    return max(there, key=lambda f: f.gain.speedup or 0.0)
    return None


def _sentence(finding: Finding, low: float, high: float, realised: float | None, kept: bool | None) -> str:
    promised = f"the {finding.code} finding promised {words.ratio(finding.gain.speedup or 1.0)} ({words.ratio(low)} to {words.ratio(high)})"
    if realised is None:
        return f"{promised}; what came of it cannot be told"
    came = f"{promised}; {words.ratio(realised)} came of it"
    if kept is None:
        return f"{came}, as far as the recordings tell"
    return f"{came}: {'kept' if kept else 'more than promised' if realised > high else 'less than promised'}"
