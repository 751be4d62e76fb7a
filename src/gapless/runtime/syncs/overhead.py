"""What does one watched torch call cost more than an unwatched one, on this machine, now?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack

import torch

_CALLS = 200
_ROUNDS = 3


def cost_per_call_ns(layers: Sequence[AbstractContextManager[object]], calls_per_op: int, device: str) -> float:
    """Extra host time of one call under `layers`; best of three rounds of 200 tiny ops, about 5 ms in all."""
    if not layers or calls_per_op == 0:
        return 0.0
    # During a graph capture the ops would become part of the graph.
    capturing = device == "cuda" and torch.cuda.is_current_stream_capturing()
    tensor = torch.zeros(1, device="cpu" if capturing else device)
    plain_ns = _best_ns(tensor)
    with ExitStack() as stack:
        for layer in layers:
            stack.enter_context(layer)
        watched_ns = _best_ns(tensor)
    return max(watched_ns - plain_ns, 0) / (_CALLS * calls_per_op)


def _best_ns(tensor: torch.Tensor) -> int:
    best = None
    for _ in range(_ROUNDS):
        begin_ns = time.perf_counter_ns()
        for _ in range(_CALLS):
            torch.neg(tensor)
        spent_ns = time.perf_counter_ns() - begin_ns
        best = spent_ns if best is None else min(best, spent_ns)
    return best or 0
