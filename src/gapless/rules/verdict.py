"""What bounds the step, in one word and one sentence?

Each resource in turn is made free in the replayed program; the one whose absence shortens the step most is the bound.
A free host has nothing to wait for either: waits are its way of losing time. Ties within 2 % go to the earlier of: GPU,
communication, copy, input, compile, sync, host. Where the replay is
withheld, the largest share of the accounting answers, and where there is no GPU record, nothing does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gapless.analyses.causes import Cause
from gapless.model.report import Bound, Verdict
from gapless.replay.engine import run
from gapless.replay.program import Program
from gapless.replay.whatif import set_activity_ns, unblock
from gapless.rules.context import Context

MATH = ("gemm", "convolution", "attention")
TIE = 0.02
SYNC_CAUSES, INPUT_CAUSES, COMPILE_CAUSES = (
    ("sync-return", "free", "alloc", "pin"),
    ("dataloader",),
    ("compile", "autotune"),
)


def verdict(c: Context) -> Verdict:
    """The bound of a trace's step."""
    if c.s.raw.activities.height == 0:
        return Verdict("unknown", _without_gpu(c))
    if c.p.clean is None or c.p.unprofiled is None or c.p.withheld:
        return _by_shares(c)
    bound = _by_replay(c, c.p.unprofiled.period_ns)
    return Verdict(bound, _sentence(c, bound))


def _without_gpu(c: Context) -> str:
    if c.s.lost.launches:
        return (
            "The host launched GPU work, but no GPU record is in the file, so what holds the step back cannot be told."
        )
    return "The file holds no GPU work: only host time can be shown."


def _by_replay(c: Context, now: float) -> Bound:
    program = c.program
    families = np.array(c.families(program) or [""])
    is_copy = np.isin(families, ("memcpy",))
    is_comm = families == "collective"

    def period_of(changed: Program) -> float:
        return now if changed is program else run(changed, c.p.machine).period_ns

    empty = np.zeros(program.act_ns.size, dtype=bool)
    compute = ~is_copy & ~is_comm if program.act_ns.size else empty
    trials: list[tuple[Bound, Callable[[], Program]]] = [
        (_gpu_kind(program, families), lambda: set_activity_ns(program, compute, np.zeros(1))),
        ("communication", lambda: set_activity_ns(program, is_comm if program.act_ns.size else empty, np.zeros(1))),
        ("copy", lambda: unblock(set_activity_ns(program, is_copy if program.act_ns.size else empty, np.zeros(1)), program.item_copies)),
        ("input", lambda: _free_pieces(c, program, (Cause.DATALOADER,))),
        ("compile", lambda: _free_pieces(c, program, (Cause.COMPILE, Cause.AUTOTUNE))),
        ("sync", lambda: unblock(program, program.item_wait > 0)),
        ("host", lambda: unblock(_free_host(program), program.item_wait > 0)),
    ]  # fmt: skip
    best: Bound = "unknown"
    shortest = now
    for name, build in trials:
        period = period_of(build())
        if period < shortest - TIE * now:
            best, shortest = name, period
    if best == "host":
        # Freeing all host work also frees loading and compiling; name the part that alone frees most of it.
        parts: tuple[tuple[Bound, tuple[Cause, ...]], ...] = (
            ("input", (Cause.DATALOADER,)),
            ("compile", (Cause.COMPILE, Cause.AUTOTUNE, Cause.GUARD)),
        )
        for name, causes in parts:
            period = period_of(_free_pieces(c, program, causes))
            if now - period > 0.5 * (now - shortest):
                best = name
    return best


def _free_pieces(c: Context, program: Program, causes: tuple[Cause, ...]) -> Program:
    rows = program.piece_row
    of_row = np.where(rows >= 0, c.s.states.cause_of_row[np.maximum(rows, 0)], int(Cause.PYTHON))
    gone = np.isin(of_row, [int(cause) for cause in causes])
    if not gone.any():
        return program
    return replace(program, piece_ns=np.where(gone, 0.0, program.piece_ns))


def _free_host(program: Program) -> Program:
    return replace(program, piece_ns=program.piece_ns * 0.0, item_ns=program.item_ns * 0.0)


def _gpu_kind(program: Program, families: np.ndarray[tuple[int], np.dtype[np.str_]]) -> Bound:
    if not program.act_ns.size:
        return "gpu-compute"
    math = float(program.act_ns[np.isin(families, MATH)].sum())
    triton = float(program.act_ns[families == "triton"].sum())
    rest = float(program.act_ns[~np.isin(families, (*MATH, "memcpy", "collective", "triton"))].sum()) + triton
    return "gpu-compute" if math >= rest else "gpu-memory"


def _shares(c: Context) -> tuple[dict[str, float], dict[str, float]]:
    device = c.s.busiest
    if device is None:
        return {}, {}
    account = c.s.devices[device]
    wall = max(account.wall_ns, 1)
    states: dict[str, float] = {}
    causes: dict[str, float] = {}
    for state, cause, ns in account.parts.iter_rows():
        states[state] = states.get(state, 0.0) + ns / wall
        if cause is not None:
            causes[cause] = causes.get(cause, 0.0) + ns / wall
    return states, causes


def _by_shares(c: Context) -> Verdict:
    states, causes = _shares(c)
    if not states:
        return Verdict("unknown", "No step's GPU work is complete in this file.")
    candidates: dict[Bound, float] = {
        "gpu-compute": states.get("compute", 0.0),
        "communication": states.get("communication", 0.0),
        "copy": states.get("copy", 0.0),
        "unknown": states.get("unrecorded", 0.0),
        "input": sum(causes.get(k, 0.0) for k in INPUT_CAUSES),
        "compile": sum(causes.get(k, 0.0) for k in COMPILE_CAUSES),
        "sync": sum(causes.get(k, 0.0) for k in SYNC_CAUSES),
    }
    candidates["host"] = states.get("idle", 0.0) - candidates["input"] - candidates["compile"] - candidates["sync"]
    bound = max(candidates, key=lambda name: candidates[name])
    if bound == "unknown":
        share = states.get("unrecorded", 0.0)
        return Verdict(
            "unknown", f"For {share:.0%} of the time the GPU's work is not in the file, so no verdict is possible."
        )
    return Verdict(bound, _sentence(c, bound) + f" (By shares of time: {c.p.withheld}.)")


def _sentence(c: Context, bound: Bound) -> str:
    states, causes = _shares(c)
    busy = sum(states.get(k, 0.0) for k in ("compute", "communication", "copy"))
    idle = states.get("idle", 0.0)
    top = max(causes, key=lambda k: causes[k]) if causes else ""
    syncs = c.user_syncs.size / c.step_count if c.p.clean is not None else 0.0
    waits = f", and it stops {syncs:.0f} times a step to wait for the GPU" if syncs >= 10 else ""
    sentences: dict[Bound, str] = {
        "gpu-compute": f"The GPU is busy {busy:.0%} of the step, most of it in matrix and convolution kernels: only faster "
        "or fewer kernels make the step shorter.",
        "gpu-memory": f"The GPU is busy {busy:.0%} of the step, most of it in kernels that move memory: fusing or dropping "
        "them makes the step shorter.",
        "host": f"The host holds the step back: the GPU idles {idle:.0%} of it, most often because of {_plain(top)}{waits}.",
        "sync": f"Waiting holds the step back: the host stops for the GPU {syncs:.0f} times a step and the GPU then idles; it "
        f"idles {idle:.0%} of the step.",
        "input": f"Loading data holds the step back: the GPU idles {idle:.0%} of the step, {causes.get('dataloader', 0.0):.0%} "
        "while the next batch is made.",
        "copy": f"Copies between host and GPU hold the step back: they take {states.get('copy', 0.0):.0%} of it.",
        "communication": f"Communication holds the step back: {states.get('communication', 0.0):.0%} of the step is spent in "
        "collectives with nothing else running (waiting for other ranks included).",
        "compile": f"Compilation holds the step back: the GPU idles {idle:.0%} of the step while code is compiled or guarded.",
        "unknown": f"Nothing stands out: the GPU is busy {busy:.0%} of the step.",
    }  # fmt: skip
    return sentences[bound]


def _plain(cause: str) -> str:
    words = {
        "python": "Python code between operators", "dispatch": "preparing operators (dispatch)", "launch": "launch calls",
        "autograd": "preparing backward work", "optimizer": "the optimizer's Python code", "dataloader": "data loading",
        "guard": "torch.compile's guards", "compile": "compilation", "gc": "garbage collection",
        "sync-return": "returning from waits", "alloc": "memory allocation", "free": "freeing memory", "pin": "pinning memory",
        "latency": "launch latency", "profiler": "the profiler itself", "untraced": "something the trace does not show",
        "copy-call": "copy calls", "graph-launch": "graph launches", "event": "event handling",
        "collective-host": "preparing collectives", "module-load": "loading kernels", "dependency": "waits for other streams",
    }  # fmt: skip
    return words.get(cause, cause)
