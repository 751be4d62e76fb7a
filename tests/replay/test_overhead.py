"""What is taken out as the recorder's own, piece by piece, and whose costs are used for it?"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from tests.replay.planted import Event, events, kernels, launches, studied
from tests.replay.programs import gpu, host, launch, program, wait
from tests.rules.factory import MUL, Script, f32

from gapless.model.calibration import Calibration, load, store
from gapless.replay.overhead import (
    Costs,
    Counts,
    costs_for,
    count_events,
    host_scale,
    machine_of,
    recording_scale,
    without_profiler,
)
from gapless.replay.predict import predict
from gapless.replay.program import Program, build_program

BASE = program(
    host(10_000), launch(4_000, gpu(20_000)), host(10_000), launch(4_000, gpu(6_000, nodes=10)), host(10_000), wait(2_000)
)  # fmt: skip
PIECES, ITEMS = 3, 3
COSTS = Costs(
    enter=1, leave=2, row_enter=5, row_leave=7, shapes=11, tensor=13, call_inside=17, call_after=19, frame=46, head=29,
    tail=31, graph_node=37, graph_gap=41,
)  # fmt: skip
FREE = Costs(**{f.name: 0.0 for f in fields(Costs)})


def counts(**given: list[int]) -> Counts:
    """Counts of the base program: none but the given ones."""
    sizes = {f.name: ITEMS if f.name in ("item_nodes", "own_item") else PIECES for f in fields(Counts)}
    return Counts(**{name: np.array(given.get(name, [0] * n), dtype=np.int64) for name, n in sizes.items()})


def taken(found: Program) -> tuple[list[float], list[float], list[float]]:
    """What pieces, items and activities of the base program lost."""
    return (
        (BASE.piece_ns - found.piece_ns).tolist(),
        (BASE.item_ns - found.item_ns).tolist(),
        (BASE.act_ns - found.act_ns).tolist(),
    )


def test_a_recorder_without_costs_takes_nothing() -> None:
    every = counts(**{f.name: [3] * 3 for f in fields(Counts) if not f.name.startswith("own")})
    assert taken(without_profiler(BASE, every, FREE, 1.0)) == ([0, 0, 0], [0, 0, 0], [0, 0])


def test_every_step_loses_head_and_tail_and_every_item_its_record() -> None:
    assert taken(without_profiler(BASE, counts(), COSTS, 1.0)) == ([29, 0, 31], [17, 17, 17], [0, 410])


@pytest.mark.parametrize(
    ("name", "each"),
    [
        ("entered", 1),
        ("left", 2),
        ("row_entered", 5),
        ("row_left", 7),
        ("tensors", 13),
        ("calls_after", 19),
        ("inside_call", 17),
        # A frame is counted where it begins and where it ends.
        ("frames", 46 / 2),
    ],
)
def test_each_event_costs_what_its_sort_costs(name: str, each: float) -> None:
    pieces, items, work = taken(without_profiler(BASE, counts(**{name: [0, 4, 1]}), COSTS, 1.0))
    assert pieces == pytest.approx([29, 4 * each, 31 + each])
    assert (items, work) == ([17, 17, 17], [0, 410])


def test_describing_shapes_costs_only_where_they_were_recorded() -> None:
    both = counts(entered=[2, 3, 0], tensors=[0, 5, 0])
    assert taken(without_profiler(BASE, both, COSTS, 1.0))[0] == [29 + 2, 3 * (1 + 11) + 5 * 13, 31]


def test_nodes_cost_the_host_inside_the_launch_and_space_out_the_work() -> None:
    pieces, items, work = taken(without_profiler(BASE, counts(item_nodes=[0, 10, 0]), COSTS, 1.0))
    assert pieces == [29, 0, 31]
    assert items == [17, 17 + 10 * 37, 17]
    assert work == [0, 10 * 41]
    # A kernel by itself is one node: it is not spaced out. And no graph loses more than half.
    assert taken(without_profiler(BASE, counts(), replace(COSTS, graph_gap=1e6), 1.0))[2] == [0, 3_000]


def test_a_slower_host_records_at_a_higher_price() -> None:
    # Head, tail and nodes are as fitted.
    found = without_profiler(BASE, counts(entered=[0, 4, 0], item_nodes=[0, 10, 0]), COSTS, 2.0)
    assert taken(found) == ([29, 2 * 4, 31], [2 * 17, 2 * 17 + 370, 2 * 17], [0, 410])


def test_nothing_loses_more_than_most_of_its_length() -> None:
    every = counts(entered=[1_000_000, 0, 1_000_000])
    found = without_profiler(BASE, every, replace(COSTS, call_inside=1e6), 1.0)
    assert found.piece_ns.tolist() == pytest.approx([1_500, 10_000, 1_500])
    assert found.item_ns.tolist() == pytest.approx([600, 600, 300])


def test_rows_of_the_recorder_itself_go_whole() -> None:
    own = counts(own_piece=[0, 9_900, 0], own_item=[3_000, 0, 2_000])
    found = without_profiler(BASE, own, FREE, 1.0)
    assert found.piece_ns.tolist() == [10_000, 100, 10_000]
    assert found.item_ns.tolist() == [1_000, 4_000, 0]
    # The least of several steps may have been one without it: nothing is taken twice.
    short = replace(BASE, piece_ns=np.array([10_000.0, 80.0, 10_000.0]))
    assert without_profiler(short, own, FREE, 1.0).piece_ns.tolist() == [10_000, 80, 10_000]


def test_an_empty_step_stays_empty() -> None:
    none = Counts(**{f.name: np.zeros(0, dtype=np.int64) for f in fields(Counts)})
    found = without_profiler(program(), none, COSTS, 1.0)
    assert (found.piece_ns.size, found.item_ns.size, found.act_ns.size) == (0, 0, 0)


def script(*, shapes: bool = True) -> list[Event]:
    """Steps of a nested op with two tensors, a launch, a compiled region's row and a call that launches nothing."""
    made = Script(shapes=shapes)
    for number in range(4):
        with made.mark(f"ProfilerStep#{number}"):
            made.python(2)
            with made.op("aten::add", [f32(4, 4), f32(4, 4)]), made.op("aten::add_"):
                made.kernel(MUL, 5)
            with made.op("Torch-Compiled Region: 0/0"):
                made.call("cudaGetDevice", 2)
        made.now += 20
    made.synchronize()
    return made.events


@pytest.mark.parametrize("shapes", [True, False])
def test_events_of_the_step_are_counted(shapes: bool) -> None:
    s = studied(script(shapes=shapes))
    built = build_program(s)
    assert built is not None
    found = count_events(s, built)
    totals = {f.name: int(getattr(found, f.name).sum()) for f in fields(Counts)}
    # The step's own marker begins where the step does: nothing of it lies in the step but its end.
    assert totals == {
        "entered": 2 + 1, "left": 2, "row_entered": 1, "row_left": 1, "tensors": 2 if shapes else 0, "calls_after": 2,
        "frames": 0, "inside_call": 1, "item_nodes": 0, "own_piece": 0, "own_item": 0,
    }  # fmt: skip


def test_the_costs_lie_beside_their_events() -> None:
    s = studied(script())
    built = build_program(s)
    assert built is not None
    found = count_events(s, built)
    for piece in np.flatnonzero(found.calls_after).tolist():
        ends = built.piece_start[piece]
        calls = s.raw.calls.filter(s.raw.calls["start_ns"] + s.raw.calls["dur_ns"] == int(ends))
        assert calls.height == 1
    described = np.flatnonzero(found.tensors)
    names = s.raw.ops.filter(s.raw.ops["start_ns"].is_in(built.piece_end[described].tolist()))["name"].to_list()
    assert names == ["aten::add"]


def nested(enter_us: float, *, whole: bool = False) -> list[Event]:
    """Views as linear layers make them: each inner op starts so long after its outer one."""
    made = Script()
    made.now += 0.125
    for number in range(4):
        with made.mark(f"ProfilerStep#{number}"):
            with made.op("aten::t"):
                made.now += enter_us - 1
                with made.op("aten::transpose"):
                    pass
            with made.op("aten::mul"):
                made.kernel(MUL, 5)
        made.now += 20
    made.synchronize()
    if whole:
        for event in made.events:
            event["ts"], event["dur"] = int(event["ts"]), int(event["dur"])
    return made.events


def scale_of(of: list[Event]) -> float:
    s = studied(of)
    built = build_program(s)
    assert built is not None
    return host_scale(s, built)


def test_the_host_is_as_slow_as_it_enters_ops() -> None:
    assert scale_of(nested(2 * 0.803)) == pytest.approx(2, abs=0.01)
    assert scale_of(nested(1.0)) == pytest.approx(1 / 0.803, abs=0.01)
    # No pair of ops that is known, or times too coarse for it: as usual.
    assert scale_of(events()) == 1
    assert scale_of(nested(2.0, whole=True)) == 1


@pytest.mark.parametrize(("scale", "expected"), [(1.0, 1.0), (1.2, 1.728), (0.9, 0.729), (0.1, 0.75**3), (9.0, 1.5**3)])
def test_recording_slows_down_faster_than_the_host(scale: float, expected: float) -> None:
    assert recording_scale(scale) == pytest.approx(expected)


def test_the_machine_is_the_traces_own() -> None:
    found = machine_of(studied(events(waits=True)))
    assert (found.delay_ns, found.spacing_ns, found.return_ns) == (2_000, 1_000, 3_000)
    # Without waits one return is recorded: too few to tell.
    assert machine_of(studied(events())).return_ns == 3_100
    # Kernels of 1 us that each found an idle stream do not show how close two can follow.
    short = events()
    for kernel, call in zip(kernels(short), launches(short), strict=True):
        kernel["ts"], kernel["dur"] = call["ts"] + call["dur"] + 2, 1
    assert machine_of(studied(short)).spacing_ns == 1_200
    calm = [event for event in events() if event["cat"] != "kernel"]
    alone = machine_of(studied(calm))
    assert (alone.delay_ns, alone.spacing_ns, alone.return_ns) == (2_200, 1_200, 3_100)


def test_the_costs_of_a_trace_come_out_of_its_prediction() -> None:
    s = studied(events())
    found = predict(s)
    assert found.program is not None
    assert found.clean is not None
    assert found.counts is not None
    again = without_profiler(found.program, found.counts, found.costs, recording_scale(found.scale))
    assert again.piece_ns.tolist() == found.clean.piece_ns.tolist()
    assert found.clean.piece_ns.sum() < found.program.piece_ns.sum()


def baseline(**listed: object) -> dict[str, object]:
    return {"schema": "gapless.recording/1", "baseline": listed}


def test_only_what_no_recording_slowed_down_is_a_baseline() -> None:
    found = predict(studied(events(), gapless=baseline(before_ms=[0.3], after_ms=[0.9, 0.8], clean=["before_ms"])))
    assert found.measured_ms == pytest.approx(0.3)


def test_a_measured_baseline_replaces_the_estimate() -> None:
    plain = predict(studied(events()))
    found = predict(studied(events(), gapless=baseline(before_ms=[0.3, 0.4], after_ms=[0.9, 0.6, 0.8])))
    assert plain.measured_ms is None
    assert plain.factor == 1
    assert found.measured_ms == pytest.approx(0.6)
    assert found.unprofiled_ms == pytest.approx(0.6)
    assert found.range_ms == pytest.approx((0.6 * 0.97, 0.6 * 1.03))
    assert found.unprofiled is not None
    assert plain.unprofiled is not None
    # Predictions after an edit are scaled alike.
    half = replace(found.unprofiled, period_ns=found.unprofiled.period_ns / 2)
    assert found.step_ms(half) == pytest.approx(0.3)
    assert found.unprofiled.period_ns == plain.unprofiled.period_ns


@pytest.mark.parametrize(
    "given",
    [
        None,
        [],
        "0.6",
        {},
        {"before_ms": 0.6},
        {"before_ms": []},
        {"before_ms": ["0.6", None, {}]},
        {"before_ms": [0, -1, 1e300]},
    ],
)
def test_a_baseline_that_is_none_leaves_the_estimate(given: object) -> None:
    found = predict(studied(events(), gapless={"baseline": given}))
    assert found.measured_ms is None
    assert found.factor == 1


def test_a_baseline_does_not_lift_a_refusal() -> None:
    planted = events()
    for event in launches(planted):
        event["args"]["correlation"] = 1
    found = predict(studied(planted, gapless=baseline(before_ms=[0.6])))
    assert found.withheld == "23 of 24 launches have no GPU record"
    assert found.unprofiled_ms == 0.6, "what was measured stays true"
    assert predict(studied(planted)).unprofiled_ms is None
    assert predict(studied(planted)).range_ms is None


def test_a_calibration_in_the_trace_scales_the_costs() -> None:
    own = Calibration(
        measured=True, op_ns=3_000.0, call_ns=1_800.0, op_shapes_ns=450.0, tensor_shape_ns=140.0, frame_ns=500.0,
        graph_node_ns=900.0,
    )  # fmt: skip
    usual = Costs()
    found = costs_for(studied(events(), gapless={"calibration": own.to_json()}))
    assert found == replace(
        usual, enter=usual.enter * 1.5, leave=usual.leave * 1.5, row_enter=usual.row_enter * 1.5,
        row_leave=usual.row_leave * 1.5, shapes=usual.shapes / 2, tensor=usual.tensor * 2,
        call_inside=usual.call_inside / 2, call_after=usual.call_after / 2, frame=500.0, graph_node=900.0,
    )  # fmt: skip
    dear = predict(studied(events(), gapless={"calibration": replace(own, call_ns=9_000.0).to_json()}))
    cheap = predict(studied(events(), gapless={"calibration": replace(own, call_ns=0.0).to_json()}))
    assert dear.unprofiled is not None
    assert cheap.unprofiled is not None
    assert dear.unprofiled.host_ns < cheap.unprofiled.host_ns


@pytest.mark.parametrize(("times", "used"), [(0.0, 0.3), (0.1, 0.3), (2.0, 2.0), (3.0, 3.0), (50.0, 3.0)])
def test_a_calibration_counts_within_reason(times: float, used: float) -> None:
    odd = Calibration(measured=True, op_ns=Calibration().op_ns * times)
    assert costs_for(studied(events(), gapless={"calibration": odd.to_json()})).enter == pytest.approx(
        Costs().enter * used
    )


@pytest.mark.parametrize("name", ["frame_ns", "graph_node_ns"])
def test_recording_never_saves_time(name: str) -> None:
    odd = replace(Calibration(measured=True), **{name: -5_000.0})
    found = costs_for(studied(events(), gapless={"calibration": odd.to_json()}))
    assert all(getattr(found, f.name) >= 0 for f in fields(Costs))


@pytest.mark.parametrize("given", [None, [], "fast", {}, {"op_ns": 9_000.0}, Calibration(op_ns=9_000.0).to_json()])
def test_without_a_measured_calibration_the_costs_are_the_usual_ones(given: object) -> None:
    assert costs_for(studied(events(), gapless={"calibration": given})) == Costs()


@pytest.mark.parametrize(
    ("machine", "torch", "found"),
    [
        ("NVIDIA L4 on alpha", "2.13.0+cu130", True),
        ("NVIDIA L4 on beta", "2.13.0+cu130", False),
        ("NVIDIA A10 on alpha", "2.13.0+cu130", False),
        ("NVIDIA L4 on alpha", "2.12.0+cu130", False),
    ],
)
def test_a_stored_calibration_belongs_to_its_machine_and_torch(
    tmp_path: Path, machine: str, torch: str, found: bool
) -> None:
    own = Calibration(machine="NVIDIA L4 on alpha", torch="2.13.0+cu130", measured=True, op_ns=4_000.0)
    store(tmp_path, own)
    loaded = load(tmp_path, machine, torch)
    assert loaded == (own if found else None)
    costs = costs_for(studied(events(), gapless={"calibration": loaded.to_json() if loaded else None}))
    assert costs.enter == Costs().enter * (2 if found else 1)


def test_the_range_of_an_estimate_is_wider_on_a_slow_host() -> None:
    usual, slow = predict(studied(events())), predict(studied(nested(2 * 0.803)))
    for found, spread in ((usual, 0.03), (slow, 0.20 + 0.25 * math.log(slow.scale))):
        assert found.unprofiled_ms is not None
        assert found.range_ms == pytest.approx((found.unprofiled_ms / (1 + spread), found.unprofiled_ms * (1 + spread)))
