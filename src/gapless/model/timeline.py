"""What does a page need to draw who waits for whom? Lanes, boxes and arrows as parallel columns, ready to be packed.

Times are int64 nanoseconds since the trace's origin. Text is interned: columns hold row numbers of `strings`, whose
row 0 is ''. Boxes are sorted by (lane, depth, start) and do not overlap within one (lane, depth). Only `shown` ranges
carry boxes; `notes` says in words what was left out.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

LaneKind = Literal["device", "stream", "thread"]
ArrowKind = Literal["launch", "waits"]
Column: TypeAlias = "array[int]"


def column(values: Iterable[int] = ()) -> Column:
    """A column of int64."""
    return array("q", values)


@dataclass(frozen=True, slots=True)
class Lane:
    """One track: a device's accounting strip and queue, a GPU stream or a host thread; `rows` nested rows of boxes."""

    kind: LaneKind
    name: str
    device: int = -1
    rows: int = 1
    role: str = ""


@dataclass(frozen=True, slots=True)
class Range:
    """A named stretch of time: a step, or a part of the trace that carries boxes."""

    name: str
    start_ns: int
    end_ns: int
    used: bool = True


@dataclass(frozen=True, slots=True)
class Boxes:
    """What ran: `kind`, `name`, `words` (why, in a sentence) and `facts` (`key: value` lines) are rows of `strings`."""

    start_ns: Column = field(default_factory=column)
    dur_ns: Column = field(default_factory=column)
    lane: Column = field(default_factory=column)
    depth: Column = field(default_factory=column)
    kind: Column = field(default_factory=column)
    name: Column = field(default_factory=column)
    words: Column = field(default_factory=column)
    facts: Column = field(default_factory=column)


@dataclass(frozen=True, slots=True)
class Arrows:
    """Which box led to which: rows of boxes; `kind` 0 is a launch and its activity, 1 a wait and what it waited for."""

    source: Column = field(default_factory=column)
    target: Column = field(default_factory=column)
    kind: Column = field(default_factory=column)


@dataclass(frozen=True, slots=True)
class Strip:
    """Who owns each instant of a device: pieces without holes within `shown`; `state`, `cause` and `doing` (what the
    host was at, '' if nothing has a name) are rows of `strings`."""

    lane: Column = field(default_factory=column)
    start_ns: Column = field(default_factory=column)
    dur_ns: Column = field(default_factory=column)
    state: Column = field(default_factory=column)
    cause: Column = field(default_factory=column)
    doing: Column = field(default_factory=column)


@dataclass(frozen=True, slots=True)
class Queue:
    """How many activities were launched and had not begun, from each instant on; rows by (lane, time)."""

    lane: Column = field(default_factory=column)
    time_ns: Column = field(default_factory=column)
    depth: Column = field(default_factory=column)


@dataclass(frozen=True, slots=True)
class Chain:
    """The critical chain: pieces in time order, each inside a box (or -1 where no box holds it)."""

    start_ns: Column = field(default_factory=column)
    dur_ns: Column = field(default_factory=column)
    box: Column = field(default_factory=column)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a finding (row of the report's findings) happens; `box` -1 where no box stands for it."""

    finding: int
    start_ns: int
    dur_ns: int
    box: int


@dataclass(frozen=True, slots=True)
class Overview:
    """The whole run in equal buckets: for each, thousandths of its time by state (columns of `shares`, a family each).

    `shares[f]` has one number a bucket, for the device of the strip with the most work.
    """

    start_ns: int
    end_ns: int
    families: tuple[str, ...]
    shares: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Everything the timeline draws; see the module docstring. `focus` is the row of `steps` to show first."""

    strings: list[str]
    lanes: list[Lane]
    steps: list[Range]
    shown: list[Range]
    boxes: Boxes = field(default_factory=Boxes)
    arrows: Arrows = field(default_factory=Arrows)
    strip: Strip = field(default_factory=Strip)
    queue: Queue = field(default_factory=Queue)
    chain: Chain = field(default_factory=Chain)
    places: list[Place] = field(default_factory=list)
    overview: Overview | None = None
    focus: int = 0
    notes: list[str] = field(default_factory=list)
