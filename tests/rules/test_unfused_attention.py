"""Is attention recognised by its shapes, and its backward pass by sequence numbers?"""

from __future__ import annotations

import pytest

from gapless.rules.outcome import Clean
from gapless.rules.unfused_attention import check

from .factory import BF16_GEMM, MUL, NUMBER, SOFTMAX, SOFTMAX_BACKWARD, Arg, Script, bf16, context, f32
from .gains import found, gains

Q, K, V = bf16(64, 1024, 64), bf16(64, 64, 1024), bf16(64, 1024, 64)
S, S3 = bf16(4, 16, 1024, 1024), bf16(64, 1024, 1024)


def attention(t: Script, *, scores: Arg = S, middle: str = "aten::mul", seq: int = -1) -> None:
    for number, (name, args, kernel, us) in enumerate(
        (
            ("aten::bmm", [Q, K], BF16_GEMM, 41.0), (middle, [scores, NUMBER], MUL, 66.0),
            ("aten::_softmax", [scores, NUMBER, NUMBER], SOFTMAX, 145.0), ("aten::bmm", [S3, V], BF16_GEMM, 46.0),
        )
    ):  # fmt: skip
        with t.op(name, args, seq=seq + number if seq >= 0 else -1):
            t.kernel(kernel, us)


def test_forward() -> None:
    c = context(attention)
    one = found(check(c))
    low, middle, _ = gains(c, one)
    # 17.2 GFLOP at 40 % of 989 TFLOP/s: 43 us against 298.
    assert middle == pytest.approx(298 / 44, rel=0.15)
    assert low > 2
    assert one.sites[0].count == pytest.approx(1)
    assert "scaled_dot_product_attention" in one.fix


def test_backward_follows_sequence_numbers() -> None:
    def step(t: Script) -> None:
        attention(t, seq=100)
        t.thread = 2
        for number, (args, kernel, us) in enumerate(
            (
                ([S3, V], BF16_GEMM, 42.0),
                ([S, S], SOFTMAX_BACKWARD, 133.0),
                ([S, NUMBER], MUL, 63.0),
                ([Q, K], BF16_GEMM, 42.0),
            )
        ):
            name = ("aten::bmm", "aten::_softmax_backward_data", "aten::mul", "aten::bmm")[number]
            with t.op("autograd::engine::evaluate_function: Node", seq=103 - number, forward=1), t.op(name, args):
                t.kernel(kernel, us)
        t.thread = 1

    c = context(step)
    one = found(check(c))
    assert any("4 of the kernels are its backward pass" in line for line in one.evidence)
    forward_only = context(attention)
    assert one.edit is not None
    assert sum(one.edit(c.program).act_ns) < 0.6 * sum(c.program.act_ns)
    assert len(c.jobs) == 2 * len(forward_only.jobs)


def test_a_softmax_over_something_else_is_not_attention() -> None:
    assert isinstance(check(context(lambda t: attention(t, scores=bf16(8192, 512)))), Clean)


def test_a_classifier_is_not_attention() -> None:
    def step(t: Script) -> None:
        t.simple("aten::addmm", [bf16(1000), bf16(512, 512), bf16(512, 1000)], BF16_GEMM, 20)
        t.simple("aten::_softmax", [bf16(512, 1000), NUMBER, NUMBER], SOFTMAX, 9)
        t.simple("aten::mm", [bf16(512, 1000), bf16(1000, 512)], BF16_GEMM, 20)

    assert isinstance(check(context(step)), Clean)


def test_dropout_makes_the_fused_kernel_slower() -> None:
    plain, dropped = context(attention), context(lambda t: attention(t, middle="aten::native_dropout"))
    assert gains(dropped, found(check(dropped)))[1] < gains(plain, found(check(plain)))[1]


def test_without_shapes_the_products_stay() -> None:
    c = context(attention, shapes=False)
    one = found(check(c))
    assert gains(c, one)[1] == pytest.approx(298 / 87, rel=0.2)
    assert any("as long as the two products" in text for text in one.assumptions)


def test_fp32_attention_is_as_slow_as_its_products() -> None:
    def step(t: Script) -> None:
        t.simple("aten::bmm", [f32(64, 1024, 64), f32(64, 64, 1024)], BF16_GEMM, 400)
        t.simple("aten::_softmax", [f32(4, 16, 1024, 1024), NUMBER, NUMBER], SOFTMAX, 200)
        t.simple("aten::bmm", [f32(64, 1024, 1024), f32(64, 1024, 64)], BF16_GEMM, 400)

    c = context(step)
    assert gains(c, found(check(c)))[1] == pytest.approx(1.25, rel=0.05)
