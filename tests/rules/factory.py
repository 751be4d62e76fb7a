"""Small traces from short literals: a host that makes ops and launches, and a GPU that runs what it is given.

def step(t):
    with t.op("aten::mul", [f32(4096, 4096), NUMBER]):
        t.kernel(MUL, 30)                 # 30 us on the GPU

raw = record(step)                        # three steps, as a profiler would have written them
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gapless.analyses.borrowed import borrow_places
from gapless.analyses.places import find_places
from gapless.analyses.study import study
from gapless.ingest import read
from gapless.ingest.raw import RawTrace
from gapless.replay.predict import predict
from gapless.rules.context import Context

ENTER_US, LEAVE_US, CALL_US, GAP_US, DELAY_US, SPACING_US, FRAME_US = 1.0, 1.0, 4.0, 3.0, 2.0, 1.0, 0.5

ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::{}, std::array<char*, 2ul> >(int)"
MUL = ELEMENTWISE.format("AUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >")
ADD = ELEMENTWISE.format("CUDAFunctor_add<float>")
TANH = ELEMENTWISE.format("tanh_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}")
COPY = ELEMENTWISE.format("direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}")
SUM = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float> >, unsigned int, float, 4> >(at::native::ReduceOp<float>)"  # noqa: E501
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 10, false, false>(c10::BFloat16*)"
SOFTMAX_BACKWARD = SOFTMAX.replace("forward", "backward")
SGEMM = "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(cutlass_80_simt_sgemm_128x64_8x5_nn_align1::Params)"
TF32_GEMM = "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas"
BF16_GEMM = "nvjet_tst_128x256_64x4_2x1_v_bz_coopB_NNT"
TO_NHWC = "void cudnn::ops::nchwToNhwcKernel<__nv_bfloat16, __nv_bfloat16, float, false, true>(cudnn::ops::nchw2nhwc_params_t)"
BF16_CONV = "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_cudnn"
FUSED_ADAM = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4> >()"  # noqa: E501

H200 = {
    "id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150109880320, "computeMajor": 9, "computeMinor": 0,
    "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048, "regsPerBlock": 65536, "warpSize": 32,
    "sharedMemPerBlock": 49152, "numSms": 132, "regsPerMultiprocessor": 65536, "sharedMemPerBlockOptin": 232448,
    "sharedMemPerMultiprocessor": 233472,
}  # fmt: skip


@dataclass(frozen=True)
class Arg:
    """One argument of an op as a recorder describes it."""

    dims: list[int]
    type: str
    strides: list[int]
    value: str = ""


def tensor(kind: str, *shape: int, strides: tuple[int, ...] | None = None) -> Arg:
    dense, size = [], 1
    for n in reversed(shape):
        dense.insert(0, size)
        size *= n
    return Arg(list(shape), kind, list(strides) if strides is not None else dense)


def f32(*shape: int, strides: tuple[int, ...] | None = None) -> Arg:
    return tensor("float", *shape, strides=strides)


def bf16(*shape: int, strides: tuple[int, ...] | None = None) -> Arg:
    return tensor("c10::BFloat16", *shape, strides=strides)


NUMBER = Arg([], "Scalar", [], "1")


def numbers(*values: int) -> Arg:
    return Arg([], "ScalarList", [], str(list(values)))


@dataclass
class Script:
    """A host with two threads (main 1, autograd 2) and a GPU; times in microseconds."""

    shapes: bool = True
    stacks: bool = False
    now: float = 1000.0
    thread: int = 1
    events: list[dict[str, object]] = field(default_factory=list)
    free: dict[int, float] = field(default_factory=dict)
    correlation: int = 0

    def _event(self, cat: str, name: str, ts: float, dur: float, **args: object) -> None:
        where = {"pid": 7, "tid": self.thread} if "stream" not in args else {"pid": 0, "tid": args["stream"]}
        self.events.append({"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, **where, "args": args})

    @contextmanager
    def op(self, name: str, args: list[Arg] | None = None, *, seq: int = -1, forward: int = 0) -> Iterator[None]:
        """An op; its launches and inner ops go inside. `seq`: autograd number; `forward`: the forward thread (backward
        ops only)."""
        start = self.now
        self.now += ENTER_US
        yield
        self.now += LEAVE_US
        described: dict[str, object] = {}
        if args and self.shapes:
            described = {
                "Input Dims": [a.dims for a in args], "Input type": [a.type for a in args],
                "Input Strides": [a.strides for a in args], "Concrete Inputs": [a.value for a in args],
            }  # fmt: skip
        if seq >= 0:
            described |= {"Sequence number": seq, "Fwd thread id": forward}
        self._event("cpu_op", name, start, self.now - start, **described)
        self.now += GAP_US

    def kernel(
        self, name: str, us: float, *, grid: int = 4096, block: int = 128, shared: int = 0, stream: int = 7
    ) -> None:
        """Launch a kernel."""
        self.correlation += 1
        self._event("cuda_runtime", "cudaLaunchKernel", self.now, CALL_US, correlation=self.correlation)
        self.now += CALL_US
        start = max(self.now + DELAY_US, self.free.get(stream, 0.0) + SPACING_US)
        self.free[stream] = start + us
        self._event(
            "kernel", name, start, us, correlation=self.correlation, stream=stream, device=0, grid=[grid, 1, 1],
            block=[block, 1, 1], **{"registers per thread": 64, "shared memory": shared},
        )  # fmt: skip

    def simple(self, name: str, args: list[Arg], kernel: str, us: float, **launch: int) -> None:
        """An op with one kernel."""
        with self.op(name, args):
            self.kernel(kernel, us, **launch)

    def synchronize(self) -> None:
        """Wait for the GPU."""
        start = self.now
        self.now = max(self.now + 3, *self.free.values(), 0) + 3
        self._event("cuda_runtime", "cudaDeviceSynchronize", start, self.now - start)

    def wait_for_copy(self, size: int = 4, us: float = 1.0) -> None:
        """Copy a value to the host and wait for it, as reads do."""
        self.correlation += 1
        self._event("cuda_runtime", "cudaMemcpyAsync", self.now, CALL_US, correlation=self.correlation)
        self.now += CALL_US
        start = max(self.now + DELAY_US, self.free.get(7, 0.0) + SPACING_US)
        self.free[7] = start + us
        self._event(
            "gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", start, us, correlation=self.correlation, stream=7, device=0,
            bytes=size,
        )  # fmt: skip
        begun = self.now
        self.now = max(self.now + 1, start + us + 3)
        self._event("cuda_runtime", "cudaStreamSynchronize", begun, self.now - begun)

    def call(self, name: str, us: float) -> None:
        """A runtime call that launches nothing."""
        self._event("cuda_runtime", name, self.now, us)
        self.now += us

    def python(self, us: float) -> None:
        """Python without any recorded event."""
        self.now += us

    @contextmanager
    def frame(self, name: str) -> Iterator[None]:
        """A Python frame; it shows only in a recording with stacks."""
        start = self.now
        self.now += FRAME_US
        yield
        self.now += FRAME_US
        if self.stacks:
            self._event("python_function", name, start, self.now - start)

    @contextmanager
    def mark(self, name: str) -> Iterator[None]:
        """An annotation."""
        start = self.now
        yield
        self._event("user_annotation", name, start, self.now - start)


def record(
    step: Callable[[Script], None], *, steps: int = 4, shapes: bool = True, device: object = H200, stacks: bool = False
) -> RawTrace:
    """The trace of so many steps."""

    def program(script: Script) -> None:
        for number in range(steps):
            with script.mark(f"ProfilerStep#{number}"):
                step(script)
            script.now += 20

    return window(program, shapes=shapes, device=device, stacks=stacks)


def window(
    program: Callable[[Script], None], *, shapes: bool = True, device: object = H200, stacks: bool = False
) -> RawTrace:
    """The trace of a program that marks its own steps, if any."""
    script = Script(shapes=shapes, stacks=stacks)
    program(script)
    script.synchronize()
    whole = {"schemaVersion": 1, "deviceProperties": [device], "traceEvents": script.events}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_text(json.dumps(whole))
        return read(path)


def context_of(raw: RawTrace, beside: RawTrace | None = None) -> Context:
    """What a rule is given for a trace; `beside` is a window with stacks."""
    studied = study(raw)
    places = find_places(raw, studied.links)
    if beside is None:
        return Context(studied, predict(studied), places)
    other = study(beside)
    borrowed = borrow_places(studied, places, other, find_places(beside, other.links))
    return Context(studied, predict(studied), borrowed.places, stacks=borrowed if borrowed.used else None)


def context(step: Callable[[Script], None], *, steps: int = 4, shapes: bool = True) -> Context:
    """What a rule is given for a program."""
    return context_of(record(step, steps=steps, shapes=shapes))
