"""Are optimizers found that update in pieces, with the number of their parameters?"""

from __future__ import annotations

import pytest

from gapless.rules.outcome import Clean
from gapless.rules.unfused_optimizer import check

from .factory import FUSED_ADAM, MUL, NUMBER, Arg, Script, context, f32
from .gains import found, gains

P = f32(64, 64)
OPS = (
    "aten::mul_",
    "aten::lerp_",
    "aten::mul_",
    "aten::addcmul_",
    "aten::sqrt",
    "aten::div",
    "aten::add_",
    "aten::addcdiv_",
)


def loop(t: Script, parameters: int, name: str = "AdamW") -> None:
    with t.mark(f"Optimizer.step#{name}.step"):
        t.python(100)
        for _ in range(parameters):
            for op in OPS:
                t.simple(op, [P, NUMBER], MUL, 1)


def test_one_parameter_at_a_time() -> None:
    c = context(lambda t: loop(t, 60))
    one = found(check(c))
    assert any("about 60 parameters" in line for line in one.evidence)
    low, middle, high = gains(c, one)
    # 480 small ops against 40 us and 3 us a parameter.
    assert 10 < middle < 30
    assert low < 0.75 * middle
    assert high > 1.2 * middle
    assert "torch.optim.AdamW(model.parameters(), lr=..., fused=True)" in one.fix


def test_an_optimizer_without_a_fused_kernel() -> None:
    one = found(check(context(lambda t: loop(t, 60, "RMSprop"))))
    assert "foreach=True" in one.fix


def lists(t: Script, name: str, op: str) -> None:
    listed = Arg([[64, 64]] * 20, "TensorList", [[64, 1]] * 20)  # type: ignore[arg-type]
    with t.mark(f"Optimizer.step#{name}.step"):
        for _ in range(10):
            t.simple(op, [listed, NUMBER], FUSED_ADAM, 5, grid=20)


def test_one_list_at_a_time_where_a_fused_kernel_exists() -> None:
    one = found(check(context(lambda t: lists(t, "Adam", "aten::_foreach_mul_"))))
    assert "one list at a time" in one.title
    assert any("about 20 parameters" in line for line in one.evidence)


@pytest.mark.parametrize(("name", "op"), [("Adam", "aten::_fused_adam_"), ("RMSprop", "aten::_foreach_mul_")])
def test_as_good_as_it_gets(name: str, op: str) -> None:
    assert isinstance(check(context(lambda t: lists(t, name, op))), Clean)


def test_a_few_launches_are_no_finding() -> None:
    def step(t: Script) -> None:
        with t.mark("Optimizer.step#SGD.step"):
            for _ in range(4):
                t.simple("aten::add_", [P, P], MUL, 1)

    assert isinstance(check(context(step)), Clean)
