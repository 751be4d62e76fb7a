"""Are fp32 products without matrix units found by op and dtype, and is nothing promised where the host is slow?"""

from __future__ import annotations

import pytest

from gapless.rules.fp32_matmul import check
from gapless.rules.outcome import Clean, Unknown

from .factory import (
    BF16_GEMM,
    H200,
    MUL,
    SGEMM,
    TF32_GEMM,
    Arg,
    Script,
    bf16,
    context,
    context_of,
    f32,
    numbers,
    record,
)
from .gains import found, gain, gains

A = f32(4096, 4096)
FFT = "void fft2d_r2c_32x32<float, false, 5u, false>(float2*, float const*, int, int)"


def test_a_product_in_plain_fp32() -> None:
    c = context(lambda t: t.simple("aten::mm", [A, A], SGEMM, 2700))
    one = found(check(c))
    low, middle, high = gains(c, one)
    assert middle == pytest.approx(6.5, rel=0.1)
    assert low < 5.5
    assert high > middle
    assert "set_float32_matmul_precision" in one.fix


def old_gpu(name: str, major: int) -> dict[str, object]:
    return H200 | {"name": name, "computeMajor": major, "computeMinor": 0}


def test_a_gpu_with_fp16_units_alone_is_told_to_mix_precisions() -> None:
    c = context_of(
        record(lambda t: t.simple("aten::mm", [A, A], SGEMM, 10_000), device=old_gpu("Tesla V100-SXM2-16GB", 7))
    )
    one = found(check(c))
    low, middle, high = gains(c, one)
    assert low < middle < high < 8
    assert "fp16 offers 125 on V100" in one.evidence[0]
    assert "GradScaler" in one.fix


def test_a_gpu_without_matrix_units_is_not_told_to_use_them() -> None:
    raw = record(lambda t: t.simple("aten::mm", [A, A], SGEMM, 10_000), device=old_gpu("Tesla P100-SXM2-16GB", 6))
    assert isinstance(check(context_of(raw)), Clean)


def test_a_convolution_by_fft_is_one_too() -> None:
    def step(t: Script) -> None:
        with t.op("aten::cudnn_convolution", [f32(32, 256, 56, 56), f32(256, 256, 3, 3), *[numbers(1, 1)] * 3]):
            for us in (40.0, 600.0, 2000.0):
                t.kernel(FFT, us)

    c = context(step)
    assert gains(c, found(check(c)))[1] > 4


@pytest.mark.parametrize(("args", "kernel"), [([A, A], TF32_GEMM), ([bf16(4096, 4096), bf16(4096, 4096)], BF16_GEMM)])
def test_matrix_units_in_use(args: list[Arg], kernel: str) -> None:
    assert isinstance(check(context(lambda t: t.simple("aten::mm", args, kernel, 300))), Clean)


def test_element_wise_fp32_is_fine() -> None:
    assert isinstance(check(context(lambda t: t.simple("aten::mul", [A, A], MUL, 50))), Clean)


def test_a_step_that_waits_for_the_host_gains_nothing() -> None:
    def step(t: Script) -> None:
        t.python(300)
        t.simple("aten::mm", [f32(256, 256), f32(256, 256)], SGEMM, 8)

    c = context(step)
    assert gain(c, found(check(c)).edit) == pytest.approx(1.0, abs=0.01)


def test_without_shapes_it_cannot_tell() -> None:
    outcome = check(context(lambda t: t.simple("aten::mm", [A, A], SGEMM, 2700), shapes=False))
    assert isinstance(outcome, Unknown)
    assert "record_shapes" in outcome.how
