"""Do the rules on the GPU's own work stand traces that lack what they need, and the recorded pairs?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gapless.ingest import read
from gapless.replay.engine import run
from gapless.rules import (
    dtype_conversion,
    fp32_matmul,
    layout_conversion,
    serial_streams,
    unfused_attention,
    unfused_optimizer,
    unfused_pointwise,
)
from gapless.rules.outcome import Clean, Found

from .factory import MUL, Script, context, context_of

RULES = (
    dtype_conversion, fp32_matmul, layout_conversion, serial_streams, unfused_attention, unfused_optimizer,
    unfused_pointwise,
)  # fmt: skip


def no_ops(t: Script) -> None:
    for _ in range(6):
        t.kernel(MUL, 30)


def no_arguments(t: Script) -> None:
    with t.op("aten::mul"):
        t.kernel(MUL, 30)


def no_kernels(t: Script) -> None:
    with t.op("aten::mul"):
        pass
    t.synchronize()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.CODE)
@pytest.mark.parametrize("step", [no_ops, no_arguments, no_kernels], ids=lambda step: step.__name__)
@pytest.mark.parametrize("steps", [1, 4])
def test_nothing_to_say(rule: object, step: object, steps: int) -> None:
    c = context(step, steps=steps)  # type: ignore[arg-type]
    assert isinstance(rule.check(c), Clean)  # type: ignore[attr-defined]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.CODE)
def test_each_rule_has_a_page(rule: object) -> None:
    page = rule.__doc__ or ""
    assert page.startswith(f"# {rule.CODE}: ")  # type: ignore[attr-defined]
    for title in ("What it does", "Why it costs", "How the gain is computed", "When it may be wrong"):
        assert f"\n## {title}\n" in page


PAIRS = {
    "pointwise_chain": unfused_pointwise, "queue_full": unfused_pointwise, "naive_attention": unfused_attention,
    "fp32_conv": fp32_matmul, "permute_contiguous": layout_conversion, "weight_upcast": dtype_conversion,
    "optimizer_loop": unfused_optimizer, "serial_streams": serial_streams,
}  # fmt: skip


@pytest.mark.parametrize("case", PAIRS)
def test_recorded_pairs(case: str, shared: Path) -> None:
    """The fault is found before, with a range that holds the measured gain, and gone after."""
    folder = shared / "h200" / "pairs"
    rule = PAIRS[case]
    low, high = json.loads((folder / "labels.json").read_text())["cases"][case]["speedup_range"]
    c = context_of(read(folder / f"{case}.before.json.gz"))
    outcome = rule.check(c)
    assert isinstance(outcome, Found)
    edits = [outcome.cautious or outcome.edit, outcome.edit, outcome.hopeful or outcome.edit]
    before = run(c.program, c.p.machine).period_ns
    gain = [before / run(edit(c.program), c.p.machine).period_ns for edit in edits if edit is not None]
    # Host-bound times move by a tenth between runs.
    assert gain[0] / 1.1 <= high
    assert gain[2] * 1.1 >= low
    after = context_of(read(folder / f"{case}.after.json.gz"))
    left = rule.check(after)
    if isinstance(left, Found) and left.edit is not None:
        period = run(left.edit(after.program), after.p.machine).period_ns
        assert run(after.program, after.p.machine).period_ns / period < 1.05
