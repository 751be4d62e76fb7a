"""Which colour means what? One colour-blind-safe table for terminal, page and documentation.

States of a GPU and families of causes have ten colours. They were found by a search that keeps every pair apart by at
least 12 (OKLab distance times 100) for normal sight and for simulated protanopia, deuteranopia and tritanopia, on
white as on a dark page; a test repeats the measurement. Idle time is hatched as well, so that hue is never alone.
"""

from __future__ import annotations

FAMILY_COLOURS = {
    "compute": "#2b58d6",
    "communication": "#e077ed",
    "copy": "#139b9e",
    "host": "#d56700",
    "sync": "#eedb28",
    "input": "#77e3fd",
    "memory": "#7a2a00",
    "compile": "#512a7c",
    "device": "#aebaa3",
    "unknown": "#6f5f60",
}
"""Family -> #rrggbb."""

FAMILY_TITLES = {
    "compute": "GPU computes",
    "communication": "GPU communicates",
    "copy": "GPU copies",
    "host": "idle: host busy",
    "sync": "idle: after a wait",
    "input": "idle: input",
    "memory": "idle: memory calls",
    "compile": "idle: compiling",
    "device": "idle: on the GPU's side",
    "unknown": "not known",
}
"""Family -> what a legend calls it."""

STATE_FAMILY = {"compute": "compute", "communication": "communication", "copy": "copy", "unrecorded": "unknown"}
"""State of a device -> family; `idle` goes by its cause."""

CAUSE_FAMILY = {
    "launch": "host",
    "graph-launch": "host",
    "dispatch": "host",
    "autograd": "host",
    "optimizer": "host",
    "python": "host",
    "event": "host",
    "gc": "host",
    "collective-host": "host",
    "sync-return": "sync",
    "copy-call": "sync",
    "queue-full": "sync",
    "dataloader": "input",
    "alloc": "memory",
    "free": "memory",
    "pin": "memory",
    "guard": "compile",
    "compile": "compile",
    "autotune": "compile",
    "module-load": "compile",
    "latency": "device",
    "dependency": "device",
    "queue": "device",
}
"""Cause of idle time -> family; a cause that is not listed (profiler, untraced, unrecorded, ...) is `unknown`."""

HOST_FAMILY = {
    "work": "host",
    "wait": "sync",
    "launch": "compute",
    "queue-full": "sync",
    "profiler": "unknown",
    "outside": "unknown",
}
"""State of a host thread -> family."""

BOX_COLOURS = {
    "kernel:gemm": "#2b58d6",
    "kernel:convolution": "#2145ad",
    "kernel:attention": "#5a3fd0",
    "kernel:normalization": "#3f86d9",
    "kernel:softmax": "#2f9bd0",
    "kernel:pointwise": "#6aa5ee",
    "kernel:triton": "#7d8cf5",
    "kernel:reduction": "#4b78b8",
    "kernel:embedding": "#87b7d8",
    "kernel:optimizer": "#8f7fe0",
    "kernel:copy": "#9dbdf0",
    "kernel:layout": "#b0a8ec",
    "kernel:other": "#5d7fc4",
    "kernel:collective": "#e077ed",
    "memcpy": "#139b9e",
    "memset": "#5fb8b4",
    "op": "#8593a8",
    "annotation": "#5b6b82",
    "module": "#74859c",
    "frame": "#b3bccb",
    "call": "#a98a63",
    "launch": "#d56700",
    "wait": "#eedb28",
    "alloc": "#7a2a00",
    "compile": "#512a7c",
    "overhead": "#6f5f60",
    "folded": "#c3cad6",
}
"""Kind of a box in the timeline -> #rrggbb; `kernel:<family>` falls back to `kernel:other`, the rest to `op`."""


def family(state: str, cause: str | None = None) -> str:
    """The family of a device's state, or of the cause of its idle time."""
    if state == "idle":
        return CAUSE_FAMILY.get(cause or "", "unknown")
    return STATE_FAMILY.get(state, "unknown")


def colour(state: str, cause: str | None = None) -> str:
    """The colour of a device's state, or of the cause of its idle time, as #rrggbb."""
    return FAMILY_COLOURS[family(state, cause)]


def box_colour(kind: str) -> str:
    """The colour of a box in the timeline, as #rrggbb."""
    if kind in BOX_COLOURS:
        return BOX_COLOURS[kind]
    return BOX_COLOURS["kernel:other" if kind.startswith("kernel") else "op"]
