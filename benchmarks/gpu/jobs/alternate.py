"""Times one case in turn by itself and by the recorder's baseline, many times in one process. Prints a line of JSON.

Usage: alternate.py CASES.py NAME [ROUNDS]. A host's speed drifts by more than 3 % within a second, so that one timing
beside another proves little; the median of neighbours' ratios does. Which of the two comes first changes every round.
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
import time

from case_files import load_cases, sync

from gapless.runtime.recorder.baseline import BEFORE, Segment


def one_step() -> None:
    step()


def recorders() -> float:
    segment = Segment(sync, BEFORE)
    segment.start()
    while True:
        one_step()
        if segment.tick():
            return float(segment.close() or 0.0)


def own(count: int) -> float:
    sync()
    start = time.perf_counter()
    for _ in range(count):
        one_step()
    sync()
    return (time.perf_counter() - start) / count * 1e3


file, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 12
step = load_cases(file)[name][0]("before")
own(5)
began = time.perf_counter()
while time.perf_counter() - began < 1.0:
    own(5)
count = max(4, round(BEFORE.seconds * 1e3 / own(10)))
pairs = []
for turn in range(rounds):
    mine = own(count) if turn % 2 else None
    theirs = recorders()
    pairs.append((mine if mine is not None else own(count), theirs))
ratios = sorted(theirs / mine for mine, theirs in pairs)
between = [abs(b[0] / a[0] - 1) for a, b in itertools.pairwise(pairs)]
print(json.dumps({
    "case": name, "ms": statistics.median(mine for mine, _ in pairs), "ratio": statistics.median(ratios),
    "low": ratios[len(ratios) // 4], "high": ratios[-1 - len(ratios) // 4], "own_drift": statistics.median(between),
}), flush=True)  # fmt: skip
