"""How long does a step take when the program runs in a model of one host, its streams and a finite launch queue?

The host runs pieces and items in order. A launch takes its host time; its activity starts no earlier than `delay_ns`
after the launch ends, `spacing_ns` after the previous activity of its stream, and after what an event makes it wait
for. At most `queue` activities may be launched and not started. A blocking item returns no earlier than its own host
time allows and `return` after the awaited work ends. Deterministic, linear in items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapless.replay.program import DEVICE, NONE, Program

Float = NDArray[np.float64]
MAX_ITEMS = 6_000
"""Items replayed per what-if, about; short programs need more rounds until nothing of the start is left."""
MAX_ROUNDS = 16
LONG_PROGRAM = 12_000
"""Items from which on one round is enough: what the start changes is less than a thousandth of it."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Constants of the machine, ns, taken from the trace: see `machine_of` in `replay.overhead`."""

    delay_ns: float
    spacing_ns: float
    return_ns: float
    queue: int = 1022


@dataclass(frozen=True, slots=True)
class Run:
    """`period_ns`: time per step in the steady state. `host_ns`, `gpu_ns`: host time per step when nothing blocks, and
    GPU time of the busiest stream per step: the two floors. `ends`: end of each round's GPU work."""

    period_ns: float
    host_ns: float
    gpu_ns: float
    ends: list[float]


def run(program: Program, machine: Machine) -> Run:
    """Run a program until its period is steady."""
    before, tail = _work_before(program)
    items = len(before)
    rounds = 1 if items > LONG_PROGRAM else int(min(MAX_ROUNDS, max(4, MAX_ITEMS // max(items, 1))))
    host = sum(before) + tail + float(program.item_ns.sum())
    gpu = float(np.bincount(program.act_stream, weights=program.act_ns).max()) if program.act_ns.size else 0.0
    if items == 0:
        return Run(host, host, gpu, [host * (i + 1) for i in range(rounds)])
    act = np.searchsorted(program.act_item, np.arange(items + 1))
    back = np.where(program.item_return_ns > 0, program.item_return_ns, machine.return_ns)
    columns = (act[:-1], act[1:], program.item_ns, program.item_wait, program.item_stream, back)
    rows = list(zip(before, *(column.tolist() for column in columns), strict=True))
    act_stream, act_ns, act_after = program.act_stream.tolist(), program.act_ns.tolist(), program.act_after.tolist()
    free = [-1e18] * max(len(program.streams), 1)
    begun: list[float] = []
    clock, marks, ends = 0.0, [], []
    delay, spacing, queue = machine.delay_ns, machine.spacing_ns, machine.queue
    done = [0.0] * len(act_ns)
    for _ in range(rounds):
        # Comparisons instead of `max`: this loop is most of what a what-if costs.
        for gap, low, high, ns, wait, awaited, late in rows:
            clock += gap
            issued = clock
            clock += ns
            for a in range(low, high):
                oldest = len(begun) - queue
                if oldest >= 0 and begun[oldest] > clock:
                    clock = begun[oldest]
                stream = act_stream[a]
                start, room = clock + delay, free[stream] + spacing
                if room > start:
                    start = room
                after = act_after[a]
                if after >= 0 and done[after] + delay > start:
                    start = done[after] + delay
                begun.append(start)
                free[stream] = done[a] = start + act_ns[a]
            if wait != NONE:
                until = max(free) if wait == DEVICE or awaited < 0 else free[awaited]
                if until > issued and until + late > clock:
                    clock = until + late
        clock += tail
        marks.append(clock)
        ends.append(max(clock, *free))
    half = rounds // 2
    period = (ends[-1] - ends[half - 1]) / (rounds - half) if half else ends[-1] / rounds
    return Run(period, host, gpu, ends)


def _work_before(program: Program) -> tuple[list[float], float]:
    """Host work before each item, and after the last."""
    items = program.item_ns.size
    total = np.bincount(program.piece_item, weights=program.piece_ns, minlength=items + 1)
    return total[:items].tolist(), float(total[items:].sum())
