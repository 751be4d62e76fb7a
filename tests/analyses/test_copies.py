"""Do copies know their direction and the host memory at their end, under every way of writing it?"""

from __future__ import annotations

import polars as pl
import pytest

from gapless.analyses.copies import copy_stats, copy_traits


@pytest.mark.parametrize(
    ("name", "direction", "host"),
    [
        ("Memcpy HtoD (Pageable -> Device)", "HtoD", "pageable"),
        ("Memcpy HtoD (Pinned -> Device)", "HtoD", "pinned"),
        ("Memcpy DtoH (Device -> Pageable)", "DtoH", "pageable"),
        ("Memcpy DtoH (Device -> Pinned)", "DtoH", "pinned"),
        ("Memcpy HtoD (pageable -> device)", "HtoD", "pageable"),
        ("Memcpy DtoD (Device -> Device)", "DtoD", "device"),
        ("Memcpy PtoP (Device -> Device)", "PtoP", "device"),
        ("Memcpy HtoD (Host -> Device)", "HtoD", "unknown"),
        ("Memcpy DtoH (Device -> Managed)", "DtoH", "managed"),
        ("Memcpy <unknown> (Pinned -> Device)", "HtoD", "pinned"),
        ("Memcpy AtoD (Array -> Device)", "DtoD", "device"),
        ("CopyHostToDevice", "HtoD", "unknown"),
        ("Memcpy D2M", "DtoH", "unknown"),
        ("Memcpy", "unknown", "unknown"),
        ("Memcpy (" + " " * 5000, "unknown", "unknown"),
    ],
)
def test_names(name: str, direction: str, host: str) -> None:
    traits = copy_traits(name)
    assert (traits.direction, traits.host_memory, traits.inferred) == (direction, host, "")


def test_a_rocm_read_back_named_dtod_is_a_copy_to_the_host() -> None:
    name = "Memcpy DtoD (Device -> Device)"
    item = copy_traits(name, "hipMemcpyWithStream", "aten::_local_scalar_dense")
    assert (item.direction, item.host_memory) == ("DtoH", "pinned")
    assert item.inferred
    assert copy_traits(name, "hipMemcpyWithStream", "aten::copy_", "DtoH").direction == "DtoH"
    assert copy_traits(name, "hipMemcpyAsync", "aten::copy_").direction == "DtoD"
    assert copy_traits(name, "cudaMemcpyAsync", "aten::_local_scalar_dense").direction == "DtoD"


def _activities() -> pl.DataFrame:
    kinds, names = (
        ["kernel", "memcpy", "memcpy", "memset"],
        ["k", "Memcpy HtoD (Pageable -> Device)", "Memset (Device)"],
    )
    return pl.DataFrame(
        {
            "start_ns": [100, 150, 300, 0],
            "dur_ns": [100, 100, 50, 10],
            "device": pl.Series([0, 0, 0, 0], dtype=pl.Int32),
            "kind": pl.Series(kinds, dtype=pl.Enum(["kernel", "memcpy", "memset"])),
            "name": pl.Series([names[0], names[1], names[1], names[2]], dtype=pl.Enum(names)),
            "size_bytes": [None, 4000, 2000, 8],
            "op_name": pl.Series([None, "aten::copy_", "aten::copy_", None], dtype=pl.Enum(["aten::copy_"])),
        }
    )


def test_copies_are_grouped_and_exposed_time_is_what_no_kernel_hides() -> None:
    rows = copy_stats(_activities()).to_dicts()
    assert rows == [
        {
            "direction": "HtoD", "host_memory": "pageable", "op_name": "aten::copy_", "inferred": "", "count": 2,
            "bytes": 6000, "total_ns": 150, "exposed_ns": 100, "gbs": 40.0,
        }
    ]  # fmt: skip


def test_no_copies_give_an_empty_table() -> None:
    table = copy_stats(_activities().filter(pl.col("kind").cast(pl.String) == "kernel"))
    assert table.height == 0
    assert "exposed_ns" in table.columns
