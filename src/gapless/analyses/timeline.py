"""Which part of a trace does a page show, and what is drawn there? From a study to the neutral `model.timeline`.

Shown by default: the used step whose host time is nearest the median, its neighbours, and the steps in which the
findings' examples lie, as long as the number of boxes stays below `MOST_BOXES`; everything if `full`. Python frames
of libraries are left out first, then the shortest events; kernels and waits stay longest. What went is said in `notes`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gapless.analyses.chain import critical_chain
from gapless.analyses.steps import window_of
from gapless.analyses.study import Study
from gapless.analyses.timeline_boxes import BoxTable, draw_boxes
from gapless.analyses.timeline_strip import overview, queue_table, strip_table
from gapless.analyses.timeline_text import Strings
from gapless.model.report import Finding
from gapless.model.timeline import Chain, Place, Range, Timeline
from gapless.tables.columns import packed
from gapless.tables.intervals import Int, Set, as_ns, merge

MOST_BOXES = 150_000
"""About 2 MB of page: columns of a box take some 12 bytes once packed (measured on H200 traces)."""
PLACES_PER_FINDING = 5


def timeline(s: Study, findings: Sequence[Finding] = (), *, full: bool = False) -> Timeline:
    """The timeline of a studied trace; `findings` in the report's order, whose examples get places."""
    strings = Strings()
    limit = 2**40 if full else MOST_BOXES
    focus = representative_step(s)
    low, high = window_of(s.raw)
    shown, table = _within_budget(s, focus, findings, limit, full, (low, high))
    lanes, boxes, arrows = table.finish(strings)
    index = {key: row for row, key in enumerate(table.lane_keys)}
    chain = critical_chain(s, focus)
    notes = [*_range_notes(s, shown, (low, high)), *table.notes]
    ranges = [Range(_range_name(s, a, b), a, b) for a, b in zip(shown[0].tolist(), shown[1].tolist(), strict=True)]
    return Timeline(
        strings=strings.texts,
        lanes=lanes,
        steps=[
            Range(name, int(a), int(b), bool(used))
            for name, a, b, used in zip(s.steps.names, s.steps.start, s.steps.until, s.steps.used, strict=True)
        ],
        shown=ranges,
        boxes=boxes,
        arrows=arrows,
        strip=strip_table(s, shown, index, strings),
        queue=queue_table(s, shown, index),
        chain=_chain_boxes(chain, table),
        places=_places(findings, table, shown),
        overview=overview(s, low, high),
        focus=focus,
        notes=notes,
    )


def representative_step(s: Study) -> int:
    """The used step whose host time (marker to next marker) is nearest the median, the earlier of two.

    Steps that follow a used one come first: the device's account of the others begins only with their first activity.
    """
    used = s.steps.used_indices()
    if not used:
        return 0
    wall = s.steps.until - s.steps.start
    whole = [i for i in used if i - 1 in used] or used
    return whole[int(np.argmin(np.abs(wall[whole] - np.median(wall[used]))))]


def _span_of_step(s: Study, step: int) -> tuple[int, int]:
    """From the step's marker to the later of the next marker and the end of the work it launched."""
    start = as_ns(s.raw.activities["start_ns"].to_numpy())
    end = start + as_ns(s.raw.activities["dur_ns"].to_numpy())
    own = s.steps.step_of_activity == step
    low = int(s.steps.start[step])
    if s.steps.count == 1 and own.any():
        low = min(low, int(start[own].min()))
    return low, max(int(s.steps.until[step]), int(end[own].max(initial=0)))


def _within_budget(
    s: Study, focus: int, findings: Sequence[Finding], limit: int, full: bool, window: tuple[int, int]
) -> tuple[Set, BoxTable]:
    """The largest choice of ranges whose boxes fit; the smallest choice is thinned until it does."""
    choices: list[list[int]] = []
    if full:
        whole = as_ns([window[0]]), as_ns([window[1]])
        return whole, draw_boxes(s, whole, limit, every_frame=True)
    near = [i for i in (focus - 1, focus, focus + 1) if 0 <= i < s.steps.count]
    example = [i for i in _steps_of(s, findings) if i not in near]
    choices += [near + example[:extra] for extra in range(len(example), -1, -1)]
    choices.append([focus])
    for chosen in choices[:-1]:
        shown = _ranges(s, chosen)
        table = draw_boxes(s, shown, limit, every_frame=False)
        if not table.thinned:
            return shown, table
    shown = _ranges(s, choices[-1])
    return shown, draw_boxes(s, shown, limit, every_frame=False)


def _steps_of(s: Study, findings: Sequence[Finding]) -> list[int]:
    """Steps in which the findings' first examples lie, in the findings' order, none twice."""
    steps: list[int] = []
    for finding in findings:
        at = next((site.start_ns for site in finding.sites if site.start_ns is not None), None)
        if at is not None:
            step = int(np.searchsorted(s.steps.start, at, side="right")) - 1
            if step >= 0 and step not in steps:
                steps.append(step)
    return steps


def _ranges(s: Study, steps: list[int]) -> Set:
    spans = [_span_of_step(s, i) for i in steps]
    return merge(as_ns([a for a, _ in spans]), as_ns([b for _, b in spans]))


def _range_name(s: Study, low: int, high: int) -> str:
    inside = [n for n, a in zip(s.steps.names, s.steps.start.tolist(), strict=True) if low <= a < high]
    return inside[0] if len(inside) == 1 else f"{inside[0]} to {inside[-1]}" if inside else "part"


def _range_notes(s: Study, shown: Set, window: tuple[int, int]) -> list[str]:
    covered = int((shown[1] - shown[0]).sum())
    whole = window[1] - window[0]
    inside = [
        n
        for n, a in zip(s.steps.names, s.steps.start.tolist(), strict=True)
        if ((shown[0] <= a) & (a < shown[1])).any()
    ]
    if len(inside) >= s.steps.count and covered > 0.5 * whole:
        return []
    return [f"events of {len(inside)} of {s.steps.count} steps are drawn; `--full` writes a page with all of them"]


def _chain_boxes(chain: tuple[Int, Int, Int, Int], table: BoxTable) -> Chain:
    start, end, activity, call = chain
    box = np.where(activity >= 0, table.box_of_activity(activity), table.box_of_call(call))
    keep = box >= 0
    return Chain(packed(start[keep]), packed((end - start)[keep]), packed(box[keep]))


def _places(findings: Sequence[Finding], table: BoxTable, shown: Set) -> list[Place]:
    places = []
    for row, finding in enumerate(findings):
        here = 0
        for site in finding.sites:
            if site.start_ns is None or here == PLACES_PER_FINDING:
                continue
            if not ((shown[0] <= site.start_ns) & (site.start_ns < shown[1])).any():
                continue
            dur = site.dur_ns or 0
            places.append(Place(row, site.start_ns, dur, table.box_at(site.start_ns, dur)))
            here += 1
    return places
