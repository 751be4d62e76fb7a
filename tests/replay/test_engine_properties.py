"""Which laws does the engine keep for any program?

A wait returns `return_ns` after the work it waits for, but only if the work was not done when it was called: a host
that comes later may then go on sooner, by at most the return. Where a wait's own time is at least its return, as on
real machines, a period only grows with the times it is made of; `steps` draws such programs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.replay.programs import Call, Gpu, Host, built

from gapless.replay.engine import Machine, run
from gapless.replay.program import DEVICE, NONE, STREAM, Program

STREAMS = 3
RETURN = 3
quick = settings(max_examples=120, deadline=None, derandomize=True)
tiny = 1e-6

times = st.integers(0, 200)
machines = st.builds(
    Machine, st.integers(0, 20).map(float), st.integers(0, 5).map(float), st.just(float(RETURN)), st.integers(1, 8)
)


@st.composite
def steps(draw: st.DrawFn, streams: int = STREAMS) -> Program:
    """Any program whose waits take at least their return."""
    does: list[Host | Call] = []
    launched = 0
    for _ in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["host", "launch", "wait", "copy"]))
        stream = draw(st.integers(0, streams - 1))
        after = draw(st.integers(-1, launched - 1))
        if kind == "host":
            does.append(Host(draw(times)))
        elif kind == "launch":
            work = [Gpu(draw(times), stream, after)] + [Gpu(draw(times), stream)] * draw(st.integers(0, 2))
            launched += len(work)
            does.append(Call(draw(times), tuple(work)))
        elif kind == "wait":
            on = draw(st.sampled_from([(STREAM, stream), (DEVICE, -1)]))
            does.append(Call(RETURN + draw(times), (), *on))
        else:
            launched += 1
            does.append(Call(RETURN + draw(times), (Gpu(draw(times), stream, after),), STREAM, stream))
    return built(does, streams)


@quick
@given(steps(), machines)
def test_the_same_program_takes_the_same_time(p: Program, machine: Machine) -> None:
    assert run(p, machine) == run(p, machine)


@quick
@given(steps(), machines)
def test_no_round_ends_before_its_floors(p: Program, machine: Machine) -> None:
    found = run(p, machine)
    floor = max(found.host_ns, found.gpu_ns)
    assert all(end >= floor * (i + 1) - tiny for i, end in enumerate(found.ends))
    assert found.period_ns >= found.host_ns - tiny


@quick
@given(steps(streams=1), machines)
def test_a_steady_step_on_one_stream_is_no_shorter_than_host_or_stream(p: Program, machine: Machine) -> None:
    found = run(p, machine)
    assert found.period_ns >= max(found.host_ns, found.gpu_ns) - tiny


@quick
@given(steps(), machines)
def test_a_step_is_no_longer_than_everything_in_a_row(p: Program, machine: Machine) -> None:
    found = run(p, machine)
    waits = int((p.item_wait != NONE).sum())
    row = found.host_ns + float(p.act_ns.sum()) + p.act_ns.size * (2 * machine.delay_ns + machine.spacing_ns)
    assert found.period_ns <= row + waits * machine.return_ns + tiny


@quick
@given(steps(), machines, st.sampled_from(["piece_ns", "item_ns", "act_ns"]), st.data())
def test_shortening_anything_never_lengthens_the_step(
    p: Program, machine: Machine, what: str, data: st.DataObject
) -> None:
    lengths = getattr(p, what).copy()
    if lengths.size == 0:
        return
    which = data.draw(st.integers(0, lengths.size - 1))
    least = RETURN if what == "item_ns" and p.item_wait[which] != NONE else 0
    lengths[which] = data.draw(st.integers(least, int(lengths[which])))
    longer, shorter = run(p, machine), run(replace(p, **{what: lengths}), machine)
    assert all(s <= one + tiny for s, one in zip(shorter.ends, longer.ends, strict=True))
    assert shorter.host_ns <= longer.host_ns
    assert shorter.gpu_ns <= longer.gpu_ns


@quick
@given(steps(), machines, st.data())
def test_without_a_wait_nothing_takes_longer(p: Program, machine: Machine, data: st.DataObject) -> None:
    which = data.draw(st.integers(0, max(p.item_wait.size - 1, 0)))
    free = p.item_wait.copy()
    free[which : which + 1] = NONE
    with_it, without = run(p, machine), run(replace(p, item_wait=free), machine)
    assert all(s <= one + tiny for s, one in zip(without.ends, with_it.ends, strict=True))


@quick
@given(steps(), machines, st.data())
def test_without_an_event_nothing_takes_longer(p: Program, machine: Machine, data: st.DataObject) -> None:
    which = data.draw(st.integers(0, max(p.act_after.size - 1, 0)))
    free = p.act_after.copy()
    free[which : which + 1] = -1
    with_it, without = run(p, machine), run(replace(p, act_after=free), machine)
    assert all(s <= one + tiny for s, one in zip(without.ends, with_it.ends, strict=True))


@quick
@given(steps(), machines, st.sampled_from(["delay_ns", "spacing_ns", "queue"]))
def test_a_faster_machine_is_no_slower(p: Program, machine: Machine, what: str) -> None:
    better = replace(machine, **{what: machine.queue + 1 if what == "queue" else 0.0})
    slow, fast = run(p, machine), run(p, better)
    assert all(s <= one + tiny for s, one in zip(fast.ends, slow.ends, strict=True))


@quick
@given(steps(), machines, st.sampled_from([0.25, 2.0, 1024.0]))
def test_times_scale(p: Program, machine: Machine, by: float) -> None:
    scaled = replace(
        p, piece_ns=p.piece_ns * by, item_ns=p.item_ns * by, act_ns=p.act_ns * by, item_return_ns=p.item_return_ns * by
    )
    slower = Machine(machine.delay_ns * by, machine.spacing_ns * by, machine.return_ns * by, machine.queue)
    one, other = run(p, machine), run(scaled, slower)
    assert other.period_ns == pytest.approx(one.period_ns * by)
    assert other.ends == pytest.approx([end * by for end in one.ends])


@quick
@given(steps(), machines)
def test_an_idle_stream_changes_nothing(p: Program, machine: Machine) -> None:
    assert run(replace(p, streams=(*p.streams, (1, 99))), machine) == run(p, machine)


@quick
@given(steps(), machines)
def test_the_names_of_streams_change_nothing(p: Program, machine: Machine) -> None:
    turn = np.array([2, 0, 1])
    known = p.item_stream >= 0
    turned = replace(
        p,
        act_stream=turn[p.act_stream],
        item_stream=np.where(known, turn[np.maximum(p.item_stream, 0)], -1),
    )
    assert run(turned, machine) == run(p, machine)
