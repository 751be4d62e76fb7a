"""How do the events of one chunk become columns? Objects live as long as their chunk, columns stay.

Text is replaced by codes of per-process dictionaries (`Interns`), since a trace has few distinct names and many
events. The rows of a chunk are split into parts by phase and category as written. Events whose own time makes no
sense go to `refused` at once; those that only make no sense beside the others are sorted out later (`setaside`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from msgspec import Raw
from numpy.typing import NDArray

from gapless.ingest.categories import Group, group_of
from gapless.ingest.events import Event
from gapless.ingest.groups import BUILDERS, Arrays
from gapless.ingest.interns import Interns
from gapless.ingest.times import LIMIT_US, needs_text, text_to_ns, us_to_ns

_ts, _dur, _name, _args = attrgetter("ts"), attrgetter("dur"), attrgetter("name"), attrgetter("args")
_lane, _kind = attrgetter("pid", "tid"), attrgetter("ph", "cat")

EVENT_BYTES = 120
"""JSON bytes of an event besides its name and args, for splitting a chunk's size among categories."""


class Refused(NamedTuple):
    """An event that cannot be counted: texts as written, and the reason."""

    category: str
    name: str
    start_text: str
    dur_text: str
    reason: str


class CoarseTimesError(Exception):
    """The chunk has absolute times with decimals: its numbers must be read as text."""


@dataclass(slots=True)
class Part:
    """Columns of the events of one phase and category in one chunk; `start`, `dur` in ns as written, no base added."""

    group: Group
    category: str
    start: NDArray[np.int64]
    dur: NDArray[np.int64]
    lane: NDArray[np.int32]
    name: NDArray[np.int32]
    args: Arrays


@dataclass(slots=True)
class Chunk:
    """What one chunk held; `sizes` maps a category to [events, bytes of JSON, roughly]."""

    parts: list[Part] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    sizes: dict[str, list[int]] = field(default_factory=dict)
    events: int = 0
    unknown: dict[str, int] = field(default_factory=dict)
    no_duration: int = 0
    no_duration_example: str = ""
    fractional: bool = False

    @property
    def known(self) -> bool:
        """Whether some event is of a known kind."""
        return self.events > sum(self.unknown.values())


class Times(NamedTuple):
    """ns and validity of some times, and the texts they come from where those were kept."""

    ns: NDArray[np.int64]
    usable: NDArray[np.bool_]
    fractional: bool


def _times(us: NDArray[np.float64], texts: list[Decimal | None] | None) -> Times:
    if texts is not None:
        exact = [None if text is None else text_to_ns(text) for text in texts]
        ns = np.array([0 if value is None else value for value in exact], dtype=np.int64)
        usable = np.array([value is not None for value in exact], dtype=np.bool_)
        return Times(ns, usable, bool((ns % 1000 != 0).any()))
    with np.errstate(invalid="ignore"):
        usable = np.abs(us) <= LIMIT_US
    if needs_text(us):
        raise CoarseTimesError
    us = np.where(usable, us, 0.0)
    return Times(us_to_ns(us), usable, bool((us != np.floor(us)).any()))


def build_chunk(
    events: list[Event],
    size_bytes: int,
    interns: Interns,
    *,
    keep_frames: bool = True,
    texts: list[tuple[Decimal | None, Decimal | None]] | None = None,
) -> Chunk:
    """Columns of `events`; `texts` gives their exact `ts` and `dur` where doubles are too coarse.

    Raises CoarseTimesError if they are and no texts were given.
    """
    chunk = Chunk(events=len(events))
    groups: defaultdict[str, list[Event]] = defaultdict(list)
    # Events of a kind come in long runs.
    for (phase, category), run in groupby(events, _kind):
        groups[phase + category].extend(run)
    _split_instants(groups)
    exact = {} if texts is None else dict(zip(map(id, events), texts, strict=True))
    weights: dict[str, int] = {}
    for key, members in groups.items():
        phase = members[0].ph
        category = "cpu_instant_event" if key == "i[memory]" else members[0].cat
        group = group_of(phase, category)
        label = category or {"M": "metadata", "i": "instant"}.get(phase, "(none)")
        builder = BUILDERS.get(group)
        args = list(map(_args, members)) if builder else []
        sizes = chunk.sizes.setdefault(label, [0, 0])
        sizes[0] += len(members)
        weights[label] = weights.get(label, 0) + EVENT_BYTES * len(members) + sum(map(len, args))
        if group == "unknown":
            kind = f"{phase} {category}"
            chunk.unknown[kind] = chunk.unknown.get(kind, 0) + len(members)
        if builder is None or (group == "frame" and not keep_frames):
            continue
        pairs = [exact[id(event)] for event in members] if exact else None
        _add_part(chunk, group, label, members, args, pairs, interns)
    total = sum(weights.values())
    for label, weight in weights.items():
        chunk.sizes[label][1] += size_bytes * weight // total
    return chunk


def _split_instants(groups: defaultdict[str, list[Event]]) -> None:
    """Give the allocator's instants, which had no category before torch 1.13, a group of their own."""
    instants = groups.pop("i", [])
    for event in instants:
        groups["i[memory]" if event.name.startswith("[") else "i"].append(event)


def _add_part(
    chunk: Chunk,
    group: Group,
    label: str,
    members: list[Event],
    args: list[Raw],
    exact: list[tuple[Decimal | None, Decimal | None]] | None,
    interns: Interns,
) -> None:
    count = len(members)
    zeros = np.zeros(count, dtype=np.int64)
    start, start_ok = zeros, np.ones(count, dtype=np.bool_)
    dur, dur_ok, dur_missing = zeros, start_ok, np.zeros(count, dtype=np.bool_)
    if group != "name":
        start, start_ok, fractional = _times(
            np.fromiter(map(_ts, members), np.float64, count), [pair[0] for pair in exact] if exact else None
        )
        chunk.fractional |= fractional
        if members[0].ph == "X":
            durations = np.fromiter(map(_dur, members), np.float64, count)
            dur, dur_ok, fractional = _times(durations, [pair[1] for pair in exact] if exact else None)
            chunk.fractional |= fractional
            if not dur_ok.all():
                dur_missing = np.isnan(durations) & (not exact or np.array([p[1] is None for p in exact]))
    good = start_ok & (dur_ok | dur_missing) & (dur >= 0)
    if dur_missing.any():
        chunk.no_duration += int(dur_missing.sum())
        chunk.no_duration_example = chunk.no_duration_example or members[int(dur_missing.argmax())].name
    if not good.all():
        for i in np.flatnonzero(~good).tolist():
            chunk.refused.append(_refuse(label, members[i], exact[i] if exact else None, bool(start_ok[i])))
    names, lanes = interns.names, interns.lanes
    part = Part(
        group,
        label,
        start,
        dur,
        np.fromiter(map(lanes.__getitem__, map(_lane, members)), np.int32, count),
        np.fromiter(map(names.__getitem__, map(_name, members)), np.int32, count),
        BUILDERS[group](args, interns),
    )
    if not good.all():
        part = Part(
            group, label, start[good], dur[good], part.lane[good], part.name[good],
            {name: column[good] for name, column in part.args.items()},
        )  # fmt: skip
    chunk.parts.append(part)


def _refuse(label: str, event: Event, exact: tuple[Decimal | None, Decimal | None] | None, start_ok: bool) -> Refused:
    start, dur = exact or (event.ts, event.dur)
    if not start_ok:
        reason = "no-time" if event.ts != event.ts else "bad-time"
    else:
        reason = "negative-duration" if event.dur < 0 else "absurd-duration"
    return Refused(label, event.name, _number(start), _number(dur), reason)


def _number(value: float | Decimal | None) -> str:
    """The number as it was probably written."""
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return str(int(value)) if abs(value) < 1e18 and value == int(value) else repr(value)
    return str(value)
