"""Do launches give the occupancy that the CUDA occupancy rules give?"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from gapless.analyses.occupancy import limits_of, occupancy, state_occupancy
from gapless.model.meta import DeviceProperties
from gapless.model.peaks import LIMITS

A100, H100, T4 = LIMITS["8.0"], LIMITS["9.0"], LIMITS["7.5"]


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "warps", "share", "limit"),
    [
        (256, 240, 0, 8, 0.125, "registers"),
        (128, 255, 0, 8, 0.125, "registers"),
        (128, 32, 0, 64, 1.0, "threads"),
        (32, 16, 0, 32, 0.5, "blocks"),
        (1024, 64, 0, 32, 0.5, "registers"),
        (128, 40, 64 * 1024, 8, 0.125, "shared-memory"),
        (128, 168, 0, 12, 0.1875, "registers"),
    ],
)
def test_a100_launches(threads: int, registers: int, shared: int, warps: int, share: float, limit: str) -> None:
    found = occupancy(threads, registers, shared, A100)
    assert found is not None
    assert (found.warps, found.share, found.limited_by) == (warps, share, limit)


def test_a_small_grid_limits_too() -> None:
    found = occupancy(128, 32, 0, H100, grid_blocks=132, sms=132)
    assert found is not None
    assert (found.blocks, found.limited_by) == (1, "grid")


def test_a_launch_that_cannot_be_is_no_occupancy() -> None:
    assert occupancy(1024, 255, 0, A100) is None
    assert occupancy(0, 32, 0, A100) is None
    assert occupancy(128, 32, 10**9, A100) is None


def test_reported_zero_is_no_statement() -> None:
    assert state_occupancy(0, None, None, None, A100) is None
    assert state_occupancy(0, 256, 240, 0, None) is None
    recomputed = state_occupancy(0, 256, 240, 0, A100)
    assert recomputed is not None
    assert (recomputed.percent, recomputed.source) == (12.5, "recomputed")
    reported = state_occupancy(37, None, None, None, None)
    assert reported is not None
    assert (reported.percent, reported.source) == (37, "reported")


def test_limits_come_from_the_file_where_it_states_them() -> None:
    stated = limits_of(DeviceProperties(0, "NVIDIA H200", compute_major=9, compute_minor=0, shared_bytes_per_sm=1000))
    assert stated is not None
    assert (stated.shared_bytes_per_sm, stated.max_threads_per_sm) == (1000, 2048)
    by_name = limits_of(DeviceProperties(0, "Tesla T4"))
    assert by_name is not None
    assert by_name.max_threads_per_sm == T4.max_threads_per_sm
    assert limits_of(DeviceProperties(0, "AMD Instinct MI300X", compute_major=9, compute_minor=4, warp_size=64)) is None
    assert limits_of(DeviceProperties(0, "something new")) is None


def test_agrees_with_what_an_h200_recorder_reports(shared: Path) -> None:
    events = json.loads(gzip.decompress((shared / "h200/article/attn_math.json.gz").read_bytes()))["traceEvents"]
    kernels = [e["args"] for e in events if e.get("cat") == "kernel" and e["args"]["est. achieved occupancy %"] > 0]
    assert kernels
    for args in kernels:
        x, y, z = args["block"]
        a, b, c = args["grid"]
        found = occupancy(x * y * z, args["registers per thread"], args["shared memory"], H100, a * b * c, 132)
        assert found is not None
        # The recorder divides blocks by SMs without rounding up, so small grids read lower there.
        if a * b * c / 132 >= found.blocks:
            assert round(100 * found.share) == pytest.approx(args["est. achieved occupancy %"], abs=1)
