"""Every handed trace gives tables or the right error."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from trace_files import assert_declared, codes

from conftest import SHARED
from gapless.ingest import read
from gapless.model.errors import EmptyTraceError, NotATraceError

OTHER = {"labels.json", "tables.json", "calibration.json", "goldens.json"}
FILES = sorted(str(p.relative_to(SHARED)) for p in SHARED.glob("**/*.json*") if p.name not in OTHER)

ERRORS = {
    "invalid/empty.json": (NotATraceError, "empty"),
    "invalid/html.json": (NotATraceError, "HTML"),
    "invalid/not_a_trace.json": (NotATraceError, "Chakra"),
} | {f"invalid/edge_{tag}_empty.json": (EmptyTraceError, "none that can be used")
     for tag in ("v213", "v215", "w1.13.1", "w2.3.1", "w2.6.0", "w2.10.0")}  # fmt: skip

ISSUES = {
    "invalid/absurd_durations.json": {"negative-duration": 1, "bad-time": 1, "absurd-duration": 1},
    "invalid/bare_list.json": {"negative-duration": 1, "bad-time": 1, "absurd-duration": 1},
    "invalid/comma_decimals.json": {"comma-decimal": 6},
    "invalid/truncated.json": {"cut-off-event": 1, "truncated": 1},
    "invalid/truncated.json.gz": {"cut-off-event": 1, "truncated-gzip": 1, "truncated": 1},
    "invalid/edge_w1.13.1_unfinished.json": {"negative-duration": 1},
    "invalid/edge_w1.13.1_backslash.json": {"invalid-escape": 1},
}
ISSUES |= {
    f"invalid/edge_{tag}_quote.json": {"unescaped-quote": 1}
    for tag in ("v213", "w1.13.1", "w2.3.1", "w2.6.0", "w2.10.0")
}
ISSUES |= {
    f"invalid/edge_{tag}_kwnan.json": {"bare-nan": 1, "control-character": 1}
    for tag in ("v213", "v215", "w2.6.0", "w2.10.0")
}
ISSUES |= {f"invalid/edge_{tag}_ctrl.json": {"control-character": 1} for tag in ("w1.13.1", "w2.3.1", "w2.6.0")}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the handed traces (../shared/traces) are not here")
@pytest.mark.parametrize("name", FILES)
def test_every_handed_trace(name: str):
    if name in ERRORS:
        kind, word = ERRORS[name]
        with pytest.raises(kind, match=word):
            read(SHARED / name)
        return
    raw = read(SHARED / name)
    assert_declared(raw)
    assert codes(raw) == ISSUES.get(name, {})
    assert raw.meta.truncated == ("truncated" in name)
    rows = sum(f.height for f in (raw.ops, raw.frames, raw.calls, raw.activities, raw.gpu_syncs, raw.gpu_annotations,
                                  raw.memory, raw.overheads, raw.markers, raw.set_aside))  # fmt: skip
    assert 0 < rows <= raw.meta.events
    assert sum(events for events, _ in raw.meta.size_by_category.values()) == raw.meta.events


def test_the_exact_base_and_counts_of_an_h200_file(shared: Path):
    path = shared / "h200/odd/expandable.json.gz"
    raw = read(path)
    value = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
    first = min(event["ts"] for event in value["traceEvents"] if event["ph"] in "Xi")
    assert raw.meta.origin_ns == value["baseTimeNanoseconds"] + int(first * 1000)
    assert raw.meta.flags == ("record_shapes", "profile_memory")
    assert raw.meta.devices[0].name == "NVIDIA H200"
    assert raw.memory.filter(pl.col("name") == "[memory]").height == raw.memory.height


def test_integer_microsecond_files_are_noticed(shared: Path):
    assert read(shared / "public/param/dlrm_rank3.json.gz").meta.integer_us
    assert not read(shared / "public/tracelens/mi300_triton.json.gz").meta.integer_us


def test_rank_and_world_of_ranked_files(shared: Path):
    for rank in range(8):
        meta = read(shared / f"public/param/dlrm_rank{rank}.json.gz").meta
        assert (meta.rank, meta.world_size) == (rank, 8)
    assert read(shared / "public/hta/cpu_only.json.gz").meta.rank == 34
