"""What does one step of nearly nothing cost, heard by one source of steps? Prints ns per step. CPU only.

Usage: tiny_step.py optimizer|forward|dataloader|function [COUNT]. The least of many short runs: noise only ever adds.
"""

from __future__ import annotations

import json
import sys
import time

import torch
from torch import nn

torch.set_num_threads(1)
source, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
parameter = nn.Parameter(torch.ones(1))
parameter.grad = torch.ones(1)
optimizer = torch.optim.SGD([parameter], lr=1e-6) if source == "optimizer" else None
module, x = nn.Linear(4, 4), torch.ones(1, 4)
data = torch.utils.data.DataLoader(range(10**9), batch_size=None) if source == "dataloader" else None
batches = iter(data) if data is not None else None


def function() -> None:
    pass


def run(n: int) -> None:
    if source == "optimizer":
        for _ in range(n):
            optimizer.step()
    elif source == "dataloader":
        for _ in range(n):
            next(batches)
    elif source == "function":
        for _ in range(n):
            function()
    else:
        for _ in range(n):
            module(x)


with torch.no_grad():
    run(2_000)
    time.sleep(0.2)
    run(2_000)
    best = []
    for _ in range(count // 200):
        start = time.perf_counter_ns()
        run(200)
        best.append((time.perf_counter_ns() - start) / 200)
    best.sort()
    print(json.dumps({"source": source, "ns": best[len(best) // 10], "median_ns": best[len(best) // 2]}), flush=True)
