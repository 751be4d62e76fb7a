"""Which programs and traces do the property tests try? Hypothesis strategies over the instructions of `traces`."""

from __future__ import annotations

import os
from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .traces import COPIES, KERNELS, SYNCS, Event, Instruction, run

# Few distinct lengths, zero and short ones among them, so that ties and empty intervals are common; all are even, so
# that a median of two of them is a whole nanosecond.
SHORT = st.sampled_from((0, 2, 500, 1000, 3000))
WORK = st.sampled_from((0, 2, 1000, 4000, 30_000, 90_000))
LONG = st.sampled_from((2, 1000, 40_000, 500_000, 1_500_000))
DEVICE = st.sampled_from((0, 0, 0, 1))
STREAM = st.sampled_from((7, 7, 20))
OPS = st.sampled_from(("aten::mul", "aten::item", "Optimizer.step#SGD.step", "TorchDynamo Cache Lookup", "c10d::allreduce_",
                       "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"))  # fmt: skip
FRAMES = st.sampled_from(("train.py(3): step", "nn.Module: Linear_0", "torch/optim/sgd.py(9): step", "Python GC"))
CALLS = st.sampled_from(("cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaEventRecord", "cudaStreamWaitEvent",
                         "cuModuleLoadData", "cudaStreamIsCapturing"))  # fmt: skip
OVERHEADS = st.sampled_from(("Activity Buffer Request", "Command Buffer Full", "Lazy Function Loading"))


def leaves(work: st.SearchStrategy[int], long: st.SearchStrategy[int]) -> st.SearchStrategy[Instruction]:
    """Instructions that contain no others."""
    return st.one_of(
        st.tuples(st.just("launch"), st.integers(0, len(KERNELS) - 1), DEVICE, STREAM, st.sampled_from((2, 4000)), work),
        st.tuples(st.just("think"), long),
        st.tuples(st.just("sync"), st.integers(0, len(SYNCS) - 1), SHORT),
        st.tuples(st.just("copy"), st.integers(0, len(COPIES) - 1), DEVICE, STREAM,
                  st.sampled_from((0, 4, 1 << 20)), work),
        st.tuples(st.just("graph"), DEVICE, STREAM, st.lists(work, min_size=1, max_size=3)),
        st.tuples(st.just("memset"), DEVICE, STREAM, work),
        st.tuples(st.just("call"), CALLS, SHORT),
        st.tuples(st.just("lost"), st.integers(1, 4)),
        st.tuples(st.just("orphan"), DEVICE, STREAM, work),
        st.tuples(st.just("loader"), work),
        st.tuples(st.just("overhead"), OVERHEADS, SHORT),
    )  # fmt: skip


def bodies(leaf: st.SearchStrategy[Instruction]) -> st.SearchStrategy[list[Instruction]]:
    """Lists of instructions, nested."""

    def around(inner: st.SearchStrategy[list[Instruction]]) -> st.SearchStrategy[list[Instruction]]:
        one = st.one_of(
            leaf,
            st.tuples(st.just("op"), OPS, st.sampled_from((0, 2, 2000)), inner),
            st.tuples(st.just("frame"), FRAMES, inner),
            st.tuples(st.just("mark"), st.sampled_from(("forward", "nccl:all_reduce")), inner),
            st.tuples(st.just("backward"), inner),
        )
        return st.lists(one, max_size=5)

    return st.recursive(st.lists(leaf, max_size=4), around, max_leaves=12)


RAW = st.tuples(
    st.just("raw"),
    st.sampled_from(("cpu_op", "cuda_runtime", "cuda_driver", "python_function", "user_annotation", "kernel",
                     "gpu_memcpy", "gpu_memset", "overhead", "gpu_user_annotation", "cuda_sync")),
    st.sampled_from(("aten::mul", "cudaLaunchKernel", "cudaDeviceSynchronize", "cudaMemcpyAsync", "Memcpy DtoH (x)",
                     "cudaStreamBeginCapture", "cudaGraphLaunch", "autograd::engine::evaluate_function: X",
                     "Stream Sync", "ProfilerStep#7", "ncclKernel")),
    st.integers(0, 3),
    st.sampled_from((-50_000, -2, 0, 0, 0, 1, 999, 3000)),
    st.sampled_from((0, 0, 1, 1001, 5000, 5000, 300_000)),
    st.integers(-1, 6),
)  # fmt: skip
"""Any event anywhere."""

PROPER = bodies(leaves(WORK, LONG))
WILD = bodies(st.one_of(leaves(WORK, LONG), RAW, RAW))


def traces(body: st.SearchStrategy[list[Instruction]], markers: bool | None = None) -> st.SearchStrategy[list[Event]]:
    """Events of one to four steps; the first has some GPU work, so that there is always something to account for."""
    marked = st.booleans() if markers is None else st.just(markers)
    start: Instruction = ("launch", 0, 0, 7, 4000, 30_000)
    steps = st.lists(body, min_size=1, max_size=4).map(lambda found: [[start, *found[0]], *found[1:]])
    return st.builds(lambda parts, on: run(parts, markers=on), steps, marked)


proper_traces = traces(PROPER)
"""What a recorder could have written."""

wild_traces = traces(WILD)
"""The same with events that contradict each other."""

any_traces = st.one_of(proper_traces, wild_traces)

EXAMPLES = int(os.environ.get("GAPLESS_EXAMPLES", "30"))
"""On how many traces each property is tried."""


def holds_for(*strategies: st.SearchStrategy[object], examples: int = EXAMPLES) -> Callable[..., Callable[..., None]]:
    """Try a property on traces; how long one takes is not what is tested."""
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    tried = settings(max_examples=examples, deadline=None, suppress_health_check=checks, print_blob=True)
    return lambda test: tried(given(*strategies)(test))
