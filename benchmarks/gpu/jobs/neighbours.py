"""Runs one case as a script that times itself just before the recorder does. Prints a line of JSON.

Usage: neighbours.py CASES.py NAME WARM TIMED. After WARM steps, TIMED steps are timed from one device synchronisation to
another; the recorder is told to skip as many, so that its own unprofiled steps follow at once, in the same process and
state. `early` is how long the steps took as they came, in ten equal shares of the first WARM.
"""

from __future__ import annotations

import json
import sys
import time

from case_files import load_cases, sync


def one_step() -> None:
    step()


file, name, warm, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
step = load_cases(file)[name][0]("before")
time.sleep(0.2)  # the recorder looks for the name of the function every 20 ms
stamps = [time.perf_counter()]
for _ in range(warm):
    one_step()
    stamps.append(time.perf_counter())
sync()
start = time.perf_counter()
for _ in range(count):
    one_step()
sync()
own_ms = (time.perf_counter() - start) / count * 1e3
deadline = time.perf_counter() + 60
share = max(1, warm // 10)
early = [round((stamps[i + share] - stamps[i]) / share * 1e3, 4) for i in range(0, warm - share + 1, share)]
print(json.dumps({"case": name, "ms": own_ms, "early": early}), flush=True)
for _ in range(max(200, 8 * count)):
    if time.perf_counter() > deadline:
        break
    one_step()
sync()
