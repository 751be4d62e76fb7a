"""Are runs of element-wise kernels found, and only those that a compiler could really fuse?"""

from __future__ import annotations

import pytest

from gapless.rules.outcome import Clean
from gapless.rules.unfused_pointwise import check

from .factory import ADD, BF16_GEMM, COPY, MUL, NUMBER, SUM, TANH, Script, bf16, context, f32
from .gains import found, gains

X = f32(4096, 4096)


def chain(t: Script, count: int, us: float = 34) -> None:
    for i in range(count):
        t.simple(("aten::mul", "aten::add")[i % 2], [X, NUMBER], (MUL, ADD)[i % 2], us)


def test_a_chain_becomes_one_pass_over_memory() -> None:
    c = context(lambda t: chain(t, 8))
    one = found(check(c))
    low, middle, high = gains(c, one)
    # Eight passes of 134 MB; fused one, but a second input is conceivable for none of them.
    assert 4.5 < middle < 8.5
    assert 1.5 < low < 3
    assert {site.place.op for site in one.sites} == {"aten::mul", "aten::add"}
    assert sum(site.count for site in one.sites) == pytest.approx(8)
    assert "torch.compile" in one.fix
    assert high < 9


def test_slow_functions_bound_the_fused_kernel() -> None:
    plain = context(lambda t: chain(t, 8))
    slow = context(lambda t: [t.simple("aten::tanh", [X], TANH, 34) for _ in range(8)] and None)
    assert gains(slow, found(check(slow)))[1] < gains(plain, found(check(plain)))[1]


def test_two_kernels_are_no_finding() -> None:
    assert isinstance(check(context(lambda t: chain(t, 2))), Clean)


def test_a_product_between_ends_the_run() -> None:
    def step(t: Script) -> None:
        for _ in range(3):
            chain(t, 2)
            t.simple("aten::mm", [bf16(4096, 4096), bf16(4096, 4096)], BF16_GEMM, 180)

    assert isinstance(check(context(step)), Clean)


def test_a_wait_between_ends_the_run() -> None:
    def step(t: Script) -> None:
        for _ in range(3):
            chain(t, 2)
            t.synchronize()

    assert isinstance(check(context(step)), Clean)


def test_copies_and_fills_alone_are_no_chain() -> None:
    def step(t: Script) -> None:
        for _ in range(8):
            t.simple("aten::copy_", [X, X], COPY, 40)

    assert isinstance(check(context(step)), Clean)


def test_tiny_kernels_that_wait_for_the_host() -> None:
    c = context(lambda t: [t.simple("aten::mul", [f32(64, 64)], MUL, 1) for _ in range(60)] and None)
    low, middle, _ = gains(c, found(check(c)))
    assert low > 3
    assert middle > 5


def test_a_short_host_bound_run_is_not_worth_a_compiled_call() -> None:
    c = context(lambda t: [t.simple("aten::mul", [f32(64, 64)], MUL, 1) for _ in range(4)] and None)
    assert isinstance(check(c), Clean)


def test_reductions_need_a_pass_each() -> None:
    def step(t: Script, sums: int) -> None:
        for i in range(12):
            if i % 4 == 3 and sums:
                t.simple("aten::sum", [X], SUM, 34)
            else:
                t.simple("aten::mul", [X, NUMBER], MUL, 34)

    without, with_sums = (context(lambda t, n=n: step(t, n)) for n in (0, 3))
    assert gains(with_sums, found(check(with_sums)))[1] < gains(without, found(check(without)))[1]


def test_without_shapes_less_is_claimed() -> None:
    full, blind = (context(lambda t: chain(t, 8), shapes=shapes) for shapes in (True, False))
    one = found(check(blind))
    assert gains(blind, one)[1] < gains(full, found(check(full)))[1]
    assert any("shapes were not recorded" in line for line in one.evidence)


def test_optimizers_have_their_own_rule() -> None:
    def step(t: Script) -> None:
        with t.mark("Optimizer.step#Adam.step"):
            chain(t, 40)

    assert isinstance(check(context(step)), Clean)


def test_one_step_is_enough() -> None:
    c = context(lambda t: chain(t, 8), steps=1)
    assert gains(c, found(check(c)))[1] > 3
