"""Every recorded pair: the verdict follows what was measured, the summary names the change, swapping mirrors it all."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

import pytest

from gapless.model.diff import Diff
from gapless.render import numbers
from gapless.render.html.diff import render_diff_html

from .conftest import SHARED, Compared
from .mirror import facts, mirrored

LABELS = SHARED / "h200" / "pairs" / "labels.json"
CASES: dict[str, dict[str, Any]] = json.loads(LABELS.read_text())["cases"] if LABELS.exists() else {}
NAMES = {
    "matmul64": "torch.compile", "matmul4096": "torch.compile", "item_sync": "in aten::item is gone",
    "layer_sync": "24 waits for the GPU a step in cudaDeviceSynchronize are gone",
    "bool_mask": "20 waits for the GPU a step in aten::index are gone",
    "pageable_h2d": "50.3 MB a step now come from pinned host memory", "dataloader": "waiting for data",
    "pointwise_chain": "torch.compile", "optimizer_loop": "the optimizer runs 7 kernels a step instead of 1200",
    "decode_launch_bound": "compiled into CUDA graphs", "recompile": "1 compilation a step is gone",
    "naive_attention": "attention now runs in fused kernels", "serial_streams": "kernels run on 2 streams instead of 1",
    "feature_readback": "67.1 MB a step copied back to the host are gone",
    "position_upload": "16 small uploads a step to the GPU are gone", "cache_flush_inference": "allocating and freeing GPU memory",
    "fp32_conv": "in tf32 instead of fp32", "permute_contiguous": "16 copies into another layout a step are gone",
    "weight_upcast": "6 dtype conversions a step are gone", "gc_each_step": "pauses of the host in Python",
    "pin_large": "pinning host memory", "explicit_breaks": "torch.compile", "sleep_in_step": "pauses of the host in Python",
    "queue_full": "2400 fewer kernels a step from aten::add_",
}  # fmt: skip
"""Case -> what its summary must say was changed."""
NOISE = 1.05
"""Measured ratios this close to one say nothing about the direction of a step bound by the host."""

needs_pairs = pytest.mark.skipif(not CASES, reason="the handed pairs (../shared/traces/h200/pairs) are not here")


def compare(compared: Compared, case: str, stacks: str = "") -> Diff:
    return compared(f"h200/pairs/{case}.before{stacks}", f"h200/pairs/{case}.after{stacks}").diff


def expected(case: dict[str, Any]) -> set[str]:
    """Verdicts that the measured range allows."""
    low, high = case["speedup_range"]
    allowed = set()
    if high > NOISE:
        allowed.add("faster")
    if low < 1 / NOISE:
        allowed.add("slower")
    if low < NOISE and high > 1 / NOISE:
        allowed.add("same")
    return allowed


@needs_pairs
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("stacks", ["", ".stack"])
def test_the_verdict_follows_the_measurement(compared: Compared, case: str, stacks: str) -> None:
    if not (SHARED / "h200" / "pairs" / f"{case}.after{stacks}.json.gz").exists():
        pytest.skip("recorded without stacks only")
    speedup = compare(compared, case, stacks).speedup
    if speedup.verdict == "undecided":
        assert speedup.host_speed is not None
        assert not 0.77 <= speedup.host_speed <= 1.3, "only hosts of different speed leave it open"
    else:
        assert speedup.verdict in expected(CASES[case]), speedup


@needs_pairs
def test_undecided_where_the_two_hosts_were_not_equally_fast(compared: Compared) -> None:
    undecided = [case for case in CASES if compare(compared, case).speedup.verdict == "undecided"]
    assert undecided == ["position_upload", "sleep_in_step"]


@needs_pairs
@pytest.mark.parametrize("case", CASES)
def test_the_summary_names_the_change(compared: Compared, case: str) -> None:
    diff = compare(compared, case)
    assert NAMES[case] in diff.summary
    assert diff.summary.endswith(".")


@needs_pairs
def test_ratios_are_near_the_measured_ones(compared: Compared) -> None:
    errors = {}
    for case, label in CASES.items():
        value = compare(compared, case).speedup.value
        assert value is not None
        low, high = label["speedup_range"]
        errors[case] = max(math.log(low / value), math.log(value / high), 0.0)
    assert statistics.median(errors.values()) < 0.05
    assert max(error for case, error in errors.items() if case != "position_upload") < 0.5, errors


@needs_pairs
@pytest.mark.parametrize("case", CASES)
def test_swapping_the_files_mirrors_the_answer(compared: Compared, case: str) -> None:
    there = compare(compared, case)
    back = compared(f"h200/pairs/{case}.after", f"h200/pairs/{case}.before").diff
    assert mirrored(facts(there)) == facts(back)
    assert there.speedup.value is not None
    assert back.speedup.value == pytest.approx(1 / there.speedup.value)


@needs_pairs
@pytest.mark.parametrize("case", CASES)
def test_a_file_against_itself_is_the_same(compared: Compared, case: str) -> None:
    name = f"h200/pairs/{case}.before"
    diff = compared(name, name).diff
    assert (diff.speedup.verdict, diff.speedup.value, diff.speedup.noise) == ("same", 1.0, 0.0)
    assert diff.changes == []
    assert (
        diff.kernels.removed
        == diff.kernels.added
        == diff.kernels.fused
        == diff.copies.removed
        == diff.copies.added
        == []
    )
    assert diff.structure.changed == []
    assert all(row.before == row.after for row in diff.counts)
    assert diff.predicted is None


@needs_pairs
def test_one_program_recorded_with_and_without_stacks_is_the_same(compared: Compared, shared: Path) -> None:
    found = {}
    for case in CASES:
        for side in ("before", "after"):
            if (shared / "h200" / "pairs" / f"{case}.{side}.stack.json.gz").exists():
                diff = compared(f"h200/pairs/{case}.{side}", f"h200/pairs/{case}.{side}.stack").diff
                assert diff.comparable.status == "partly"
                assert "Python frames" in diff.comparable.withheld
                found[case, side] = diff.speedup.verdict
    wrong = {key: verdict for key, verdict in found.items() if verdict != "same"}
    assert wrong.keys() <= {("explicit_breaks", "after")}, "39 us a step: stacks cost more than the step"


@needs_pairs
def test_what_was_promised_stands_beside_what_came(compared: Compared) -> None:
    kept = {}
    for case in CASES:
        view = compared(f"h200/pairs/{case}.before", f"h200/pairs/{case}.after")
        predicted = view.diff.predicted
        if predicted is not None:
            assert predicted.realised == view.diff.speedup.value
            finding = next(f for f in view.before.report.findings if f.code == predicted.code)
            assert finding.gain.speedup == predicted.speedup
            kept[case] = predicted.kept
    assert len(kept) >= 18
    told = [value for value in kept.values() if value is not None]
    assert sum(told) >= 0.8 * len(told), kept
    assert kept["position_upload"] is None, "nothing can be said where the verdict is open"


@needs_pairs
def test_page_and_text_show_the_same_times(compared: Compared) -> None:
    diff = compare(compared, "bool_mask")
    page = render_diff_html(diff)
    for before, after in ((diff.before.recorded_ms, diff.after.recorded_ms), (diff.before.host_ms, diff.after.host_ms)):
        assert f"{numbers.milliseconds(before)} → {numbers.milliseconds(after)}" in page
