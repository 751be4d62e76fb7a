"""Can the recorded GPU work have run in the recorded order at all?

Two orders cannot have happened. Work that starts before its launch begins, by more than the clocks of host and GPU are
seen to disagree. And work on a stream that starts before other work of it that the same thread launched earlier: a
stream runs in order of launch, and both times come from the GPU's clock.
Correlation ids that were mixed up, files merged by hand and edited times show like this; a replay would put such work
where it was not. Waits for events need no check: edges only lead to work launched earlier (`event_waits`), so no
program can wait in a circle.
"""

from __future__ import annotations

import numpy as np

from gapless.analyses.call_names import CallClass
from gapless.analyses.study import Study
from gapless.tables.intervals import Int, as_ns

CLOCKS_NS = 50_000
"""Host and GPU clocks in one file have been seen to differ by some microseconds; none of 180 handed traces shows GPU work
before its launch at all."""
STREAM_NS = 2_000
"""Slack inside one stream, for times rounded to whole microseconds."""


def impossible_order(s: Study) -> str:
    """Why the recorded order cannot have happened, in one phrase; '' if it can."""
    calls = np.flatnonzero(s.links.first_activity >= 0)
    begin = as_ns(s.raw.activities["start_ns"].to_numpy())[s.links.first_activity[calls]]
    start = as_ns(s.raw.calls["start_ns"].to_numpy())[calls]
    early = int((begin < start - CLOCKS_NS).sum())
    if early:
        worst = int((start - begin).max())
        what = f"starts before its launch begins, by up to {worst / 1e3:.1f} us"
        return f"the recorded order is impossible: GPU work of {early} of {calls.size} launches {what}"
    overtaken = _overtaken(s, calls, start, begin)
    if overtaken:
        what = "starts before the work launched before it on the same stream"
        return f"the recorded order is impossible: GPU work of {overtaken} of {calls.size} launches {what}"
    return ""


def _overtaken(s: Study, calls: Int, start: Int, begin: Int) -> int:
    """Launches whose work begins before that of the launch before, by the same thread on the same stream.

    Graphs are left out: their nodes may run beside each other under one stream's number.
    """
    first = s.links.first_activity[calls]
    lane = np.stack(
        [
            as_ns(s.raw.calls["thread"].to_numpy())[calls],
            as_ns(s.raw.activities["device"].to_numpy())[first],
            as_ns(s.raw.activities["stream"].to_numpy())[first],
        ]
    )
    alone = np.flatnonzero(s.links.call_class[calls] != int(CallClass.GRAPH_LAUNCH))
    order = alone[np.lexsort((start[alone], *lane[:, alone]))]
    before, after = order[:-1], order[1:]
    same = (lane[:, before] == lane[:, after]).all(axis=0)
    return int((same & (begin[after] + STREAM_NS < begin[before])).sum())
