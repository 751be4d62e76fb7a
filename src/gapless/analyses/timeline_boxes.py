"""Which boxes and arrows stand on the lanes of a timeline?

Host lanes show the forest of ops, calls, annotations and frames; stream lanes the GPU's work, one row unless it
overlaps. Frames of libraries and, above the limit, the shortest events are left out; a box's depth is the number of
its drawn ancestors. An arrow leads from a launch call to each piece of its work, and from a wait to what it waited for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from gapless.analyses.call_names import LAUNCHES, CallClass
from gapless.analyses.host import ANNOTATION, CALL, FRAME, OP
from gapless.analyses.host_states import AUTOGRAD, LOADER, MAIN
from gapless.analyses.kernel_names import decode
from gapless.analyses.study import Study
from gapless.analyses.timeline_text import Strings, activity_facts, call_facts, op_facts, wait_words
from gapless.model.timeline import Arrows, Boxes, Lane
from gapless.tables.coding import categories, codes, matches
from gapless.tables.columns import packed
from gapless.tables.intervals import Int, Set, as_ns
from gapless.tables.nesting import depths, nearest

LaneKey = tuple[str, int, int]
"""('device', device, 0), ('stream', device, stream) or ('thread', thread, 0)."""

_LIBRARY = (
    "torch/",
    "<built-in",
    "<frozen",
    "threading.py",
    "runpy.py",
    "contextlib.py",
    "functools.py",
    "typing.py",
    "abc.py",
    "enum.py",
    "weakref.py",
    "copy.py",
    "collections/",
    "logging/",
    "importlib",
    "inspect.py",
    "dataclasses.py",
    "re.py",
    "random.py",
    "types.py",
    "warnings.py",
)
_SHORT_ROLES = {MAIN: "main thread", AUTOGRAD: "autograd thread", LOADER: "loader thread"}
_MOST_ROWS = 200


@dataclass(slots=True)
class BoxTable:
    """Chosen rows before text: forest rows of the host and rows of `activities`, with their place on the lanes."""

    study: Study
    host: Int
    host_depth: Int
    work: Int
    work_depth: Int
    lane_keys: list[LaneKey]
    thinned: bool
    notes: list[str] = field(default_factory=list)
    order: Int = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _box_of_call: Int = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _box_of_activity: Int = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _start: Int = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _dur: Int = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def finish(self, strings: Strings) -> tuple[list[Lane], Boxes, Arrows]:
        """Lanes, boxes in their final order, and arrows; text goes into `strings`."""
        s = self.study
        lane, depth = self._places()
        start, dur = self._times()
        order = np.lexsort((start, depth, lane))
        kind, name, facts = self._text(strings)
        words = np.zeros(start.size, dtype=np.int64)
        calls = self._calls()
        drawn = np.flatnonzero(calls >= 0)
        drawn = drawn[s.blocking[calls[drawn]]]
        for box, text in zip(drawn.tolist(), wait_words(s, calls[drawn]), strict=True):
            words[box] = strings.row(text)
        self.order, self._start, self._dur = order, start[order], dur[order]
        position = np.empty(order.size, dtype=np.int64)
        position[order] = np.arange(order.size)
        self._box_of_call = np.full(s.raw.calls.height, -1, dtype=np.int64)
        of_host = np.flatnonzero(calls >= 0)
        self._box_of_call[calls[of_host]] = position[of_host]
        self._box_of_activity = np.full(s.raw.activities.height, -1, dtype=np.int64)
        self._box_of_activity[self.work] = position[self.host.size :]
        boxes = Boxes(*(packed(column[order]) for column in (start, dur, lane, depth, kind, name, words, facts)))
        return self._lanes(lane, depth), boxes, self._arrows()

    def box_of_activity(self, rows: Int) -> Int:
        """The box of each row of `activities`; -1 if it has none."""
        return (
            np.where(rows >= 0, self._box_of_activity[np.maximum(rows, 0)], -1)
            if self._box_of_activity.size
            else rows * 0 - 1
        )

    def box_of_call(self, rows: Int) -> Int:
        """The box of each row of `calls`; -1 if it has none."""
        return (
            np.where(rows >= 0, self._box_of_call[np.maximum(rows, 0)], -1) if self._box_of_call.size else rows * 0 - 1
        )

    def box_at(self, start_ns: int, dur_ns: int) -> int:
        """The box with this start, of the nearest duration; -1 if none starts then."""
        rows = np.flatnonzero(self._start == start_ns)
        return int(rows[np.argmin(np.abs(self._dur[rows] - dur_ns))]) if rows.size else -1

    def _calls(self) -> Int:
        forest = self.study.links.forest
        calls = np.where(forest.source[self.host] == CALL, forest.row[self.host], -1)
        return np.concatenate([calls, np.full(self.work.size, -1, dtype=np.int64)])

    def _places(self) -> tuple[Int, Int]:
        s = self.study
        index = {key: row for row, key in enumerate(self.lane_keys)}
        threads = np.array(
            [index.get(("thread", t, 0), -1) for t in range(s.raw.threads.height)] or [-1], dtype=np.int64
        )
        device, stream = _device_stream(s)
        lanes = [
            index["stream", d, q] for d, q in zip(device[self.work].tolist(), stream[self.work].tolist(), strict=True)
        ]
        lane = np.concatenate([threads[s.links.forest.thread[self.host]], as_ns(lanes)])
        return lane, np.concatenate([self.host_depth, self.work_depth])

    def _times(self) -> tuple[Int, Int]:
        s = self.study
        forest = s.links.forest
        start = np.concatenate([forest.start[self.host], as_ns(s.raw.activities["start_ns"].to_numpy())[self.work]])
        dur = np.concatenate(
            [(forest.end - forest.start)[self.host], as_ns(s.raw.activities["dur_ns"].to_numpy())[self.work]]
        )
        return start, dur

    def _text(self, strings: Strings) -> tuple[Int, Int, Int]:
        s = self.study
        forest = s.links.forest
        source, row = forest.source[self.host], forest.row[self.host]
        kind = np.zeros(self.host.size + self.work.size, dtype=np.int64)
        name, facts = kind.copy(), kind.copy()
        kind[: self.host.size] = host_kinds(s, self.host, strings)
        for code, table, facts_of in (
            (ANNOTATION, s.raw.ops, op_facts),
            (OP, s.raw.ops, op_facts),
            (CALL, s.raw.calls, call_facts),
        ):
            here = np.flatnonzero(source == code)
            name[here] = strings.categories(table["name"], row[here])
            facts[here] = strings.rows(facts_of(s, row[here]))
        here = np.flatnonzero(source == FRAME)
        name[here] = strings.categories(s.raw.frames["name"], row[here])
        texts = categories(s.raw.activities["name"])
        work_code = codes(s.raw.activities["name"])[self.work]
        kinds, shorts = np.zeros(len(texts), dtype=np.int64), np.zeros(len(texts), dtype=np.int64)
        for one in np.unique(work_code).tolist():
            known = decode(texts[one])
            kinds[one] = strings.row(known.family if known.family in ("memcpy", "memset") else f"kernel:{known.family}")
            shorts[one] = strings.row(known.short)
        kind[self.host.size :] = kinds[work_code]
        name[self.host.size :] = shorts[work_code]
        facts[self.host.size :] = strings.rows(activity_facts(s, self.work))
        return kind, name, facts

    def _lanes(self, lane: Int, depth: Int) -> list[Lane]:
        s = self.study
        rows = np.zeros(len(self.lane_keys), dtype=np.int64)
        np.maximum.at(rows, lane, depth + 1)
        devices = {d.id: d.name for d in s.raw.meta.devices}
        out = []
        for (kind, a, b), count in zip(self.lane_keys, rows.tolist(), strict=True):
            if kind == "device":
                title = f"GPU {a}" + (f" · {devices[a]}" if a in devices else "")
                out.append(Lane("device", title, a, 1, "where its time goes; launches waiting"))
            elif kind == "stream":
                out.append(Lane("stream", f"GPU {a} · stream {b}", a, max(count, 1), "what it runs"))
            else:
                role = s.states.roles[a]
                thread = s.raw.threads["name"][a] or s.raw.threads["tid"][a]
                title = _SHORT_ROLES.get(role, "thread").capitalize()
                out.append(Lane("thread", f"{title} · {thread}", -1, max(count, 1), "host"))
        return out

    def _arrows(self) -> Arrows:
        s = self.study
        source = self.box_of_call(s.links.launch_of[self.work])
        target = self._box_of_activity[self.work]
        wait_source = self.box_of_call(s.syncs.call)
        wait_target = self.box_of_activity(s.syncs.waited_activity)
        kind = np.concatenate([np.zeros(source.size, dtype=np.int64), np.ones(wait_source.size, dtype=np.int64)])
        source, target = np.concatenate([source, wait_source]), np.concatenate([target, wait_target])
        keep = (source >= 0) & (target >= 0)
        return Arrows(packed(source[keep]), packed(target[keep]), packed(kind[keep]))


def draw_boxes(s: Study, shown: Set, limit: int, *, every_frame: bool) -> BoxTable:
    """Choose what is drawn inside `shown`, at most `limit` boxes."""
    forest = s.links.forest
    start = as_ns(s.raw.activities["start_ns"].to_numpy())
    work = np.flatnonzero(_overlaps(start, start + as_ns(s.raw.activities["dur_ns"].to_numpy()), shown))
    inside = _overlaps(forest.start, forest.end, shown)
    notes = []
    keep = inside.copy()
    if not every_frame and s.raw.frames.height:
        library = np.zeros(forest.source.size, dtype=bool)
        library[forest.of_frame] = matches(s.raw.frames["name"], _is_library)
        keep &= ~library
        dropped = int((inside & library).sum())
        if dropped:
            notes.append(f"{dropped} Python frames of PyTorch and of the standard library are not drawn")
    host = np.flatnonzero(keep)
    thinned = host.size + work.size > limit
    if thinned:
        host, work, note = _thin(s, host, work, limit)
        notes.append(note)
    return _placed(s, host, work, thinned, notes)


def _thin(s: Study, host: Int, work: Int, limit: int) -> tuple[Int, Int, str]:
    """The longest events: waits always, kernels within half the limit, the rest of the host by duration."""
    forest = s.links.forest
    dur = as_ns(s.raw.activities["dur_ns"].to_numpy())
    work, cut_work = _longest(work, dur[work], limit // 2)
    calls = np.where(forest.source[host] == CALL, forest.row[host], -1)
    waits = calls >= 0
    waits[waits] = s.blocking[calls[waits]]
    rest, cut = _longest(
        host[~waits], (forest.end - forest.start)[host[~waits]], max(0, limit - work.size - int(waits.sum()))
    )
    note = f"{host.size - rest.size - int(waits.sum())} host events shorter than {cut} ns are not drawn"
    if cut_work:
        note += f", nor is GPU work shorter than {cut_work} ns"
    return np.sort(np.concatenate([rest, host[waits]])), work, note


def _longest(rows: Int, dur: Int, most: int) -> tuple[Int, int]:
    if rows.size <= most:
        return rows, 0
    cut = int(np.sort(dur)[rows.size - most]) + 1 if most else int(dur.max(initial=0)) + 1
    return rows[dur >= cut], cut


def _placed(s: Study, host: Int, work: Int, thinned: bool, notes: list[str]) -> BoxTable:
    forest = s.links.forest
    kept = np.zeros(forest.source.size, dtype=bool)
    kept[host] = True
    parent = np.where(forest.parent >= 0, nearest(kept, forest.parent)[np.maximum(forest.parent, 0)], -1)
    local = np.full(forest.source.size, -1, dtype=np.int64)
    local[host] = np.arange(host.size)
    drawn_parent = np.where(parent[host] >= 0, local[np.maximum(parent[host], 0)], -1)
    depth = depths(drawn_parent)
    deep = depth >= _MOST_ROWS
    if deep.any():
        notes.append(f"{int(deep.sum())} events nested deeper than {_MOST_ROWS} are not drawn")
        host, depth = host[~deep], depth[~deep]
    return BoxTable(s, host, depth, work, _rows_of_work(s, work), _lane_keys(s, host, work), thinned, notes)


def _rows_of_work(s: Study, work: Int) -> Int:
    """Row of each activity on its stream: 0 unless it starts before the one above has ended."""
    device, stream = _device_stream(s)
    start = as_ns(s.raw.activities["start_ns"].to_numpy())[work]
    end = start + as_ns(s.raw.activities["dur_ns"].to_numpy())[work]
    lane = (
        np.unique(np.stack([device[work], stream[work]], axis=1), axis=0, return_inverse=True)[1].reshape(-1)
        if work.size
        else work
    )
    depth = np.zeros(work.size, dtype=np.int64)
    order = np.lexsort((start, lane))
    for rows in np.split(order, np.flatnonzero(np.diff(lane[order])) + 1):
        if rows.size == 0 or not (start[rows][1:] < np.maximum.accumulate(end[rows])[:-1]).any():
            continue
        free: list[int] = []
        busy: list[tuple[int, int]] = []
        for row, low, high in zip(rows.tolist(), start[rows].tolist(), end[rows].tolist(), strict=True):
            while busy and busy[0][0] <= low:
                heappush(free, heappop(busy)[1])
            # The lowest free row; with none free, all so far are busy.
            depth[row] = spot = heappop(free) if free else len(busy)
            heappush(busy, (high, spot))
    return depth


def _lane_keys(s: Study, host: Int, work: Int) -> list[LaneKey]:
    """Devices with their streams (the busiest first), then the main, autograd and other threads."""
    keys: list[LaneKey] = []
    device, stream = _device_stream(s)
    dur = as_ns(s.raw.activities["dur_ns"].to_numpy())
    spent: dict[tuple[int, int], int] = {}
    for d, q, ns in zip(device[work].tolist(), stream[work].tolist(), dur[work].tolist(), strict=True):
        spent[d, q] = spent.get((d, q), 0) + ns
    for one in sorted({*s.devices, *(d for d, _ in spent)}):
        keys.append(("device", one, 0))
        keys += [("stream", d, q) for d, q in sorted(spent, key=lambda k: (-spent[k], k)) if d == one]
    count = np.bincount(s.links.forest.thread[host], minlength=s.raw.threads.height)
    rank = {MAIN: 0, AUTOGRAD: 1, LOADER: 2}
    used = [t for t in range(s.raw.threads.height) if count[t]]
    return keys + [("thread", t, 0) for t in sorted(used, key=lambda t: (rank.get(s.states.roles[t], 3), -count[t], t))]


def host_kinds(s: Study, host: Int, strings: Strings) -> Int:
    """The kind of each host box, as rows of `strings`."""
    forest = s.links.forest
    source, row = forest.source[host], forest.row[host]
    kind = np.full(host.size, strings.row("op"), dtype=np.int64)
    kind[source == ANNOTATION] = strings.row("annotation")
    frames = np.flatnonzero(source == FRAME)
    module = matches(s.raw.frames["name"], lambda name: name.startswith("nn.Module:"))
    kind[frames] = np.where(module[row[frames]], strings.row("module"), strings.row("frame"))
    calls = np.flatnonzero(source == CALL)
    table = np.array([strings.row(_call_kind(CallClass(i))) for i in range(len(CallClass))], dtype=np.int64)
    kind[calls] = np.where(s.blocking[row[calls]], strings.row("wait"), table[s.links.call_class[row[calls]]])
    return kind


def _call_kind(kind: CallClass) -> str:
    if kind in LAUNCHES:
        return "launch"
    return "alloc" if kind in (CallClass.ALLOC, CallClass.FREE, CallClass.PIN) else "call"


def _is_library(name: str) -> bool:
    return name.startswith(_LIBRARY) or "/site-packages/" in name or "/lib/python" in name


def _device_stream(s: Study) -> tuple[Int, Int]:
    return as_ns(s.raw.activities["device"].to_numpy()), as_ns(s.raw.activities["stream"].to_numpy())


def _overlaps(start: Int, end: Int, shown: Set) -> NDArray[np.bool_]:
    spot = np.searchsorted(shown[0], end, side="right") - 1
    touches = (
        (spot >= 0) & (shown[1][np.maximum(spot, 0)] > start) if shown[0].size else np.zeros(start.size, dtype=bool)
    )
    return np.asarray(touches)
