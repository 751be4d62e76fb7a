"""Which table does an event belong to, whatever its writer called the category?

Names changed over the years (`Operator` became `cpu_op`, `Runtime` became `cuda_runtime`, ...) and vary in case, so
they are compared in lower case. ROCm uses the `cuda_*` names. A category that is not listed here is counted, not read.
"""

from __future__ import annotations

from typing import Literal

Group = Literal[
    "op", "annotation", "frame", "runtime", "driver", "kernel", "memcpy", "memset", "gpu_sync", "gpu_annotation",
    "memory", "overhead", "marker", "name", "flow", "unused", "unknown",
]  # fmt: skip

_SPANS: dict[str, Group] = {
    "": "op",  # exports without Kineto have no categories
    "cpu_op": "op", "operator": "op", "collective_comm": "op",
    "user_annotation": "annotation", "user": "annotation",
    "python_function": "frame",
    "cuda_runtime": "runtime", "runtime": "runtime", "hip_runtime": "runtime", "xpu_runtime": "runtime",
    "mtia_runtime": "runtime", "glow_runtime": "runtime", "privateuse1_runtime": "runtime", "hpu_op": "runtime",
    "cuda_driver": "driver", "xpu_driver": "driver", "privateuse1_driver": "driver",
    "kernel": "kernel", "mtia_ccp_events": "kernel",
    "gpu_memcpy": "memcpy", "memcpy": "memcpy", "gpu_memset": "memset", "memset": "memset",
    "cuda_sync": "gpu_sync", "xpu_sync": "gpu_sync",
    "gpu_user_annotation": "gpu_annotation",
    "overhead": "overhead",
    "trace": "marker",
    "cuda_event": "unused", "cuda_profiler_range": "unused", "mtia_insight": "unused", "mtia_counters": "unused",
    "hardware_counters": "unused", "xpu_scope_profiler": "unused", "graph_event_node": "unused",
    "graph_host_node": "unused", "external_correlation": "unused",
    "ac2g": "flow", "fwdbwd": "flow", "async": "flow", "cpu_to_cuda": "flow",
}  # fmt: skip

_ANNOTATIONS = (
    "ProfilerStep#", "Optimizer.step#", "Optimizer.zero_grad#", "enumerate(DataLoader)#", "DistributedDataParallel.",
)  # fmt: skip
"""User annotations that torch 1.8 to 1.11 filed among the operators."""


def group_of(phase: str, category: str) -> Group:
    """The group of an event from its `ph` and `cat`."""
    if phase == "X":
        return _SPANS.get(category.lower(), "unknown")
    if phase in ("s", "t", "f"):
        return "flow"
    if phase == "M":
        return "name"
    if phase in ("i", "I"):
        return "memory" if category.lower() == "cpu_instant_event" else "marker"
    if phase == "C":
        return "unused"
    return "unknown"


def is_annotation(name: str) -> bool:
    """Whether an event filed as an operator is one of torch's own annotations."""
    return name.startswith(_ANNOTATIONS)
