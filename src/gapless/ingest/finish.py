"""How do decoded chunks and top-level keys become a `RawTrace`?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gapless.ingest import metadata
from gapless.ingest.assemble import Assembler, Lanes, described, table_from
from gapless.ingest.categories import Group, is_annotation
from gapless.ingest.columns import Chunk
from gapless.ingest.gather import Rows, gather
from gapless.ingest.issues import Issues, shorten
from gapless.ingest.notes import note_oddities, note_refused
from gapless.ingest.raw import RawTrace
from gapless.ingest.setaside import set_aside
from gapless.model import schema
from gapless.model.errors import EmptyTraceError
from gapless.model.meta import TraceMeta

_TABLES: dict[str, tuple[Group, ...]] = {
    "ops": ("op", "annotation"),
    "frames": ("frame",),
    "calls": ("runtime", "driver"),
    "activities": ("kernel", "memcpy", "memset"),
    "gpu_syncs": ("gpu_sync",),
    "gpu_annotations": ("gpu_annotation",),
    "memory": ("memory",),
    "overheads": ("overhead",),
    "markers": ("marker",),
}


MAX_CATEGORIES = 200


@dataclass(frozen=True, slots=True)
class File:
    """Facts about the file itself."""

    path: str
    size_bytes: int
    sha256: str
    bare_list: bool
    truncated: bool


def finish(
    file: File,
    top: Mapping[str, Any],
    chunks: Sequence[Chunk],
    dictionaries: tuple[list[str], list[tuple[object, object]], list[bytes]],
    issues: Issues,
) -> RawTrace:
    """All tables and facts; raises EmptyTraceError if no event is usable."""
    names, lane_keys, texts = dictionaries
    lanes = Lanes(lane_keys)
    rows = {table: gather(chunks, groups) for table, groups in _TABLES.items()}
    rows, senseless = set_aside(rows, names)
    refused = sorted([item for chunk in chunks for item in chunk.refused] + senseless)
    note_refused(refused, issues)
    note_oddities(chunks, names, issues)
    if not any(len(r) for table, r in rows.items() if table != "markers"):
        raise EmptyTraceError(_nothing(file, chunks))
    zero = min(int(r.start.min()) for r in rows.values() if len(r))
    host = [rows[table].lane for table in ("ops", "frames", "calls", "memory")]
    assembler = Assembler(names, texts, lanes, lanes.threads(host), zero)
    ops, extra = assembler.ops(rows["ops"], _annotations(rows["ops"], names))
    collectives, triton = described(extra)
    base = metadata.integer(top.get("baseTimeNanoseconds")) or 0
    sizes: dict[str, tuple[int, int]] = {}
    for chunk in chunks:
        for category, (events, size) in chunk.sizes.items():
            known = sizes.get(category, (0, 0))
            sizes[category] = (known[0] + events, known[1] + size)
    meta = TraceMeta(
        path=file.path,
        size_bytes=file.size_bytes,
        sha256=file.sha256,
        format="bare-list" if file.bare_list else "kineto",
        events=sum(chunk.events for chunk in chunks),
        origin_ns=base + zero,
        integer_us=not any(chunk.fractional for chunk in chunks),
        truncated=file.truncated,
        size_by_category=_largest(sizes),
        **metadata.facts(top),
    )
    return RawTrace(
        meta=meta,
        threads=assembler.threads(_thread_names(chunks, lanes, texts, names)),
        ops=ops,
        frames=assembler.frames(rows["frames"]),
        calls=assembler.calls(rows["calls"]),
        activities=assembler.activities(rows["activities"]),
        gpu_syncs=assembler.gpu_syncs(rows["gpu_syncs"]),
        gpu_annotations=assembler.gpu_annotations(rows["gpu_annotations"]),
        memory=assembler.memory(rows["memory"]),
        overheads=assembler.named(rows["overheads"]),
        markers=assembler.named(rows["markers"]),
        collectives=collectives,
        triton=triton,
        set_aside=table_from(schema.SET_ASIDE, [item._asdict() for item in refused]),
        issues=table_from(schema.ISSUES, issues.rows()),
    )


def _largest(sizes: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """Sizes by category, largest first; a file with senselessly many categories keeps the first `MAX_CATEGORIES`."""
    order = sorted(sizes, key=lambda category: (-sizes[category][1], category))
    return {category: sizes[category] for category in order[:MAX_CATEGORIES]}


def _annotations(rows: Rows, names: Sequence[str]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    spurious = np.array([is_annotation(name) for name in names] or [False], dtype=np.bool_)
    return rows.group_is("annotation") | spurious[rows.name]


def _thread_names(
    chunks: Sequence[Chunk], lanes: Lanes, texts: Sequence[bytes], names: Sequence[str]
) -> dict[tuple[str, str], str]:
    """The last `thread_name` of every (pid, tid): the recorder's later names are the better ones."""
    found: dict[tuple[str, str], str] = {}
    for chunk in chunks:
        for part in chunk.parts:
            if part.group != "name":
                continue
            for lane, what, value in zip(
                part.lane.tolist(), part.name.tolist(), part.args["value"].tolist(), strict=True
            ):
                if names[what] == "thread_name":
                    found[lanes.pid[lane], lanes.tid[lane]] = texts[value].decode("utf-8", "replace").strip()
    return found


def _nothing(file: File, chunks: Sequence[Chunk]) -> str:
    events = sum(chunk.events for chunk in chunks)
    refused = sum(len(chunk.refused) for chunk in chunks)
    kinds = sorted({kind.strip() for chunk in chunks for kind in chunk.unknown})[:5]
    found = f" ({refused} have senseless times)" if refused else ""
    found += f" (unknown kinds: {shorten(', '.join(kinds))})" if kinds else ""
    return (
        f"{file.path}: a trace with {events} events{found} but none that can be used, so there is nothing to report; "
        "record again with at least one step inside the profiler's active window"
    )
