"""Which plain words stand for the short names of states, causes and bounds?

Every phrase completes a sentence for somebody who has never read a timeline. A name not listed is shown as it is.
"""

from __future__ import annotations

GPU_STATES = {
    "compute": "computing",
    "communication": "communicating",
    "copy": "copying",
    "unrecorded": "not recorded",
    "idle": "idle",
}
"""The GPU is ..."""

IDLE_CAUSES = {
    "sync-return": "the host was coming back from a wait for the GPU",
    "alloc": "the host was allocating memory",
    "free": "the host was freeing memory",
    "pin": "the host was pinning memory",
    "copy-call": "the host was inside a copy call",
    "graph-launch": "the host was launching a CUDA graph",
    "module-load": "the host was loading GPU code (first use)",
    "event": "the host was handling events",
    "dispatch": "the host was preparing operators (dispatch)",
    "autograd": "the autograd engine was preparing backward work",
    "optimizer": "the optimizer's Python code was running",
    "dataloader": "the host was waiting for data",
    "guard": "torch.compile was checking its guards",
    "compile": "torch.compile was compiling",
    "autotune": "kernels were being autotuned",
    "python": "Python code between operators was running",
    "collective-host": "the host was preparing a collective",
    "gc": "Python was collecting garbage",
    "profiler": "the profiler itself was working",
    "untraced": "the host did something the trace does not show",
    "launch": "the host was inside the launch call",
    "latency": "launched work was on its way to the GPU",
    "dependency": "the next work waited for other GPU work",
    "queue": "launched work waited in the queue",
    "unrecorded": "no launch was recorded for the next work",
    "sync": "the host was blocked in a wait for the GPU",
    "queue-full": "the launch queue was full",
    "end": "nothing more was launched",
}
"""The GPU is idle while ..."""

HOST_STATES = {
    "work": "working",
    "wait": "waiting",
    "launch": "launching",
    "queue-full": "held up by a full launch queue",
    "profiler": "for the profiler",
    "outside": "outside the recorded work",
}
"""The host thread is ..."""

HOST_DETAILS = {
    "dispatch": "preparing operators (dispatch)",
    "python": "Python code between operators",
    "autograd": "the autograd engine",
    "optimizer": "the optimizer's Python code",
    "dataloader": "loading data",
    "guard": "torch.compile's guards",
    "compile": "compiling (torch.compile)",
    "autotune": "autotuning kernels",
    "collective-host": "preparing collectives",
    "gc": "Python's garbage collection",
    "launch": "launch calls",
    "graph-launch": "launching CUDA graphs",
    "queue-full": "the launch queue was full",
    "copy-call": "copy calls",
    "sync": "waiting for the GPU",
    "alloc": "allocating memory",
    "free": "freeing memory",
    "pin": "pinning memory",
    "event": "handling events",
    "module-load": "loading GPU code (first use)",
    "profiler": "the profiler itself",
    "untraced": "not shown by the trace",
}
"""What the host thread was at."""

ROLES = {"main": "main thread", "autograd": "autograd thread", "loader": "loader thread", "other": "other thread"}

BOUNDS = {
    "gpu-compute": "The GPU's computing sets the pace",
    "gpu-memory": "The GPU's memory traffic sets the pace",
    "host": "The host (CPU) sets the pace",
    "sync": "Waiting for the GPU sets the pace",
    "input": "Waiting for data sets the pace",
    "copy": "Copying sets the pace",
    "communication": "Communication sets the pace",
    "compile": "Compiling sets the pace",
    "unknown": "What sets the pace cannot be told",
}
"""The short form of a verdict."""

SEVERITIES = {"note": "note", "repaired": "repaired", "loss": "data lost", "error": "error"}

TRUST_MARKS = {"ok": "ok", "note": "note", "warn": "warning", "fail": "not usable", "unknown": "cannot tell"}

GLOSSARY = (
    ("step", "one repetition of your training or serving loop"),
    ("launch", "the host asks the GPU to run something; it does not wait for it"),
    ("sync", "the host stops until the GPU has finished; a long one is GPU work being waited for, not work itself"),
    ("idle", "the GPU has nothing to run, nearly always because the host has not asked yet"),
    (
        "recorded",
        "recording slows the host down; a step without the profiler is what your stopwatch reads",
    ),
)
"""What a beginner needs to read a report."""
