"""Which earlier work on another stream did a `StreamWaitEvent` make an activity wait for?

Traces name the event of a wait only with `enable_cuda_sync_events`, so it is inferred: where such a call lies between
an activity's launch and the launch before it on the same stream, the activity waited for the one, launched before it on
another stream, that ended last without ending after it began (`TOLERANCE_NS` is allowed for the clocks). Where none
ended in time the wait was for work that this file does not tie to it, and no edge is drawn.
"""

from __future__ import annotations

import numpy as np

from gapless.tables.intervals import Int

TOLERANCE_NS = 2_000


def event_waits(wait_times: Int, issued: Int, stream: Int, start: Int, end: Int) -> Int:
    """Per activity the index of the one it waited for, -1 for none.

    Activities are in order of launch: `issued` is the start of the launching call, `stream` an index of the stream,
    `start` and `end` recorded times, all ns. `wait_times`: starts of the `StreamWaitEvent` calls, in any order.
    """
    after = np.full(issued.size, -1, dtype=np.int64)
    if wait_times.size == 0 or np.unique(stream).size < 2:
        return after
    ordered = np.sort(wait_times)
    passed_before = np.searchsorted(ordered, issued)
    last_on: dict[int, int] = {}
    for i, own in enumerate(stream.tolist()):
        since = passed_before[last_on[own]] if own in last_on else 0
        if passed_before[i] > since:
            others = [j for other, j in last_on.items() if other != own and end[j] <= start[i] + TOLERANCE_NS]
            if others:
                after[i] = max(others, key=lambda j: int(end[j]))
        last_on[own] = i
    return after
