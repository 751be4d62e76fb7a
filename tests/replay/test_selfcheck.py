"""Does the replay reproduce what was recorded, and notice what it cannot have been?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import SHARED
from tests.replay.planted import Event, events, kernels, launches, studied

from gapless.analyses.study import study
from gapless.ingest import read
from gapless.replay.overhead import machine_of
from gapless.replay.predict import SELF_CHECK_LIMIT, predict
from gapless.replay.selfcheck import self_check

PAIRS = Path(__file__).resolve().parents[1] / "data" / "pairs"
SMALL_BYTES = 150_000
OWN = sorted(path.relative_to(PAIRS).as_posix() for path in PAIRS.glob("*/*.json.gz"))
HANDED = [
    path.relative_to(SHARED).as_posix()
    for path in sorted(SHARED.glob("[hp]*/**/*.json.gz"))
    if path.stat().st_size < SMALL_BYTES
]


WITHHELD = {
    "h200/odd/cpu_activity_only.json.gz": "no GPU work is recorded",
    "h200/odd/launch_blocking.json.gz": "CUDA_LAUNCH_BLOCKING=1 was set",
    "public/hta/cpu_only.json.gz": "no GPU work is recorded",
    "public/tracelens/sglang_decode.json.gz": "98% of the GPU's time is unrecorded",
}
"""What the files themselves keep from being predicted; never the model's own error."""


def is_reproduced(path: Path, withheld: str = "") -> None:
    found = predict(study(read(path)))
    if withheld:
        assert found.withheld.startswith(withheld)
        return
    assert found.withheld == ""
    assert found.self_check is not None
    assert found.self_check <= SELF_CHECK_LIMIT


@pytest.mark.parametrize("name", OWN)
def test_the_recorded_pairs_are_reproduced(name: str) -> None:
    is_reproduced(PAIRS / name)


@pytest.mark.parametrize("name", HANDED or ["none"])
def test_the_handed_traces_are_reproduced(name: str, shared: Path) -> None:
    is_reproduced(shared / name, WITHHELD.get(name, ""))


@pytest.mark.parametrize("streams", [1, 2])
@pytest.mark.parametrize("waits", [False, True])
def test_a_program_of_known_times_is_reproduced_exactly(streams: int, waits: bool) -> None:
    s = studied(events(streams=streams, waits=waits))
    assert predict(s).withheld == ""
    assert self_check(s, machine_of(s)) == pytest.approx(0, abs=1e-9)


def all_early(of: list[Event]) -> None:
    for kernel in kernels(of):
        kernel["ts"] -= 500


def one_early(of: list[Event]) -> None:
    """In the middle of a step: the ends of the steps' work are as they were."""
    kernels(of)[9]["ts"] -= 150


def last_early(of: list[Event]) -> None:
    kernels(of)[-1]["ts"] -= 200


def all_at_once(of: list[Event]) -> None:
    for kernel in kernels(of):
        kernel["ts"] = 1000.0


def reversed_ids(of: list[Event]) -> None:
    ids = [kernel["args"]["correlation"] for kernel in kernels(of)]
    for kernel, other in zip(kernels(of), reversed(ids), strict=True):
        kernel["args"]["correlation"] = other


def swapped_ids(of: list[Event]) -> None:
    one, other = kernels(of)[3]["args"], kernels(of)[12]["args"]
    one["correlation"], other["correlation"] = other["correlation"], one["correlation"]


IMPOSSIBLE: list[Callable[[list[Event]], None]] = [
    all_early, one_early, last_early, all_at_once, reversed_ids, swapped_ids,
]  # fmt: skip


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("plant", IMPOSSIBLE, ids=lambda plant: plant.__name__)
def test_an_impossible_order_is_reported_and_not_replayed(plant: Callable[[list[Event]], None], waits: bool) -> None:
    planted = events(waits=waits)
    plant(planted)
    found = predict(studied(planted))
    assert found.withheld.startswith("the recorded order is impossible: GPU work of ")
    assert "\n" not in found.withheld
    assert (found.program, found.recorded, found.unprofiled, found.self_check) == (None, None, None, None)
    assert found.unprofiled_ms is None


def test_the_reason_counts_what_is_wrong() -> None:
    planted = events(waits=True)
    first = kernels(planted)[0]
    first["ts"] -= 106
    assert predict(studied(planted)).withheld == (
        "the recorded order is impossible: GPU work of 1 of 24 launches starts before its launch begins, by up to "
        "100.0 us"
    )
    planted = events()
    late = kernels(planted)[10]
    late["ts"] += 60
    assert predict(studied(planted)).withheld == (
        "the recorded order is impossible: GPU work of 1 of 24 launches starts before the work launched before it on "
        "the same stream"
    )


@pytest.mark.parametrize(("early_us", "impossible"), [(7, False), (55, False), (57, True)])
def test_clocks_that_drift_a_little_are_no_impossible_order(early_us: float, impossible: bool) -> None:
    # The first kernel starts 6 us after its launch begins.
    planted = events(waits=True)
    kernels(planted)[0]["ts"] -= early_us
    assert bool(predict(studied(planted)).withheld) == impossible


@pytest.mark.parametrize(("behind_us", "impossible"), [(0.5, False), (2, False), (2.5, True)])
def test_rounded_times_on_a_stream_are_no_impossible_order(behind_us: float, impossible: bool) -> None:
    planted = events()
    before, late = kernels(planted)[10:12]
    late["ts"] = before["ts"] - behind_us
    assert ("impossible" in predict(studied(planted)).withheld) == impossible


def test_streams_may_overtake_each_other() -> None:
    planted = events(streams=2)
    for kernel in kernels(planted):
        if kernel["args"]["stream"] == 20:
            kernel["ts"] += 300
    s = studied(planted)
    assert s.links.first_activity[s.links.first_activity >= 0].size == 24
    assert "impossible" not in predict(s).withheld


def test_threads_that_launch_at_once_leave_their_order_open() -> None:
    planted = events()
    for i, call in enumerate(launches(planted)):
        call["tid"] = 1 + i % 2
    one, other = kernels(planted)[3:5]
    one["ts"], other["ts"] = other["ts"], one["ts"]
    assert "impossible" not in predict(studied(planted)).withheld


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(
    ("what", "index", "ts", "dur"),
    [
        ("two kernels at once on one stream", 8, 0, 360),
        ("work that began long after everything it waited for", -1, 2000, 0),
    ],
)
def test_times_that_no_queue_explains_are_withheld(what: str, index: int, ts: float, dur: float, waits: bool) -> None:
    planted = events(waits=waits)
    kernels(planted)[index]["ts"] += ts
    kernels(planted)[index]["dur"] += dur
    found = predict(studied(planted))
    assert found.self_check is not None
    assert found.self_check > 0.2, what
    assert found.withheld.startswith("the replay misses the recorded ends of GPU work by ")


def test_one_id_for_all_work_or_all_calls_is_withheld() -> None:
    for part in (kernels, launches):
        planted = events()
        for event in part(planted):
            event["args"]["correlation"] = 1
        assert predict(studied(planted)).withheld == "23 of 24 launches have no GPU record"


@pytest.mark.parametrize("streams", [1, 2, 3])
def test_streams_that_wait_for_each_other_in_turn_make_no_circle(streams: int) -> None:
    planted = events()
    for i, kernel in enumerate(kernels(planted)):
        kernel["args"]["stream"] = kernel["tid"] = 7 + 13 * (i % streams)
    for call in launches(planted):
        planted.append({**call, "name": "cudaStreamWaitEvent", "ts": call["ts"] - 0.5, "dur": 0.3, "args": {}})
    found = predict(studied(planted))
    assert found.program is not None
    assert found.program.act_after.tolist() == ([-1] * 6 if streams == 1 else [-1, 0, 1, 2, 3, 4])
