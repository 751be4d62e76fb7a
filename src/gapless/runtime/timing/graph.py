"""What does the subject cost inside a CUDA graph: capture it, count its nodes, replay it?"""

from __future__ import annotations

import ctypes
import sys

import torch

from gapless.runtime.timing.backend import Run, UnavailableError

__all__ = ["CudaGraphCalls"]

_KERNEL_NODE = 0
_CHILD_NODE = 4
MAX_GRAPH_DEPTH = 8


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
        self._stream = torch.cuda.Stream()
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            # Library handles and workspaces belong to a stream and must exist before capture.
            runs[0]()
        torch.cuda.current_stream().wait_stream(self._stream)
        torch.cuda.synchronize()
        self._graph = _new_graph()
        try:
            with torch.cuda.graph(self._graph, stream=self._stream):
                for run in runs:
                    self.output = run()
                    if different:
                        self._outputs.append(self.output)
        except RuntimeError as error:
            raise UnavailableError(f"capture failed: {str(error).splitlines()[0][:160]}") from error
        self.kernel_nodes = _kernel_nodes(self._graph)
        if hasattr(self._graph, "instantiate") and self.kernel_nodes is not None:
            self._graph.instantiate()

    def replay(self) -> None:
        """Queue all captured calls on the current stream."""
        self._graph.replay()


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
