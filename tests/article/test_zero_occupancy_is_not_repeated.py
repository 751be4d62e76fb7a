"""The profiler says 0 % for kernels it could not measure. What do tables and reports say?"""

from __future__ import annotations

import polars as pl
import pytest

import gapless

from .recorded import Recorded

CUDNN = "article/attn_cudnn"


def test_it_is_recomputed_and_said_to_be(h200: Recorded) -> None:
    """The text: 256 threads of 240 registers, one block, 8 of 64 warps. The H200 runs 384 threads: 12 of 64."""
    t, report = h200.trace(CUDNN), h200.report(CUDNN)
    attention = t.kernels.filter(pl.col("family") == "attention").collect()
    assert attention["occupancy_pct"].to_list() == [0.0, 0.0, 0.0], "what the file says"
    assert attention["block_x"].to_list() == [384, 384, 384]
    (row,) = [k for k in report["tables"]["kernels"] if k["family"] == "attention"]
    assert (row["occupancy_pct"], row["occupancy_source"]) == (pytest.approx(100 * 12 / 64), "recomputed")
    calls = t.calls.select("call", called=pl.col("name").cast(pl.String))
    assert set(attention.lazy().join(calls, on="call").collect()["called"]) == {"cuLaunchKernelEx"}
    assert set(attention["op_name"].cast(pl.String)) == {"aten::_cudnn_attention_forward"}


def test_no_report_says_zero(h200: Recorded) -> None:
    claimed = 0
    for name in (f"article/{n}" for n in h200.tables()):
        claimed += h200.trace(name).kernels.filter(pl.col("occupancy_pct") == 0).collect().height
        for row in h200.report(name)["tables"]["kernels"]:
            assert row["occupancy_pct"] is None or row["occupancy_pct"] > 0, (name, row["name"])
    assert claimed > 10, "the files do claim it"


@pytest.mark.parametrize(
    "name", ["kineto/resnet50_num_workers_0", "tracelens/h100_timesformer", "tracelens/b200_eager"]
)
def test_nor_of_files_by_others(name: str, h200: Recorded) -> None:
    t = gapless.load(h200.root.parent / "public" / f"{name}.json.gz")
    rows = gapless.report(t).to_dict()["tables"]["kernels"]
    assert rows
    assert all(row["occupancy_pct"] != 0 for row in rows)
