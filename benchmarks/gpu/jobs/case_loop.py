"""Runs one case of a file of cases as a plain script does: a loop of steps, timed by itself. Prints a line of JSON.

Usage: case_loop.py CASES.py NAME [NAME ...]. The file holds `CASES[name] = (build, ...)`, `build(variant)` gives a step.
Steps before the timing fill about two seconds (a recorder may work meanwhile); then three runs are timed.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import torch
from case_files import load_cases, sync


def timed(count: int) -> float:
    sync()
    start = time.perf_counter()
    for _ in range(count):
        one_step()
    sync()
    return (time.perf_counter() - start) / count * 1e3


def one_step() -> None:
    now["step"]()


now: dict[str, object] = {}
cases = load_cases(sys.argv[1])
for name in sys.argv[2:]:
    now["step"] = cases[name][0]("before")
    for _ in range(6):
        one_step()
    rough = timed(3)
    for _ in range(int(min(20_000, max(80, 1_500 / rough)))):
        one_step()
    count = int(min(2_000, max(5, 400 / rough)))
    runs = [timed(count) for _ in range(3)]
    print(json.dumps({"case": name, "ms": statistics.median(runs), "runs": runs}), flush=True)
    now.clear()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
