"""Which calls can block the host until the GPU has done something, and who asked for it?

Always: synchronisations of device, stream and event, and synchronous copies. By the copy they start: `cudaMemcpyAsync`
to pageable host memory (any size), and from it above 64 KiB (below, the data are staged at once; measured on an H200,
CUDA 13, and CUDA's API synchronisation rules). Pinned copies return at once. Origin: `profiler` for the recorder's own
device synchronisation at the end; `hidden` inside an operator or for copies; else `explicit`.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from gapless.analyses.call_names import SYNCS, CallClass
from gapless.analyses.host import FRAME
from gapless.analyses.links import Links
from gapless.analyses.steps import Steps
from gapless.ingest.raw import RawTrace
from gapless.tables.coding import matches
from gapless.tables.intervals import Int, as_ns
from gapless.tables.nesting import nearest

STAGED_AT_ONCE_BYTES = 64 * 1024


class Origin(IntEnum):
    """Who asked for a blocking call."""

    EXPLICIT = 0
    HIDDEN = 1
    PROFILER = 2

    @property
    def label(self) -> str:
        """The name that output uses."""
        return self.name.lower()


def blocking_calls(raw: RawTrace, links: Links) -> NDArray[np.bool_]:
    """Which rows of `calls` block until GPU work is done?"""
    blocks = np.isin(links.call_class, [int(kind) for kind in SYNCS])
    activity = links.first_activity
    has = activity >= 0
    row = np.maximum(activity, 0)
    if raw.activities.height == 0:
        return blocks
    name = raw.activities["name"]
    to_pageable = matches(name, lambda n: n.startswith("Memcpy DtoH") and "Pageable" in n)[row]
    from_pageable = matches(name, lambda n: n.startswith("Memcpy HtoD") and "Pageable" in n)[row]
    size = as_ns(raw.activities["size_bytes"].fill_null(0).to_numpy())[row]
    copy = links.call_class == int(CallClass.COPY)
    return np.asarray(blocks | (has & copy & (to_pageable | (from_pageable & (size > STAGED_AT_ONCE_BYTES)))))


def origins(raw: RawTrace, links: Links, steps: Steps) -> Int:
    """`Origin` of each call, meaningful where it blocks."""
    hidden = (links.top_op_of_call >= 0) | np.isin(links.call_class, (int(CallClass.COPY), int(CallClass.COPY_SYNC)))
    origin = np.where(hidden, int(Origin.HIDDEN), int(Origin.EXPLICIT))
    origin[_profilers_own(raw, links, steps)] = int(Origin.PROFILER)
    return origin


def _profilers_own(raw: RawTrace, links: Links, steps: Steps) -> NDArray[np.bool_]:
    """Device synchronisations that the recorder made: after the last step, or the last call of all that launches or
    waits, outside any op; and any call inside a frame of the profiler."""
    device = (links.call_class == int(CallClass.SYNC_DEVICE)) & (links.top_op_of_call < 0)
    start = as_ns(raw.calls["start_ns"].to_numpy())
    own = np.zeros(raw.calls.height, dtype=bool)
    if steps.thread is not None:
        own |= device & (start >= steps.end[-1])
    launches = links.first_activity >= 0
    last_launch = int(start[launches].max()) if launches.any() else -1
    trailing = np.flatnonzero(device & (start > last_launch))
    if trailing.size and steps.thread is None:
        own[trailing[-1]] = True
    if raw.frames.height:
        forest = links.forest
        flag = np.zeros(forest.source.size, dtype=bool)
        flag[forest.of_frame] = matches(
            raw.frames["name"], lambda n: n.startswith(("torch/autograd/profiler.py", "torch/profiler/profiler.py"))
        )
        own |= device & (nearest(flag & (forest.source == FRAME), forest.parent)[forest.of_call] >= 0)
    return own
