"""What does the subject cost inside a CUDA graph: capture it, count its nodes, replay it?"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gapless.runtime.timing.backend import Run, UnavailableError

__all__ = ["CudaGraphCalls"]

_KERNEL_NODE = 0
_CHILD_NODE = 4
MAX_GRAPH_DEPTH = 8
REPLAYS = "the call replays a graph already: its t_gpu is the time of that graph"


class CudaGraphCalls:
    """Some calls captured one after the other; `output` is what the last one returned.

    With several different runs every output is kept, so that none reuses the memory of another.
    """

    def __init__(self, runs: list[Run]) -> None:
        self.calls = len(runs)
        self.kernel_nodes: int | None = None
        self.output: object = None
        self._outputs: list[object] = []
        different = len({id(run) for run in runs}) > 1
        if any(isinstance(getattr(run, "__self__", None), torch.cuda.CUDAGraph) for run in runs):
            raise UnavailableError(REPLAYS)
        self._stream = torch.cuda.Stream()
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream), _no_replay():
            # Library handles and workspaces belong to a stream and must exist before capture.
            runs[0]()
        previous = torch.cuda.current_stream()
        previous.wait_stream(self._stream)
        torch.cuda.synchronize()
        self._graph = _new_graph()
        try:
            with warnings.catch_warnings(), torch.cuda.graph(self._graph, stream=self._stream):
                warnings.simplefilter("ignore")
                for run in runs:
                    self.output = run()
                    if different:
                        self._outputs.append(self.output)
        except BaseException as error:
            _recover(self._graph, previous)
            if not isinstance(error, RuntimeError):
                raise
            raise UnavailableError(f"capture failed: {str(error).splitlines()[0].partition('. ')[0][:100]}") from error
        self.kernel_nodes = _kernel_nodes(self._graph)
        if hasattr(self._graph, "instantiate") and self.kernel_nodes is not None:
            self._graph.instantiate()

    def replay(self) -> None:
        """Queue all captured calls on the current stream."""
        self._graph.replay()


@contextmanager
def _no_replay() -> Iterator[None]:
    """Refuse a subject that replays a graph of its own: a replay inside a capture spoils the capture."""
    original = torch.cuda.CUDAGraph.replay

    def refuse(self: torch.cuda.CUDAGraph) -> None:  # noqa: ARG001 - the name torch gives it
        raise UnavailableError(REPLAYS)

    setattr(torch.cuda.CUDAGraph, "replay", refuse)  # noqa: B010 - mypy forbids assigning a method
    try:
        yield
    finally:
        setattr(torch.cuda.CUDAGraph, "replay", original)  # noqa: B010


def _recover(graph: torch.cuda.CUDAGraph, previous: torch.cuda.Stream) -> None:
    """Undo what a failed capture leaves behind in torch.

    The capture stream stays current, allocations stay routed to the graph's pool, and the random generator believes
    that a capture is going on until one ends well.
    """
    torch.cuda.set_stream(previous)
    with contextlib.suppress(RuntimeError, AttributeError):
        torch._C._cuda_endAllocateToPool(torch.cuda.current_device(), graph.pool())
    with contextlib.suppress(RuntimeError):
        scratch = torch.zeros(1, device="cuda")
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            scratch.add_(1)
    torch.cuda.set_stream(previous)
    torch.cuda.synchronize()


def _new_graph() -> torch.cuda.CUDAGraph:
    try:
        return torch.cuda.CUDAGraph(keep_graph=True)
    except TypeError:
        return torch.cuda.CUDAGraph()


def _kernel_nodes(graph: torch.cuda.CUDAGraph) -> int | None:
    """Kernels in the captured graph; None where torch or the driver does not tell."""
    if torch.version.cuda is None or not hasattr(graph, "raw_cuda_graph"):
        return None
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        return _count(driver, ctypes.c_void_p(int(graph.raw_cuda_graph())), 0)
    except (OSError, RuntimeError, AttributeError):
        return None


def _count(driver: ctypes.CDLL, graph: ctypes.c_void_p, depth: int) -> int | None:
    size = ctypes.c_size_t()
    if depth > MAX_GRAPH_DEPTH or driver.cuGraphGetNodes(graph, None, ctypes.byref(size)) != 0:
        return None
    nodes = (ctypes.c_void_p * max(1, size.value))()
    if size.value and driver.cuGraphGetNodes(graph, nodes, ctypes.byref(size)) != 0:
        return None
    total = 0
    for node in nodes[: size.value]:
        kind = ctypes.c_int()
        if driver.cuGraphNodeGetType(ctypes.c_void_p(node), ctypes.byref(kind)) != 0:
            return None
        if kind.value == _KERNEL_NODE:
            total += 1
        elif kind.value == _CHILD_NODE:
            child = ctypes.c_void_p()
            if driver.cuGraphChildGraphNodeGetGraph(ctypes.c_void_p(node), ctypes.byref(child)) != 0:
                return None
            inner = _count(driver, child, depth + 1)
            if inner is None:
                return None
            total += inner
    return total
