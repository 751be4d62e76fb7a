"""Does the host run far ahead of the GPU? 1500 launches behind a large product do not fill the H200's queue; 5000 do.

The text expects the first to fill it. The host is the slower one there; the file wins.
"""

from __future__ import annotations

import polars as pl

from .recorded import Recorded


def test_many_launches_never_fill_it(h200: Recorded) -> None:
    t, report = h200.trace("article/many_launches"), h200.report("article/many_launches")
    launches = t.launches.collect()
    assert launches.height == 3004
    assert not launches["queue_full"].any()
    assert launches["queue_depth"].max() < 100
    assert not any(p["state"] == "queue-full" for host in report["host"] for p in host["parts"])
    assert report["verdict"]["bound"] == "host"
    small = next(row for row in report["tables"]["launches"] if row["count"] == 1500)
    assert small["shorter_than_launch"] == 1500, "each takes longer to launch than to run"
    assert small["queue_full"] == 0
    assert "launch-bound" in report["checks"]["found"]


def test_a_full_queue_is_the_gpu_being_busy(h200: Recorded) -> None:
    t, report = h200.trace("pairs/queue_full.before"), h200.report("pairs/queue_full.before")
    full = t.calls.filter("queue_full").collect()
    assert full.height == 7
    assert full["queue_depth"].min() > 1000
    used = t.steps.filter("used").collect()["step"].to_list()
    waited = full.filter(pl.col("step").is_in(used))["dur_ns"].sum()
    main = next(host for host in report["host"] if host["role"] == "main")
    (state,) = [p["ns"] for p in main["parts"] if p["state"] == "queue-full"]
    assert state == waited
    assert report["verdict"]["bound"] == "gpu-compute"
    assert not any(p["cause"] == "queue-full" for p in report["accounting"][0]["parts"]), "the GPU never idles for it"
