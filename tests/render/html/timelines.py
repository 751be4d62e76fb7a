"""Hand-written timelines: what the packing, the page and the exports are tested on."""

from __future__ import annotations

from gapless.model.timeline import (
    Arrows,
    Boxes,
    Chain,
    Lane,
    Overview,
    Place,
    Queue,
    Range,
    Strip,
    Timeline,
    column,
)


def small(origin: int = 0) -> Timeline:
    """One GPU with a stream, one thread: an op launches a kernel, a wait waits for it. `origin` shifts all times."""
    o = origin
    strings = ["", "op", "aten::mm", "launch", "cudaLaunchKernel", "wait", "cudaStreamSynchronize", "kernel:gemm",
               "gemm 128x64", "The host stands still for 3 µs.", "grid: 1 x 2 x 3\nfull name: void gemm<128>(float*)",
               "compute", "idle", "dispatch"]  # fmt: skip
    lanes = [
        Lane("device", "GPU 0 · NVIDIA H200", 0),
        Lane("stream", "GPU 0 · stream 7", 0),
        Lane("thread", "Main thread · 1", -1, 2, "host"),
    ]
    boxes = Boxes(
        start_ns=column([o + 2000, o + 1000, o + 4000, o + 1200]),
        dur_ns=column([4000, 800, 3000, 500]),
        lane=column([1, 2, 2, 2]),
        depth=column([0, 0, 0, 1]),
        kind=column([7, 1, 5, 3]),
        name=column([8, 2, 6, 4]),
        words=column([0, 0, 9, 0]),
        facts=column([10, 0, 0, 0]),
    )
    return Timeline(
        strings=strings,
        lanes=lanes,
        steps=[Range("ProfilerStep#1", o + 1000, o + 8000)],
        shown=[Range("ProfilerStep#1", o + 1000, o + 8000)],
        boxes=boxes,
        arrows=Arrows(column([3, 2]), column([0, 0]), column([0, 1])),
        strip=Strip(
            lane=column([0, 0, 0]),
            start_ns=column([o + 1000, o + 2000, o + 6000]),
            dur_ns=column([1000, 4000, 2000]),
            state=column([12, 11, 12]),
            cause=column([13, 0, 13]),
            doing=column([2, 0, 0]),
        ),
        queue=Queue(column([0, 0]), column([o + 1200, o + 2000]), column([1, 0])),
        chain=Chain(column([o + 1200, o + 2000]), column([500, 4000]), column([3, 0])),
        places=[Place(0, o + 4000, 3000, 2)],
        overview=Overview(o + 1000, o + 8000, ("compute", "host"), (column([500] * 4), column([500] * 4))),
        notes=["events of 1 of 9 steps are drawn"],
    )
