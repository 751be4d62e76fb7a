"""What was a thread doing: the closed list of causes, and how an event's name and place decide its cause.

A cause describes host time. A call's own class wins (a launch inside the optimizer is a launch); else the innermost
region that names one (optimizer, data loading, guards, compilation ...); else `dispatch` inside an op and `python`
outside any. The list is the design's `cause` list plus `sync` (blocked in a synchronisation), `launch`, `queue-full`.
"""

from __future__ import annotations

from enum import IntEnum

from gapless.analyses.call_names import CallClass


class Cause(IntEnum):
    """Causes of host time, in the order in which reports list them."""

    PYTHON = 0
    DISPATCH = 1
    AUTOGRAD = 2
    OPTIMIZER = 3
    DATALOADER = 4
    GUARD = 5
    COMPILE = 6
    AUTOTUNE = 7
    COLLECTIVE_HOST = 8
    GC = 9
    LAUNCH = 10
    GRAPH_LAUNCH = 11
    QUEUE_FULL = 12
    COPY_CALL = 13
    SYNC = 14
    ALLOC = 15
    FREE = 16
    PIN = 17
    EVENT = 18
    MODULE_LOAD = 19
    PROFILER = 20
    UNTRACED = 21

    @property
    def label(self) -> str:
        """The name that output uses."""
        return self.name.lower().replace("_", "-")


_OF_CALL: dict[CallClass, Cause] = {
    CallClass.LAUNCH: Cause.LAUNCH,
    CallClass.GRAPH_LAUNCH: Cause.GRAPH_LAUNCH,
    CallClass.COPY: Cause.COPY_CALL,
    CallClass.MEMSET: Cause.LAUNCH,
    CallClass.SYNC_DEVICE: Cause.SYNC,
    CallClass.SYNC_STREAM: Cause.SYNC,
    CallClass.SYNC_EVENT: Cause.SYNC,
    CallClass.COPY_SYNC: Cause.SYNC,
    CallClass.ALLOC: Cause.ALLOC,
    CallClass.FREE: Cause.FREE,
    CallClass.PIN: Cause.PIN,
    CallClass.EVENT: Cause.EVENT,
    CallClass.WAIT_EVENT: Cause.EVENT,
    CallClass.MODULE: Cause.MODULE_LOAD,
    CallClass.CAPTURE: Cause.COMPILE,
}

PROFILER_OVERHEADS = ("Buffer Flush", "Activity Buffer Request", "Instrumentation", "Resource")
LOADING_OVERHEADS = ("Lazy Function Loading", "Runtime Triggered Module Loading", "Driver Compiler")
QUEUE_OVERHEADS = ("Command Buffer Full",)


def cause_of_call(kind: CallClass) -> Cause | None:
    """The cause a call's class implies; None where the surrounding region decides."""
    return _OF_CALL.get(kind)


def region_of_op(name: str) -> Cause | None:
    """The region that an op or annotation opens for what runs inside it; None if none."""
    if name.endswith("(dynamo_timed)"):
        return Cause.AUTOTUNE if _is_autotune(name) else Cause.COMPILE
    for prefix, cause in _OP_REGIONS:
        if name.startswith(prefix):
            return cause
    return None


_OP_REGIONS: tuple[tuple[str, Cause], ...] = (
    ("Optimizer.", Cause.OPTIMIZER),
    ("enumerate(DataLoader)", Cause.DATALOADER),
    ("TorchDynamo Cache Lookup", Cause.GUARD),
    ("Pregraph bytecode", Cause.GUARD),
    ("AOTDispatcher Runtime Wrapper Prologue", Cause.GUARD),
    ("autograd::engine::evaluate_function", Cause.AUTOGRAD),
    ("torch::autograd::", Cause.AUTOGRAD),
    ("c10d::", Cause.COLLECTIVE_HOST),
    ("record_param_comms", Cause.COLLECTIVE_HOST),
    ("nccl:", Cause.COLLECTIVE_HOST),
    ("gloo:", Cause.COLLECTIVE_HOST),
)


def _is_autotune(name: str) -> bool:
    lower = name.lower()
    return "autotun" in lower or "benchmark" in lower


def region_of_frame(name: str) -> Cause | None:
    """The region that a Python frame opens; None if none."""
    if name == "Python GC" or name.startswith("<built-in function collect>") or "gc.collect" in name:
        return Cause.GC
    if name.startswith(("torch/_dynamo/convert_frame.py", "torch/_inductor/compile_fx.py")):
        return Cause.COMPILE
    if name.startswith("torch/utils/data/"):
        return Cause.DATALOADER
    if name.startswith(("torch/profiler/", "torch/autograd/profiler.py")):
        return Cause.PROFILER
    if name.startswith("torch/optim/"):
        return Cause.OPTIMIZER
    return None
