"""Do our tables reproduce what peers computed? Golden values and definitions lie beside the handed public traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gapless.analyses.accounting import collective_mask
from gapless.analyses.links import link
from gapless.analyses.study import study
from gapless.ingest import read
from gapless.ingest.raw import RawTrace
from gapless.tables.coding import matches
from gapless.tables.intervals import Set, as_ns, merge, subtract, total


@pytest.fixture(scope="module")
def goldens(shared: Path) -> dict[str, Any]:
    return json.loads((shared / "public" / "goldens.json").read_text())


def spans(raw: RawTrace, rows: np.ndarray[Any, Any]) -> Set:
    start = as_ns(raw.activities["start_ns"].to_numpy())
    return merge(start[rows], (start + as_ns(raw.activities["dur_ns"].to_numpy()))[rows])


def join(a: Set, b: Set) -> Set:
    return merge(np.concatenate([a[0], b[0]]), np.concatenate([a[1], b[1]]))


def test_gpu_timeline_of_tracelens_within_100_ns(shared: Path, goldens: dict[str, Any]) -> None:
    for name, wanted in goldens["tracelens_gpu_timeline_ms"].items():
        raw = read(shared / "public" / name)
        linked = link(raw).launch_of >= 0
        copy = matches(raw.activities["kind"], lambda kind: kind == "memcpy")
        collective = collective_mask(raw)
        compute, comm = spans(raw, linked & ~copy & ~collective), spans(raw, linked & collective)
        copies = spans(raw, linked & copy)
        busy = join(join(compute, comm), copies)
        span = int(busy[1].max() - busy[0].min())
        found = {
            "computation_time": total(compute),
            "exposed_comm_time": total(subtract(comm, compute)),
            "exposed_memcpy_time": total(subtract(subtract(copies, compute), comm)),
            "busy_time": total(busy),
            "idle_time": span - total(busy),
            "total_time": span,
            "total_comm_time": total(comm),
            "total_memcpy_time": total(copies),
        }
        for key, value in wanted.items():
            assert abs(found[key] - value * 1e6) <= 100, (name, key)


def test_span_and_busy_time_of_hta(shared: Path, goldens: dict[str, Any]) -> None:
    for name, wanted in goldens["hta_span_busy_us"].items():
        raw = read(shared / "public" / name)
        busy = spans(raw, np.ones(raw.activities.height, dtype=bool))
        assert abs(int(busy[1].max() - busy[0].min()) / 1e3 - wanted["span"]) <= 1, name
        assert abs(total(busy) / 1e3 - wanted["busy"]) <= 1, name
        if "unlinked" in wanted:
            assert int((link(raw).launch_of < 0).sum()) == wanted["unlinked"]


def test_what_syncs_waited_for(shared: Path, goldens: dict[str, Any]) -> None:
    for name, wanted in goldens["sync_wall_and_gpu_busy_us"].items():
        s = study(read(shared / "public" / name))
        dur = as_ns(s.raw.calls["dur_ns"].to_numpy())[s.syncs.call]
        parts = s.syncs.gpu_work + s.syncs.copy + s.syncs.untraced + s.syncs.overhead
        assert (parts == dur).all(), name
        call = wanted["call"].split()[0]
        rows = matches(s.raw.calls["name"], lambda n, call=call: n == call)[s.syncs.call]
        longest = np.argsort(-dur * rows)[: 1 if wanted["call"].endswith("x1") else 2]
        assert abs(int(dur[longest].sum()) / 1e3 - wanted["wall"]) <= 1, name
        found = int((s.syncs.gpu_work + s.syncs.copy)[longest].sum()) / 1e3
        assert abs(found - wanted["gpu_busy"]) <= 1, (name, found)
