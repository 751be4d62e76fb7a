"""A hand-written comparison: what the page of a diff is tested on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gapless.model.diff import (
    Change,
    Comparable,
    Compile,
    CompileSide,
    Copies,
    CountRow,
    Diff,
    DiffSide,
    FusedRow,
    GraphBreak,
    KernelRow,
    Kernels,
    Predicted,
    Speedup,
    Structure,
    WaitRow,
)
from gapless.model.report import StepNumbers

BEFORE = StepNumbers(wall_ms=2.0, unprofiled_ms=1.5, gpu_busy_ms=1.2)
AFTER = StepNumbers(wall_ms=1.0, unprofiled_ms=0.7, gpu_busy_ms=0.4)


def kernel(name: str, before: float, after: float, change: Any) -> KernelRow:
    """A row of the kernel tables."""
    return KernelRow(
        name=name, name_after="", family="pointwise", dtype="bf16", tensor_core=None, tile=None, op="aten::add", op_after=None,
        shapes="[[1024, 768]]", shapes_after=None, before=before, after=after,
        before_us=2.0 if before else None, after_us=1.5 if after else None,
        before_ms=before * 0.002, after_ms=after * 0.0015, bytes=1e6, change=change,
    )  # fmt: skip


def diff(**changes: Any) -> Diff:
    """A chain of element-wise work that became one kernel."""
    base = Diff(
        tool={"name": "gapless", "version": "0.0.0"},
        before=DiffSide({"path": "runs/chain.before.json.gz"}, BEFORE, "gpu-memory", "ProfilerStep", 3),
        after=DiffSide({"path": "runs/chain.after.json.gz"}, AFTER, "host", "ProfilerStep", 3, compiled=True),
        summary="1.5 ms became 0.7 ms: five element-wise kernels became one, and 12 MB a step no longer travel.",
        comparable=Comparable("partly", ["the batch differs: 8 and 16"], ["kernels"], []),
        speedup=Speedup(2.14, 2.0, 0.05, "faster", 2.0, 2.3, None, "unprofiled", "both sides have a measured baseline"),
        counts=[CountRow("kernels", 5, 1), CountRow("bytes read and written", 18e6, 6e6, "bytes"), CountRow("graph launches", None, 1)],
        sync_sites=[],
        kernels=Kernels(
            same=[kernel("gemm", 4, 4, "same")],
            removed=[kernel("vectorized add", 3, 0, "removed"), kernel("vectorized mul", 2, 0, "removed")],
            added=[kernel("triton_poi_fused_add_mul", 0, 1, "added")],
            fused=[FusedRow("triton_poi_fused_add_mul", ["aten::add x3", "aten::mul x2"], 12e6, 1, 5, 0.01, 0.0015)],
        ),
        copies=Copies(),
        structure=Structure(),
        fusion="kernel",
        fusion_why="Five kernels became one.",
        compile=Compile(1, 2, 0, 0.1, 1.0, 0.5, 800.0, 1000, "After 1000 steps the compile time is earned back.", "given",
                        CompileSide(), CompileSide(regions=1), [GraphBreak("after", "train.py", 12, "step", "call of print", 1)]),
        waits=[WaitRow("dispatch", 0.8, 0.1, "gpu"), WaitRow("cudaStreamSynchronize", 0.4, 0.4, "host", moved_to="readback", moved_ms=0.2)],
        changes=[Change("kernels", "unfused-pointwise", "element-wise chain compiled into one kernel", 0.8)],
        predicted=Predicted(2.0, "unfused-pointwise", 2.14, "unfused-pointwise", 1.7, 2.2, True, "2.0x was predicted, 2.14x came of it."),
    )  # fmt: skip
    return replace(base, **changes)
