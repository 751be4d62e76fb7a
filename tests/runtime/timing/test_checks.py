"""Each honesty check, both ways: it speaks where it must and is silent where it should be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gapless.runtime.timing.checks import judge_all
from gapless.runtime.timing.facts import Facts
from gapless.runtime.timing.graph_time import GraphEvidence
from gapless.runtime.timing.nvml import GpuState
from gapless.runtime.timing.quantities import Stray
from gapless.runtime.timing.result import Quantity, Verdict

STEADY = tuple(100 + 0.01 * ((i * 7) % 11) for i in range(40))
CALM = GpuState(1980, 1980, 300.0, 700.0, 50, 0, 1, False, "580")


def series(name: str, *values: float, calls: int = 1, mhz=()) -> Quantity:
    return Quantity(name, values, calls, "precise", mhz=mhz)


def good() -> Facts:
    gpu = series("t_gpu", *STEADY, calls=2, mhz=(1980.0,) * 40)
    found = {
        "t_naive": series("t_naive", 110.0),
        "t_lat": series("t_lat", 120.0),
        "t_gpu": gpu,
        "t_floor": series("t_floor", 1.3),
        "t_gpu_cold": series("t_gpu_cold", 130.0),
        "t_gpu_again": series("t_gpu_again", 101.0),
    }
    return Facts(
        verdict=Verdict("gpu-bound", 0.1, "fine"),
        headline=gpu,
        quantities=found,
        on_gpu=True,
        distortions=([], []),
        patched=[],
        stray=Stray(1.0, 5.0, 120.0, 0),
        syncs=(),
        grown={"num_device_alloc": 0, "frames_compiled": 0},
        allocations_seen=True,
        before=CALM,
        after=CALM,
        constant=[],
        mutated=[],
        first_sum=[1.0],
        last_sum=[1.0],
        graph=GraphEvidence(4, 8, "equal"),
        eager_kernels=2.0,
        footprint_bytes=1000,
        l2_bytes=50 << 20,
        flops=1e9,
        peak_flops=1e15,
    )


def status(facts: Facts, check_id: str) -> str:
    return next(c.status for c in judge_all(facts) if c.id == check_id)


def test_a_clean_measurement_passes_all_twenty():
    checks = judge_all(good())
    assert [c.id for c in checks] == [f"H{i:02}" for i in range(1, 21)]
    assert {c.id: c.status for c in checks if c.status != "pass"} == {}


@pytest.mark.parametrize(
    ("check_id", "change", "expected"),
    [
        ("H02", {"verdict": Verdict("inconsistent", 1.0, "?")}, "fail"),
        ("H02", {"verdict": Verdict("unknown", None, "?")}, "unknown"),
        ("H02", {"verdict": Verdict("launch-bound", 3.0, "?")}, "warn"),
        ("H03", {"stray": Stray(300.0, 5.0, 500.0, 0)}, "fail"),
        ("H03", {"stray": Stray(30.0, 5.0, 5000.0, 0)}, "pass"),
        ("H03", {"stray": Stray(0.0, 5.0, 500.0, 2)}, "warn"),
        ("H03", {"stray": None}, "unknown"),
        ("H04", {"syncs": ("train.py:7 (operation, 1x)",)}, "warn"),
        ("H04", {"stalls": "does not return while held"}, "warn"),
        ("H04", {"syncs": None}, "unknown"),
        ("H05", {"grown": {"num_device_alloc": 2}}, "warn"),
        ("H05", {"allocations_seen": False}, "unknown"),
        ("H06", {"grown": {"frames_compiled": 1}}, "fail"),
        ("H07", {"after": replace(CALM, reasons=0x40)}, "warn"),
        ("H07", {"after": replace(CALM, reasons=0x4)}, "pass"),
        ("H07", {"before": None, "after": None}, "unknown"),
        ("H09", {"after": replace(CALM, processes=3)}, "warn"),
        ("H09", {"after": replace(CALM, mig=True)}, "warn"),
        ("H09", {"before": None, "after": None}, "unknown"),
        ("H10", {"headline": series("t_gpu_cold", *(4.0,) * 30)}, "warn"),
        ("H11", {"constant": ["tensor 0 holds one value"]}, "warn"),
        ("H11", {"constant": None}, "unknown"),
        ("H12", {"mutated": [0]}, "warn"),
        ("H12", {"accumulated": True}, "warn"),
        ("H12", {"mutated": None}, "unknown"),
        ("H13", {"last_sum": [2.0]}, "warn"),
        ("H13", {"last_sum": [1.00001]}, "pass"),
        ("H13", {"first_sum": [float("nan")], "last_sum": [float("nan")]}, "pass"),
        ("H13", {"first_sum": None}, "unknown"),
        ("H14", {"graph": GraphEvidence(4, 8, "untouched", "stale")}, "fail"),
        ("H14", {"graph": GraphEvidence(4, 6, "equal")}, "fail"),
        ("H14", {"graph": GraphEvidence(4, None, "equal")}, "pass"),
        ("H14", {"graph": GraphEvidence(4, 8, "unknown", "no tensor")}, "unknown"),
        ("H14", {"graph": None}, "unknown"),
        ("H15", {"distortions": (["CUDA_LAUNCH_BLOCKING is set"], [])}, "fail"),
        ("H15", {"distortions": ([], ["a tool"])}, "warn"),
        ("H16", {"headline": series("t_gpu", *([100.0] * 20 + [150.0] * 20))}, "warn"),
        ("H16", {"headline": series("t_gpu", 1.0, 2.0)}, "unknown"),
        ("H18", {"headline": series("t_gpu", 1.0, 2.0)}, "warn"),
        ("H18", {"headline": Quantity("t_gpu", why="none")}, "unknown"),
        ("H19", {"patched": ["time.perf_counter"]}, "fail"),
        ("H20", {"flops": 1e15}, "fail"),
        ("H20", {"flops": None}, "unknown"),
        ("H20", {"peak_flops": None}, "unknown"),
    ],
)
def test_each_check_speaks_where_it_must(check_id, change, expected):
    assert status(replace(good(), **change), check_id) == expected


def test_unsynced_clock_is_shown_with_its_error():
    facts = good()
    facts = replace(facts, quantities={**facts.quantities, "t_naive": series("t_naive", 12.0)})
    check = judge_all(facts)[0]
    assert check.status == "warn" and "12 us" in check.evidence and "10x" in check.evidence


def test_clock_noise_is_told_from_other_noise():
    facts = good()
    clocks = tuple(1500.0 + 10 * (i % 40) for i in range(40))
    by_clock = series("t_gpu", *(2e5 / f for f in clocks), mhz=clocks)
    facts = replace(facts, quantities={**facts.quantities, "t_gpu": by_clock})
    assert status(facts, "H08") == "warn"
    facts = replace(facts, quantities={**facts.quantities, "t_gpu": series("t_gpu", *STEADY)})
    assert status(facts, "H08") == "unknown"


def test_warm_slower_than_cold_is_a_contradiction():
    facts = good()
    facts = replace(facts, quantities={**facts.quantities, "t_gpu_again": series("t_gpu_again", 140.0)})
    assert status(facts, "H17") == "warn"
    facts = replace(facts, quantities={**facts.quantities, "t_gpu_again": series("t_gpu_again", 130.0)})
    check = next(c for c in judge_all(facts) if c.id == "H17")
    assert check.status == "pass" and "no effect" in check.evidence


def test_nothing_observed_is_never_a_pass():
    empty = Facts(
        verdict=Verdict("unknown", None, "?"),
        headline=Quantity("t_lat", why="not measured"),
        quantities={},
        on_gpu=False,
        distortions=([], []),
        patched=[],
    )
    checks = judge_all(empty)
    assert {c.id for c in checks if c.status == "pass"} == {"H06", "H15", "H19"}, "these look at the process itself"
    assert {c.status for c in checks} == {"pass", "unknown"}
