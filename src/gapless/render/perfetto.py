"""How do other viewers show what gapless found? The recorded events plus gapless's own lanes, in Chrome's trace format.

Perfetto and Chrome drop or move slices that overlap on a track, so events are cut to nest (as `analyses.host` does) and
GPU work that overlaps on a stream goes to a track of its own. Tracks: every thread and stream of the recording; then,
for each device, `where its time goes` (state and cause of every instant) and the queue depth; waits with what they
waited for; the critical chain; the places of the findings. Launches are tied to their work by flow events.
Times are microseconds with three decimals since `baseTimeNanoseconds`: exact.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import polars as pl

from gapless.model.report import Report
from gapless.model.timeline import Lane, Timeline
from gapless.render import safe, words
from gapless.render.wire import as_array

Int = np.ndarray[tuple[int], np.dtype[np.int64]]

HOST, GPU, OWN = 1, 1000, 9000
"""Process numbers: all host threads; GPU 1000 + its index; gapless's own lanes 9000 and up."""
_OVERFLOW = 100_000
"""Added to a stream's track for each row of work that overlaps the row above."""


def export(timeline: Timeline, report: Report, origin_ns: int = 0) -> Iterator[str]:
    """The file in pieces: one JSON object when joined. `origin_ns` is the absolute time of the timeline's zero."""
    head = {
        "displayTimeUnit": "ns",
        "baseTimeNanoseconds": origin_ns,
        "gapless_export": {**report.tool, "trace": safe.line(report.trace.get("path") or "-")},
    }
    yield json.dumps(head, ensure_ascii=False)[:-1] + ',"traceEvents":[\n'
    separator = ""
    for chunk in _chunks(timeline, report):
        if chunk:
            yield separator + chunk
            separator = ",\n"
    yield "\n]}\n"


def _chunks(timeline: Timeline, report: Report) -> Iterator[str]:
    tracks = [_track(row, lane) for row, lane in enumerate(timeline.lanes)]
    yield _lines(_names(timeline, tracks))
    yield _boxes(timeline, tracks)
    yield _strip(timeline)
    yield _queue(timeline)
    yield _waits(timeline)
    yield _chain(timeline)
    yield _findings(timeline, report)
    yield _flows(timeline, tracks)


def _track(row: int, lane: Lane) -> tuple[int, int]:
    return (HOST, row + 1) if lane.kind == "thread" else (GPU + max(lane.device, 0), row + 1)


def _lines(events: Iterable[dict[str, object]]) -> str:
    return ",\n".join(json.dumps(e, ensure_ascii=False, separators=(",", ":")) for e in events)


def _meta(what: str, pid: int, tid: int | None, **args: object) -> dict[str, object]:
    event: dict[str, object] = {"ph": "M", "name": what, "pid": pid, "args": args}
    return event if tid is None else {**event, "tid": tid}


def _names(timeline: Timeline, tracks: Sequence[tuple[int, int]]) -> Iterator[dict[str, object]]:
    yield _meta("process_name", HOST, None, name="host")
    yield _meta("process_sort_index", HOST, None, sort_index=HOST)
    devices = {lane.device: lane.name for lane in timeline.lanes if lane.kind == "device"}
    for row, (lane, (pid, tid)) in enumerate(zip(timeline.lanes, tracks, strict=True)):
        if lane.kind == "device":
            continue
        yield _meta("thread_name", pid, tid, name=safe.line(lane.name))
        yield _meta("thread_sort_index", pid, tid, sort_index=row)
        for extra in range(1, lane.rows if lane.kind == "stream" else 1):
            yield _meta("thread_name", pid, tid + extra * _OVERFLOW, name=safe.line(f"{lane.name} (overlapping)"))
    for device, name in devices.items():
        yield _meta("process_name", GPU + device, None, name=safe.line(name))
        yield _meta("process_sort_index", GPU + device, None, sort_index=GPU + device)
        yield _meta("process_name", OWN + 1 + device, None, name=safe.line(f"gapless: {name}"))
        yield _meta("process_sort_index", OWN + 1 + device, None, sort_index=device - 100)
        yield _meta("thread_name", OWN + 1 + device, 1, name="where its time goes")
    yield _meta("process_name", OWN, None, name="gapless: findings and waits")
    yield _meta("process_sort_index", OWN, None, sort_index=-200)
    for tid, name in ((1, "waits"), (2, "critical chain")):
        yield _meta("thread_name", OWN, tid, name=name)


def _texts(timeline: Timeline) -> pl.Series:
    return pl.Series([json.dumps(safe.line(t), ensure_ascii=False) for t in timeline.strings], dtype=pl.String)


def _gathered(texts: pl.Series, rows: Int) -> pl.Series:
    return texts.gather(pl.Series(rows).cast(pl.UInt32))


def _time(values: Int) -> pl.Series:
    """Nanoseconds as microseconds with three decimals, as text."""
    whole, rest = pl.Series(np.abs(values) // 1000).cast(pl.String), pl.Series(np.abs(values) % 1000).cast(pl.String)
    sign = pl.Series(np.where(values < 0, "-", ""))
    return sign + whole + pl.Series(["."], dtype=pl.String).new_from_index(0, values.size) + rest.str.zfill(3)


def _slices(pid: Int, tid: Int, start: Int, dur: Int, name: pl.Series, category: pl.Series, args: pl.Series) -> str:
    """Complete events as JSON lines; `name`, `category` and `args` are JSON text."""
    if start.size == 0:
        return ""
    frame = pl.DataFrame(
        {"pid": pid, "tid": tid, "ts": _time(start), "dur": _time(dur), "name": name, "cat": category, "args": args}
    )
    parts = [pl.lit('{"ph":"X","pid":')]
    for column, before_next in (
        ("pid", ',"tid":'), ("tid", ',"ts":'), ("ts", ',"dur":'), ("dur", ',"name":'), ("name", ',"cat":'),
        ("cat", ',"args":'), ("args", "}"),
    ):  # fmt: skip
        parts += [pl.col(column).cast(pl.String), pl.lit(before_next)]
    return ",\n".join(frame.select(pl.concat_str(parts)).to_series().to_list())


def _boxes(timeline: Timeline, tracks: Sequence[tuple[int, int]]) -> str:
    b = timeline.boxes
    lane, depth = as_array(b.lane), as_array(b.depth)
    if lane.size == 0:
        return ""
    pids, tids = (np.array(column, dtype=np.int64) for column in zip(*tracks, strict=True))
    stream = np.array([one.kind == "stream" for one in timeline.lanes])
    tid = tids[lane] + np.where(stream[lane], depth * _OVERFLOW, 0)
    texts = _texts(timeline)
    facts = [_facts(text) for text in timeline.strings]
    full = pl.Series(
        [json.dumps(f["full name"], ensure_ascii=False) if "full name" in f else None for f in facts], dtype=pl.String
    )
    inner = pl.Series([json.dumps(f, ensure_ascii=False)[1:-1] for f in facts], dtype=pl.String)
    fact, word = as_array(b.facts), as_array(b.words)
    # A wait's words differ from call to call, its facts from shape to shape: joined row by row.
    told = pl.Series(np.where(word > 0, '"what":', ""), dtype=pl.String) + _gathered(texts, word).replace('""', "")
    comma = pl.Series(np.where((word > 0) & (fact > 0), ",", ""), dtype=pl.String)
    args = "{" + told + comma + _gathered(inner, fact) + "}"
    name = _gathered(full, fact).fill_null(_gathered(texts, as_array(b.name)))
    start, dur = as_array(b.start_ns), as_array(b.dur_ns)
    return _slices(pids[lane], tid, start, dur, name, _gathered(texts, as_array(b.kind)), args)


def _facts(text: str) -> dict[str, str]:
    pairs = (line.split(": ", 1) for line in text.split("\n") if ": " in line)
    return {safe.line(key): safe.line(value) for key, value in pairs}


def _device_pid(timeline: Timeline, lane: Int) -> Int:
    return OWN + 1 + np.array([one.device for one in timeline.lanes], dtype=np.int64)[lane]


def _strip(timeline: Timeline) -> str:
    s = timeline.strip
    lane = as_array(s.lane)
    if lane.size == 0:
        return ""
    states, causes, doing = (as_array(c) for c in (s.state, s.cause, s.doing))
    labels: dict[tuple[int, int], tuple[str, str]] = {}
    for state, cause in set(zip(states.tolist(), causes.tolist(), strict=True)):
        a, b = timeline.strings[state], timeline.strings[cause]
        title = f"idle: {b}" if a == "idle" else a
        labels[state, cause] = (title, words.IDLE_CAUSES.get(b, "") if a == "idle" else words.GPU_STATES.get(a, a))
    pairs = [labels[p] for p in zip(states.tolist(), causes.tolist(), strict=True)]
    name = pl.Series([json.dumps(safe.line(title), ensure_ascii=False) for title, _ in pairs])
    why = pl.Series([json.dumps(text) for _, text in pairs])
    args = '{"why":' + why + ',"host was at":' + _gathered(_texts(timeline), doing) + "}"
    one = np.ones(lane.size, dtype=np.int64)
    category = pl.Series(['"gapless"']).new_from_index(0, lane.size)
    return _slices(_device_pid(timeline, lane), one, as_array(s.start_ns), as_array(s.dur_ns), name, category, args)


def _queue(timeline: Timeline) -> str:
    q = timeline.queue
    rows = zip(_device_pid(timeline, as_array(q.lane)).tolist() if len(q.lane) else [], q.time_ns, q.depth, strict=True)
    return ",\n".join(
        f'{{"ph":"C","pid":{pid},"tid":0,"ts":{_us(time)},"name":"launched, not begun","args":{{"launches":{depth}}}}}'
        for pid, time, depth in rows
    )


def _waits(timeline: Timeline) -> str:
    b = timeline.boxes
    wait = next((i for i, text in enumerate(timeline.strings) if text == "wait"), -1)
    rows = np.flatnonzero((as_array(b.kind) == wait) & (as_array(b.words) > 0))
    return _lines(
        _own(1, b.start_ns[i], b.dur_ns[i], timeline.strings[b.name[i]], what=timeline.strings[b.words[i]])
        for i in _disjoint(as_array(b.start_ns)[rows], as_array(b.dur_ns)[rows], rows)
    )


def _chain(timeline: Timeline) -> str:
    c = timeline.chain
    rows = np.arange(len(c.box))
    return _lines(
        _own(2, c.start_ns[i], c.dur_ns[i], timeline.strings[timeline.boxes.name[c.box[i]]])
        for i in _disjoint(as_array(c.start_ns), as_array(c.dur_ns), rows)
    )


def _findings(timeline: Timeline, report: Report) -> str:
    """One track a finding, so that findings may overlap each other."""
    events: list[dict[str, object]] = []
    for number, finding in enumerate(report.findings):
        places = sorted((p for p in timeline.places if p.finding == number), key=lambda p: p.start_ns)
        if not places:
            continue
        events.append(
            _meta("thread_name", OWN, 10 + number, name=safe.line(f"finding {number + 1}: {finding.code}", 100))
        )
        start = np.array([p.start_ns for p in places], dtype=np.int64)
        dur = np.array([p.dur_ns for p in places], dtype=np.int64)
        events += [
            _own(10 + number, int(start[i]), int(dur[i]), finding.title, fix=safe.block(finding.fix))
            for i in _disjoint(start, dur, np.arange(start.size))
        ]
    return _lines(events)


def _disjoint(start: Int, dur: Int, rows: Int) -> list[int]:
    """The rows in time order, without those that begin before the one before has ended."""
    kept: list[int] = []
    reach = None
    for i in np.lexsort((dur, start)).tolist():
        if reach is None or start[i] >= reach:
            kept.append(int(rows[i]))
            reach = int(start[i] + dur[i])
    return kept


def _own(tid: int, start: int, dur: int, name: str, **args: str) -> dict[str, object]:
    shown = {key: safe.block(value) for key, value in args.items()}
    return {
        "ph": "X",
        "pid": OWN,
        "tid": tid,
        "ts": start / 1000,
        "dur": dur / 1000,
        "name": safe.line(name),
        "cat": "gapless",
        "args": shown,
    }


def _us(ns: int) -> str:
    return f"{'-' if ns < 0 else ''}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"


def _flows(timeline: Timeline, tracks: Sequence[tuple[int, int]]) -> str:
    a, b = timeline.arrows, timeline.boxes
    launch = np.flatnonzero(as_array(a.kind) == 0)
    source, target = as_array(a.source)[launch], as_array(a.target)[launch]
    if launch.size == 0:
        return ""
    lane, depth, start = as_array(b.lane), as_array(b.depth), as_array(b.start_ns)
    lines = []
    for n, (i, j) in enumerate(zip(source.tolist(), target.tolist(), strict=True)):
        if start[j] < start[i]:
            continue
        (pid, tid), (to_pid, to_tid) = tracks[lane[i]], tracks[lane[j]]
        to_tid += int(depth[j]) * _OVERFLOW
        common = f'"id":{n + 1},"cat":"ac2g","name":"ac2g"'
        lines.append(f'{{"ph":"s",{common},"pid":{pid},"tid":{tid},"ts":{_us(int(start[i]))}}}')
        lines.append(f'{{"ph":"f","bp":"e",{common},"pid":{to_pid},"tid":{to_tid},"ts":{_us(int(start[j]))}}}')
    return ",\n".join(lines)
