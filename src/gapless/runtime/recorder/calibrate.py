"""What does the profiler cost on this machine? Loops that are heavy in one thing, run with and without it.

A host changes its speed from one second to the next by more than the profiler costs. So each measurement under a
configuration is paired with one without the profiler right before it, and the median of the pairs' differences counts.
Only the host's time to issue an iteration is measured: the device is drained after each, outside of the clock.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch

from gapless.model.calibration import COUNTS, TENSORS_PER_LIST, Calibration, derive
from gapless.runtime.recorder import device, environment
from gapless.runtime.recorder.profiler import activities, quiet_kineto

CONFIGURATIONS: dict[str, dict[str, bool]] = {
    "cpu": {},
    "both": {},
    "shapes": {"record_shapes": True},
    "stack": {"with_stack": True},
    "memory": {"profile_memory": True},
}
ITERATIONS, MIN_ROUNDS, MAX_ROUNDS = 7, 3, 15
GPU_ONLY = ("launch", "sync", "graph_node", "item")
NEEDED = {
    "frame": ("both", "stack"),
    "tensor_list": ("both", "shapes"),
    "sync": ("both", "stack"),
    "graph_node": ("both",),
    "item": ("both",),
    "linear": ("both",),
    "backward": ("both",),
    "launch": ("both",),
}
"""Configurations that `derive` reads, for loops that need not run under all of them."""

Loop = Callable[[], object]


def measure(seconds: float = 8.0) -> Calibration:
    """Run the loops for about `seconds` (at least three rounds) and derive the costs."""
    kind = _initialised()
    loops = _loops(kind)
    _warm(loops, kind)
    pairs: dict[str, dict[str, list[tuple[float, float]]]] = {name: {} for name in loops}
    began = time.monotonic()
    for done in range(MAX_ROUNDS):
        for name, loop in loops.items():
            for configuration in NEEDED.get(name, tuple(CONFIGURATIONS)):
                pair = _one(loop, None, kind), _one(loop, configuration, kind)
                pairs[name].setdefault(configuration, []).append(pair)
        spent = time.monotonic() - began
        if done + 1 >= MIN_ROUNDS and spent * (done + 2) / (done + 1) > seconds:
            break
    return derive(
        {name: _medians(row) for name, row in pairs.items()},
        machine=environment.machine(kind),
        torch=str(torch.__version__),
        python=platform.python_version(),
        spread=_spread(pairs),
    )


def _medians(row: dict[str, list[tuple[float, float]]]) -> dict[str, float]:
    """Time without the profiler, and that plus the median difference of each configuration's pairs."""
    plain = statistics.median(without for pairs in row.values() for without, _ in pairs)
    return {"none": plain} | {c: plain + statistics.median(b - a for a, b in pairs) for c, pairs in row.items()}


def _spread(pairs: dict[str, dict[str, list[tuple[float, float]]]]) -> float:
    """How far the plain times of a loop scatter: half the rounds lie within this share of the median; median loop."""
    scatter = []
    for row in pairs.values():
        plain = sorted(without for values in row.values() for without, _ in values)
        low, high = plain[len(plain) // 4], plain[(3 * len(plain)) // 4]
        scatter.append((high - low) / statistics.median(plain))
    return round(statistics.median(scatter), 4)


def _initialised() -> str | None:
    """The accelerator of this machine, brought up; None: CPU alone."""
    current = getattr(getattr(torch, "accelerator", None), "current_accelerator", lambda: None)()
    if current is not None and current.type != "mps":
        torch.zeros(1, device=current)
    return device.in_use()


def _loops(kind: str | None) -> dict[str, Loop]:
    where = kind or "cpu"
    x = torch.randn(64, 64, device=where)
    many = [torch.randn(8, device=where) for _ in range(TENSORS_PER_LIST)]
    linear = torch.nn.Linear(64, 64, device=where)
    stack = torch.nn.Sequential(*(torch.nn.Linear(64, 64, device=where) for _ in range(COUNTS["backward"])))

    def views() -> None:
        for _ in range(COUNTS["view"]):
            x.as_strided((64,), (1,))

    def launches() -> None:
        for _ in range(COUNTS["launch"]):
            x.add_(1)

    def lists() -> None:
        for _ in range(COUNTS["tensor_list"] // TENSORS_PER_LIST):
            torch._foreach_add_(many, 1.0)

    def linears() -> None:
        with torch.no_grad():
            for _ in range(COUNTS["linear"]):
                linear(x)

    def deep(n: int) -> int:
        return n if n == 0 else deep(n - 1)

    def frames() -> None:
        for _ in range(COUNTS["frame"] // 10):
            deep(9)

    def items() -> None:
        for _ in range(COUNTS["item"]):
            x[0, 0].item()

    def syncs() -> None:
        for _ in range(COUNTS["sync"]):
            device.synchronize(kind)

    def backward() -> None:
        stack(x).sum().backward()

    loops: dict[str, Loop] = {
        "view": views,
        "launch": launches,
        "tensor_list": lists,
        "linear": linears,
        "frame": frames,
        "item": items,
        "sync": syncs,
        "backward": backward,
    }
    if kind == "cuda":
        loops["graph_node"] = _graph()
    return {name: loop for name, loop in loops.items() if kind is not None or name not in GPU_ONLY}


def _graph() -> Loop:
    y = torch.randn(64, device="cuda")
    cuda: Any = torch.cuda
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        for _ in range(3):
            y.add_(1)
    cuda.current_stream().wait_stream(side)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        for _ in range(200):
            y.add_(1)

    def replays() -> None:
        for _ in range(COUNTS["graph_node"] // 200):
            graph.replay()

    return replays


def _warm(loops: dict[str, Loop], kind: str | None) -> None:
    """Every loop once without and once with the profiler: allocations, autotuning and its own start-up."""
    for loop in loops.values():
        loop()
    for configuration in ("cpu", "both"):
        _one(loops["view"], configuration, kind)


def _one(loop: Loop, configuration: str | None, kind: str | None) -> float:
    """Median host time of an iteration in ns under one configuration; None is without the profiler."""
    profile: Any = nullcontext()
    if configuration is not None:
        profiler: Any = torch.profiler
        chosen = activities(None if configuration == "cpu" else kind)
        profile = profiler.profile(activities=chosen, **CONFIGURATIONS[configuration])
    values: list[int] = []
    with quiet_kineto(), profile:
        for i in range(ITERATIONS + 2):
            start = time.perf_counter_ns()
            loop()
            if i >= 2:
                values.append(time.perf_counter_ns() - start)
            device.synchronize(kind)
    return float(statistics.median(values))
