"""GPU work of a step by hand: one line a piece."""

from __future__ import annotations

from gapless.analyses.kernel_names import decode
from gapless.analyses.op_costs import op_cost
from gapless.comparison.align import Alignment, align
from gapless.comparison.work import Work

_WRAPPER = "void at::native::vectorized_elementwise_kernel<8, {}, std::array<char*, 3ul> >(int)"
ADD = _WRAPPER.format("at::native::CUDAFunctor_add<c10::BFloat16>")
GELU = _WRAPPER.format("at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#1}")
MUL = _WRAPPER.format(
    "at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >"
)
GEMM = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT"
GEMM_ADD = "nvjet_sm90_tst_256x128_64x4_1x2_h_badd_coopA_NNT"
GEMM_OTHER = "nvjet_sm90_tst_192x128_64x5_1x2_h_bz_coopB_TNT"
COPY = "Memcpy DtoD (Device -> Device)"
SHAPE, BF16 = "[1024, 1024]", '"c10::BFloat16"'


def piece(
    name: str,
    op: str | None = None,
    *,
    ns: int = 1_000,
    dims: int = 1,
    region: str | None = None,
    size: float | None = None,
    row: int = -1,
    gb: float | None = None,
) -> Work:
    """One piece: `dims` is how many 1024x1024 bf16 tensors the op takes."""
    shapes = "[" + ", ".join([SHAPE] * dims) + "]" if op else None
    types = "[" + ", ".join([BF16] * dims) + "]"
    cost = op_cost(op, shapes, types) if op else None
    return Work(
        decode(name), name, (1, 1, 1) if size is None else (int(size),), row, op, (op,) if op else (), shapes, cost,
        region, None, False, ns, size, gb,
    )  # fmt: skip


def aligned(old: list[Work], new: list[Work]) -> Alignment:
    """The two steps' pieces, aligned."""
    return align([p.keys() for p in old], [p.keys() for p in new])
