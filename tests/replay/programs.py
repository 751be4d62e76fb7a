"""Programs from short literals: what the host does in order, and the GPU work that hangs on it.

program(host(10), launch(4, gpu(20)), wait(1))     # 10 ns of host work, a launch of 4 ns, a wait for the device
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gapless.replay.engine import Machine
from gapless.replay.program import DEVICE, NONE, STREAM, Program

MACHINE = Machine(delay_ns=2.0, spacing_ns=1.0, return_ns=3.0)


@dataclass(frozen=True)
class Host:
    """Host work without a call."""

    ns: float


@dataclass(frozen=True)
class Gpu:
    """GPU work; `after`: how many launched activities of the step come before the one it waits for."""

    ns: float
    stream: int = 0
    after: int = -1
    nodes: int = 1


@dataclass(frozen=True)
class Call:
    """A call of the host: its own time, its GPU work, what it waits for and how late it returns (0: as usual)."""

    ns: float
    work: tuple[Gpu, ...] = ()
    wait: int = NONE
    stream: int = -1
    back: float = 0.0


def host(ns: float) -> Host:
    return Host(ns)


def gpu(ns: float, stream: int = 0, *, after: int = -1, nodes: int = 1) -> Gpu:
    return Gpu(ns, stream, after, nodes)


def launch(ns: float, *work: Gpu) -> Call:
    return Call(ns, work)


def wait(ns: float, stream: int | None = None, *, back: float = 0.0) -> Call:
    """A wait for one stream, or for the device."""
    return Call(ns, (), DEVICE if stream is None else STREAM, -1 if stream is None else stream, back)


def copy(ns: float, work: Gpu, *, back: float = 0.0) -> Call:
    """A copy that returns after it has been made."""
    return Call(ns, (work,), STREAM, work.stream, back)


def program(*does: Host | Call, streams: int = 1) -> Program:
    """The program that does this in every step. Each thing takes its place in the base step, one after the other."""
    return built(does, streams)


def built(does: Sequence[Host | Call], streams: int) -> Program:
    at = 0
    pieces: list[tuple[float, int, int, int]] = []
    items: list[tuple[Call, int]] = []
    work: list[tuple[Gpu, int]] = []
    for one in does:
        if isinstance(one, Host):
            pieces.append((one.ns, at, at + int(one.ns), len(items)))
        else:
            work += [(g, len(items)) for g in one.work]
            items.append((one, at))
        at += int(one.ns)

    def ints(values: Sequence[int]) -> np.ndarray:
        return np.array(values, dtype=np.int64)

    def floats(values: Sequence[float]) -> np.ndarray:
        return np.array(values, dtype=np.float64)

    return Program(
        base_step=0,
        base_start=0,
        base_end=at,
        aligned_steps=1,
        piece_ns=floats([p[0] for p in pieces]),
        piece_start=ints([p[1] for p in pieces]),
        piece_end=ints([p[2] for p in pieces]),
        piece_row=ints([-1 for _ in pieces]),
        piece_item=ints([p[3] for p in pieces]),
        item_call=ints(list(range(len(items)))),
        item_start=ints([start for _, start in items]),
        item_ns=floats([call.ns for call, _ in items]),
        item_wait=ints([call.wait for call, _ in items]),
        item_stream=ints([call.stream for call, _ in items]),
        item_return_ns=floats([call.back for call, _ in items]),
        item_copies=np.array([call.wait == STREAM and bool(call.work) for call, _ in items], dtype=bool),
        act_row=ints(list(range(len(work)))),
        act_item=ints([item for _, item in work]),
        act_stream=ints([g.stream for g, _ in work]),
        act_ns=floats([g.ns for g, _ in work]),
        act_nodes=ints([g.nodes for g, _ in work]),
        act_after=ints([g.after for g, _ in work]),
        streams=tuple((0, 7 + i) for i in range(streams)),
    )
