"""What does a call cost inside a graph, and does the graph really do the same work?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from gapless.runtime.timing.backend import Backend, Captured, Run, UnavailableError
from gapless.runtime.timing.result import Quantity
from gapless.runtime.timing.sampling import StopRule, collect
from gapless.runtime.timing.subject import Subject, tensors_in

__all__ = ["GraphEvidence", "graph_floor", "graph_time", "rotated_graph_time", "verify_replay"]

GRAPH_US = 500.0
MAX_CALLS = 64
POISON_INT = 85


@dataclass(frozen=True)
class GraphEvidence:
    """What H14 judges. `replay`: equal | differs | untouched (poison still there) | unknown, with the reason."""

    calls: int
    kernel_nodes: int | None
    replay: str
    why: str = ""


def graph_time(run: Run, backend: Backend, rule: StopRule, per_call_us: float) -> tuple[Quantity, Captured]:
    """t_graph: n unrolled calls in one graph; replayed behind a blocker, first replay discarded, divided by n."""
    calls = max(1, min(MAX_CALLS, math.ceil(GRAPH_US / max(per_call_us, 0.1))))
    captured = backend.capture([run] * calls)
    return _replays("t_graph", captured, backend, rule), captured


def graph_floor(backend: Backend, rule: StopRule) -> Quantity:
    """t_graph_floor: what replaying one smallest kernel costs."""
    return _replays("t_graph_floor", backend.capture([backend.one_kernel()]), backend, rule)


def rotated_graph_time(copies: list[Run], backend: Backend, rule: StopRule) -> Quantity:
    """t_graph_cold: as t_graph, each call on its own copy of the inputs, so that none finds its data in L2."""
    repeats = max(1, math.ceil(8 / len(copies)))
    captured = backend.capture(copies * repeats)
    quantity = _replays("t_graph_cold", captured, backend, rule)
    return Quantity(
        "t_graph_cold",
        quantity.samples_us,
        quantity.calls_per_sample,
        quantity.stop,
        quantity.invalid,
        quantity.why,
        f"{len(copies)} sets of inputs in turn; tensors in closures are not rotated",
    )


def _replays(name: str, captured: Captured, backend: Backend, rule: StopRule) -> Quantity:
    begin, end = backend.mark(), backend.mark()
    captured.replay()
    backend.synchronize()

    def sample() -> tuple[float, ...] | None:
        backend.synchronize()
        hold = backend.hold(200.0, self_ending=False)
        try:
            begin.record()
            captured.replay()
            end.record()
            held = hold.holding()
        finally:
            hold.release()
        backend.synchronize()
        return (begin.us_until(end) / captured.calls,) if held else None

    series = collect(sample, rule, backend.now_ns)
    if not series.columns:
        return Quantity(
            name, calls_per_sample=captured.calls, stop=series.stop, why="a replay cannot be queued behind a blocker"
        )
    return Quantity(name, series.values, captured.calls, series.stop, series.invalid)


def verify_replay(captured: Captured, subject: Subject, synchronize: Callable[[], None]) -> GraphEvidence:
    """Poison the captured outputs, replay, and compare with what the subject returns eagerly."""
    nodes, calls = captured.kernel_nodes, captured.calls
    outputs = list(tensors_in(captured.output))
    if not outputs:
        return GraphEvidence(calls, nodes, "unknown", "the call returns no tensor")
    owned = {_storage(t) for t in (*subject.inputs, *subject.parameters)}
    if any(_storage(t) in owned for t in outputs):
        return GraphEvidence(calls, nodes, "unknown", "the call returns one of its inputs, which may not be poisoned")
    with torch.no_grad():
        expected = [t.detach().clone() for t in tensors_in(subject.run())]
        for tensor in outputs:
            _poison(tensor)
        poisoned = [t.detach().clone() for t in outputs]
    captured.replay()
    synchronize()
    if len(expected) != len(outputs):
        return GraphEvidence(calls, nodes, "differs", "another number of output tensors than eagerly")
    if any(t.numel() and _same(t, p) and not _same(t, e) for t, p, e in zip(outputs, poisoned, expected, strict=True)):
        return GraphEvidence(calls, nodes, "untouched", "a poisoned output was not written by the replay")
    if not all(_same(t, e) for t, e in zip(outputs, expected, strict=True)):
        return GraphEvidence(calls, nodes, "differs", "the replay's outputs differ from the eager ones")
    return GraphEvidence(calls, nodes, "equal")


def _storage(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError):
        return 0


def _poison(tensor: torch.Tensor) -> None:
    data = tensor.detach()
    if data.is_floating_point() or data.is_complex():
        data.fill_(float("nan"))
    elif data.dtype == torch.bool:
        data.logical_not_()
    else:
        data.fill_(POISON_INT)


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not (one.is_floating_point() or one.is_complex()):
        return bool(torch.equal(one, other))
    # Kernels with atomics round differently from run to run; a stale or poisoned output is far further off.
    try:
        return bool(torch.allclose(one, other, rtol=1e-2, atol=1e-3, equal_nan=True))
    except RuntimeError:
        return bool(torch.allclose(one.float(), other.float(), rtol=1e-2, atol=1e-3, equal_nan=True))


def copies_or_reason(subject: Subject, count: int) -> list[Run]:
    """Runs on `count` sets of inputs; UnavailableError if a tensor cannot be copied."""
    try:
        return subject.copies(count)
    except (RuntimeError, TypeError) as error:
        raise UnavailableError(f"the inputs cannot be copied: {error}") from error
