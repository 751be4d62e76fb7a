"""Are copies that only reorder, and casts whose result could be kept, told from those that are needed?"""

from __future__ import annotations

import pytest

from gapless.rules import dtype_conversion, layout_conversion
from gapless.rules._consumers import viewable
from gapless.rules.outcome import Clean

from .factory import (
    BF16_CONV,
    BF16_GEMM,
    COPY,
    MUL,
    NUMBER,
    TF32_GEMM,
    TO_NHWC,
    Arg,
    Script,
    bf16,
    context,
    f32,
    numbers,
)
from .gains import found, gains

N = 4096


def copied(t: Script, target: Arg, source: Arg, us: float, outer: str = "aten::contiguous") -> None:
    with t.op(outer, [source]), t.op("aten::clone", [source]):
        t.simple("aten::copy_", [target, source, NUMBER], COPY, us)


def cast(t: Script, target: Arg, source: Arg, us: float) -> None:
    with t.op("aten::to", [source, NUMBER]), t.op("aten::_to_copy", [source]):
        t.simple("aten::copy_", [target, source, NUMBER], COPY, us)


TURNED = bf16(N, N, strides=(1, N))


def test_a_transposed_weight_is_copied_for_a_product() -> None:
    def step(t: Script) -> None:
        copied(t, bf16(N, N), TURNED, 400)
        t.simple("aten::mm", [bf16(256, N), bf16(N, N)], BF16_GEMM, 50)

    c = context(step)
    one = found(layout_conversion.check(c))
    low, middle, _ = gains(c, one)
    assert middle == pytest.approx(450 / 52, rel=0.1)
    assert low == pytest.approx(450 / 250, rel=0.1)


def test_a_copy_that_a_view_needs() -> None:
    def step(t: Script, shape: tuple[int, ...]) -> None:
        copied(t, bf16(64, 1024, 512), bf16(64, 1024, 512, strides=(524288, 1, 1024)), 200)
        with t.op("aten::view", [bf16(64, 1024, 512), numbers(*shape)]):
            pass
        t.simple("aten::mm", [bf16(65536, 512), bf16(512, 512)], BF16_GEMM, 50)

    assert isinstance(layout_conversion.check(context(lambda t: step(t, (65536, 512)))), Clean)
    assert found(layout_conversion.check(context(lambda t: step(t, (64, 1024, 2, 256)))))


def test_a_copy_that_a_norm_would_make_itself() -> None:
    def step(t: Script) -> None:
        copied(t, bf16(N, N), TURNED, 400)
        t.simple("aten::layer_norm", [bf16(N, N), numbers(N)], MUL, 50)

    assert isinstance(layout_conversion.check(context(step)), Clean)


def test_a_result_nobody_is_seen_to_use() -> None:
    assert isinstance(layout_conversion.check(context(lambda t: copied(t, bf16(N, N), TURNED, 400))), Clean)


def test_a_plain_clone_is_no_conversion() -> None:
    def step(t: Script) -> None:
        copied(t, bf16(N, N), bf16(N, N), 400, outer="aten::clone")
        t.simple("aten::mm", [bf16(256, N), bf16(N, N)], BF16_GEMM, 50)

    assert isinstance(layout_conversion.check(context(step)), Clean)


@pytest.mark.parametrize("channels_last", [False, True])
def test_convolutions_in_nchw(channels_last: bool) -> None:
    x = bf16(64, 64, 56, 56, strides=(200704, 1, 3584, 64) if channels_last else None)

    def step(t: Script) -> None:
        with t.op("aten::cudnn_convolution", [x, bf16(128, 64, 3, 3)]):
            t.kernel(TO_NHWC, 50)
            t.kernel(BF16_CONV, 60)

    c = context(step)
    if channels_last:
        assert isinstance(layout_conversion.check(c), Clean)
    else:
        one = found(layout_conversion.check(c))
        assert gains(c, one)[1] == pytest.approx(112 / 61, rel=0.1)
        assert "channels_last" in one.fix


def test_a_weight_is_cast_up_for_a_product() -> None:
    def step(t: Script) -> None:
        cast(t, f32(N, N), bf16(N, N), 50)
        t.simple("aten::mm", [f32(512, N), f32(N, N)], TF32_GEMM, 53)

    c = context(step)
    low, middle, _ = gains(c, found(dtype_conversion.check(c)))
    assert middle == pytest.approx(105 / 30, rel=0.15)
    assert low < 2


def test_an_activation_that_is_cast_for_a_product_is_not_a_weight() -> None:
    def step(t: Script) -> None:
        cast(t, f32(N, N), bf16(N, N), 50)
        t.simple("aten::mm", [f32(N, N), f32(N, 512)], TF32_GEMM, 53)

    assert isinstance(dtype_conversion.check(context(step)), Clean)


def test_up_and_back_round_an_element_wise_op() -> None:
    def step(t: Script, reduces: bool) -> None:
        cast(t, f32(N, N), bf16(N, N), 25)
        if reduces:
            t.simple("aten::mean", [f32(N, N)], "void at::native::reduce_kernel<512, 1, MeanOps<float> >()", 20)
        t.simple("aten::mul", [f32(N, N), NUMBER], MUL, 32)
        cast(t, bf16(N, N), f32(N, N), 25)

    c = context(lambda t: step(t, False))
    assert gains(c, found(dtype_conversion.check(c)))[1] > 3
    assert isinstance(dtype_conversion.check(context(lambda t: step(t, True))), Clean)


@pytest.mark.parametrize("trains", [False, True])
def test_autocast_of_weights_counts_without_a_backward_pass_only(trains: bool) -> None:
    def step(t: Script) -> None:
        with t.op("aten::linear", [f32(512, N), f32(N, N)], seq=5 if trains else -1):
            cast(t, bf16(N, N), f32(N, N), 22)
            t.simple("aten::addmm", [bf16(N), bf16(512, N), bf16(N, N)], BF16_GEMM, 14)
        if trains:
            t.thread = 2
            with t.op("autograd::engine::evaluate_function: AddmmBackward0", seq=5, forward=1):
                t.simple("aten::mm", [bf16(512, N), bf16(N, N)], BF16_GEMM, 14)
            t.thread = 1

    outcome = dtype_conversion.check(context(step))
    if trains:
        assert isinstance(outcome, Clean)
    else:
        assert "inference_mode" in found(outcome).fix


@pytest.mark.parametrize(
    ("shape", "strides", "new", "right"),
    [
        ((4, 6), (6, 1), (24,), True),
        ((4, 6), (1, 4), (24,), False),
        ((4, 6), (1, 4), (4, 2, 3), True),
        ((2, 3, 4), (12, 4, 1), (6, 4), True),
        ((2, 3, 4), (12, 1, 3), (2, 12), False),
        ((2, 1, 4), (4, 99, 1), (8,), True),
        ((4, 6), (6, 1), (25,), False),
    ],
)
def test_viewable(shape: tuple[int, ...], strides: tuple[int, ...], new: tuple[int, ...], right: bool) -> None:
    assert viewable(shape, strides, new) is right
