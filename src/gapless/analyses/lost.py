"""Where is GPU work known to be missing from the file?

Three signs. *Early*: launches whose work could have run before the first recorded activity of the window have none
(kernels stamped before the window are dropped). *Late*: launches near the end have none although later calls ran (the
window closed, or a buffer limit was hit: then GPU records stop while launches go on). *Scattered*: kernel launches in
the middle without a record, outside stream capture. Zero-size copies and memsets legitimately have none, so only kernel
and graph launches count. A stretch is lost when at least `RUN` launches in a row have no record.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gapless.analyses.call_names import CallClass, base_name
from gapless.analyses.links import Links
from gapless.analyses.steps import Steps
from gapless.ingest.raw import RawTrace
from gapless.tables.coding import matches
from gapless.tables.intervals import Int, Set, as_ns, contains, merge

RUN = 3


@dataclass(frozen=True, slots=True)
class LostRecords:
    """`without_record`: calls that launched kernels or graphs of which nothing was recorded, captures excluded.
    `stretches`: host-time intervals of runs of such launches. `launches`: how many kernel and graph launches there are.
    `captured`: launches during stream capture, which run nothing."""

    without_record: Int
    stretches: Set
    launches: int
    captured: int

    def intervals(self, device: int) -> Set:
        """Stretches of a device's time whose records are known to be missing (the same for every device)."""
        del device
        return self.stretches


def find_lost(raw: RawTrace, links: Links) -> LostRecords:
    """Find launches without records and the stretches they make."""
    start = as_ns(raw.calls["start_ns"].to_numpy())
    end = start + as_ns(raw.calls["dur_ns"].to_numpy())
    kernel = np.isin(links.call_class, (int(CallClass.LAUNCH), int(CallClass.GRAPH_LAUNCH)))
    capture = _captures(raw, start, end)
    inside = contains(capture, start)
    launches = np.flatnonzero(kernel & ~inside)
    empty = links.first_activity[launches] < 0
    none = np.zeros(0, dtype=np.int64)
    captured = int((kernel & inside).sum())
    if raw.activities.height == 0 or launches.size == 0:
        return LostRecords(launches[empty], (none, none), int(launches.size), captured)
    order = launches[np.argsort(start[launches], kind="stable")]
    missing = links.first_activity[order] < 0
    begins, finishes = [], []
    edges = np.flatnonzero(np.diff(np.concatenate([[0], missing.astype(np.int64), [0]])))
    for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if last - first >= RUN:
            begins.append(start[order[first]])
            # Until the next launch that was recorded, the GPU may have worked unseen.
            finishes.append(start[order[last]] if last < order.size else end[order[last - 1]])
    return LostRecords(launches[empty], merge(as_ns(begins), as_ns(finishes)), int(launches.size), captured)


def leave_out_lossy(steps: Steps, lost: LostRecords, raw: RawTrace) -> Steps:
    """The steps, those that launched part of a lost stretch not used: their counts and times would be too small.

    As long as one whole step remains; where all lost records, all stay used.
    """
    start = as_ns(raw.calls["start_ns"].to_numpy())
    launches = lost.without_record[contains(lost.stretches, start[lost.without_record])]
    of_step = steps.step_of_call[launches]
    missing = np.bincount(of_step[of_step >= 0], minlength=steps.count)
    used = steps.used & (missing == 0)
    if steps.thread is None or not used.any() or (used == steps.used).all():
        return steps
    why = [
        reason or (f"{count} of its launches have no GPU record" if count else "")
        for reason, count in zip(steps.why, missing.tolist(), strict=True)
    ]
    return replace(steps, used=used, why=why)


def _captures(raw: RawTrace, start: Int, end: Int) -> Set:
    """Host-time intervals between the beginning and the end of stream capture."""
    begins = np.flatnonzero(matches(raw.calls["name"], lambda n: base_name(n).endswith("StreamBeginCapture")))
    ends = np.flatnonzero(matches(raw.calls["name"], lambda n: base_name(n).endswith("StreamEndCapture")))
    low, high = np.sort(start[begins]), np.sort(end[ends])
    if low.size == 0:
        return low, low
    spot = np.searchsorted(high, low, side="left")
    until = np.where(
        spot < high.size, high[np.minimum(spot, max(high.size - 1, 0))] if high.size else end.max(), end.max()
    )
    return merge(low, until)
