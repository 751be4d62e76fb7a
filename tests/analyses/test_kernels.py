"""Are kernels counted, timed and measured against the device as one would by hand?"""

from __future__ import annotations

import polars as pl
import pytest

from gapless.analyses.kernels import DeviceFacts, facts_of, kernel_stats
from gapless.model.meta import DeviceProperties
from gapless.model.peaks import LIMITS, find_peaks

GEMM = "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTN"
SUM = "void splitKreduce_kernel<32, 16, int, float>(P)"
COPY = "Memcpy DtoD (Device -> Device)"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
DIMS, TYPES = "[[4096, 4096], [4096, 4096]]", '["c10::BFloat16", "c10::BFloat16"]'
H200 = DeviceFacts(find_peaks("NVIDIA H200"), LIMITS["9.0"], 132)


def frame(*rows: dict[str, object]) -> pl.DataFrame:
    """Activities with what these rows set; the rest null."""
    texts = {
        c: [r.get(c) for r in rows] for c in ("name", "kind", "op_name", "input_dims", "input_types", "concrete_inputs")
    }
    enums = {c: pl.Series(v, dtype=pl.Enum(sorted({str(t) for t in v if t is not None}))) for c, v in texts.items()}
    whole = (
        "dur_ns",
        "size_bytes",
        "block_x",
        "block_y",
        "block_z",
        "grid_x",
        "grid_y",
        "grid_z",
        "registers",
        "shared_bytes",
    )
    numbers = {c: pl.Series([r.get(c) for r in rows], dtype=pl.Int64) for c in (*whole, "op", "step")}
    occupancy = pl.Series([r.get("occupancy_pct") for r in rows], dtype=pl.Float64)
    return pl.DataFrame({**enums, **numbers, "occupancy_pct": occupancy})


def gemm(op: int, dur_ns: int, step: int = 0) -> dict[str, object]:
    return {"name": GEMM, "kind": "kernel", "op": op, "op_name": "aten::mm", "input_dims": DIMS, "input_types": TYPES,
            "dur_ns": dur_ns, "step": step}  # fmt: skip


def test_median_outliers_and_their_steps_tell_what_a_mean_hides() -> None:
    rows = [gemm(i, 580_000, step=i) for i in range(20)]
    rows[13] = gemm(13, 11_000_000, step=13)
    (row,) = kernel_stats(frame(*rows), H200).to_dicts()
    assert (row["count"], row["median_ns"], row["outliers"], row["outlier_steps"]) == (20, 580_000, 1, [13])
    assert row["mean_ns"] > 1_000_000
    assert row["share"] == 1.0


def test_rates_against_the_peak() -> None:
    (row,) = kernel_stats(frame(gemm(0, 200_000), gemm(1, 200_000)), H200).to_dicts()
    assert row["flops"] == 2 * 2 * 4096**3
    assert row["tflops"] == pytest.approx(687.19, abs=0.01)
    assert row["compute_share"] == pytest.approx(687.19 / 989.4, abs=1e-4)
    assert row["gbs"] == pytest.approx(3 * 4096 * 4096 * 2 / 200_000)


def test_helpers_get_no_work_and_several_doers_share_it_by_time() -> None:
    helper = {**gemm(0, 50_000), "name": SUM}
    stats = kernel_stats(frame(gemm(0, 200_000), helper, gemm(1, 100_000), gemm(1, 300_000)), H200)
    by_name = {row["name"]: row for row in stats.to_dicts()}
    assert by_name[SUM]["flops"] is None
    assert by_name[GEMM]["flops"] == 2 * 2 * 4096**3


def test_an_algorithm_with_fewer_operations_states_no_rate() -> None:
    winograd = {**gemm(0, 50_000), "name": "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(P)"}
    stats = kernel_stats(frame(gemm(0, 200_000), winograd), H200)
    assert stats["flops"].to_list() == [None, None]


def test_copies_inside_the_device_are_read_and_written() -> None:
    copy = {"name": COPY, "kind": "memcpy", "dur_ns": 33_000, "size_bytes": 32 << 20}
    (row,) = kernel_stats(frame(copy), H200).to_dicts()
    assert row["gbs"] == pytest.approx(2 * (32 << 20) / 33_000)
    assert row["bandwidth_share"] == pytest.approx(row["gbs"] / 4800)


def test_occupancy_is_recomputed_where_zero_was_reported() -> None:
    launch = {"block_x": 256, "block_y": 1, "block_z": 1, "grid_x": 999, "grid_y": 1, "grid_z": 1, "registers": 240}
    (row,) = kernel_stats(frame({**gemm(0, 1000), **launch, "occupancy_pct": 0.0, "shared_bytes": 0}), H200).to_dicts()
    assert (row["occupancy_pct"], row["occupancy_source"]) == (12.5, "recomputed")


def test_without_links_shapes_or_device_the_times_remain() -> None:
    bare = frame({"name": ADD, "kind": "kernel", "dur_ns": 1000}, {"name": ADD, "kind": "kernel", "dur_ns": 3000})
    table = kernel_stats(bare.drop("op", "step", "op_name", "input_dims", "input_types", "concrete_inputs"))
    (row,) = table.to_dicts()
    assert (row["count"], row["total_ns"], row["operation"]) == (2, 4000, "add")
    assert row["tflops"] is None
    assert row["gbs"] is None
    assert row["outlier_steps"] == []


def test_no_activities_give_an_empty_table_of_the_same_columns() -> None:
    full = kernel_stats(frame(gemm(0, 1000)), H200)
    empty = kernel_stats(frame(gemm(0, 1000)).clear(), H200)
    assert empty.height == 0
    assert empty.schema == full.schema


def test_rows_come_in_falling_order_and_shares_add_up() -> None:
    rows = [
        gemm(0, 100),
        {**gemm(1, 900), "input_dims": "[[1, 1], [1, 1]]"},
        {"name": ADD, "kind": "kernel", "dur_ns": 500},
    ]
    stats = kernel_stats(frame(*rows))
    assert stats["total_ns"].to_list() == [900, 500, 100]
    assert stats["share"].sum() == pytest.approx(1.0)


def test_device_facts_from_the_trace() -> None:
    facts = facts_of(DeviceProperties(0, "NVIDIA H200", compute_major=9, compute_minor=0, num_sms=132, warp_size=32))
    assert facts.peaks is not None
    assert facts.limits is not None
    amd = facts_of(DeviceProperties(0, "", compute_major=9, compute_minor=4, num_sms=304, warp_size=64))
    assert amd.peaks is not None
    assert (amd.peaks.name, amd.limits) == ("MI300X", None)
