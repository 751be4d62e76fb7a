"""Does the engine take as long as a hand computation says? Times in ns: a start costs 2, a successor 1, a return 3."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.replay.programs import MACHINE, copy, gpu, host, launch, program, wait

from gapless.replay.engine import LONG_PROGRAM, MAX_ITEMS, MAX_ROUNDS, Machine, run
from gapless.replay.program import Program


def period(p: Program, machine: Machine = MACHINE) -> float:
    return run(p, machine).period_ns


def test_a_host_bound_step_takes_its_host_time() -> None:
    found = run(program(host(10), launch(4, gpu(5)), host(10), launch(4, gpu(5))), MACHINE)
    assert (found.period_ns, found.host_ns, found.gpu_ns) == (28, 28, 10)
    # The second kernel of the first step: launched until 28, started at 30, done at 35; a step later 28 later.
    assert found.ends[:3] == [35, 63, 91]


def test_a_gpu_bound_step_takes_its_kernels_and_the_spaces_between_them() -> None:
    found = run(program(launch(1, gpu(50)), launch(1, gpu(30))), MACHINE)
    assert (found.period_ns, found.host_ns, found.gpu_ns) == (50 + 1 + 30 + 1, 2, 80)
    # launched until 1, 3-53, 54-84; next 85-135, 136-166
    assert found.ends[:2] == [84, 166]


def test_the_first_kernel_of_all_follows_nothing() -> None:
    assert run(program(launch(1, gpu(50))), replace(MACHINE, spacing_ns=20)).ends[:2] == [1 + 2 + 50, 53 + 20 + 50]


def test_host_work_after_the_last_call_belongs_to_the_step() -> None:
    assert period(program(launch(4, gpu(5)), host(90))) == 94


def test_a_wait_at_the_end_puts_host_and_gpu_in_a_row() -> None:
    # 10 + 4 launch, starts at 16, ends at 36, returns at 39
    assert period(program(host(10), launch(4, gpu(20)), wait(1, 0))) == 39


def test_a_wait_in_the_middle_drains_the_pipeline() -> None:
    steps = (host(20), launch(5, gpu(30)), wait(1, 0), host(40), launch(5, gpu(60)))
    # Steady: the first kernel starts 1 after the second one of the step before, 30 on; the wait returns 3 later; then
    # 40 + 5 of host, 2 until the second starts, 60 on: 1 + 30 + 3 + 45 + 2 + 60.
    assert period(program(*steps)) == 141
    without = steps[:2] + steps[3:]
    assert period(program(*without)) == 30 + 1 + 60 + 1


def test_a_wait_for_finished_work_costs_only_its_own_time() -> None:
    assert period(program(launch(4, gpu(5)), host(100), wait(1, 0))) == 105


def test_a_wait_returns_late_only_if_it_had_to_wait() -> None:
    # The kernel ends at 11. Called at 12 the wait takes its own 1; called at 9 it returns 3 after the end.
    assert period(program(launch(4, gpu(5)), host(8), wait(1, 0))) == 13
    assert period(program(launch(4, gpu(5)), host(5), wait(2, 0))) == 14


def test_a_wait_longer_than_the_work_left_returns_after_its_own_time() -> None:
    assert period(program(launch(4, gpu(5)), wait(50, 0))) == 54


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        # The short kernel ends at 26, the host goes on at 29; the long ones queue up: 100 + 1.
        (0, 101),
        # The long one starts at 10, ends at 110, the host goes on at 113.
        (1, 113),
        (None, 113),
    ],
)
def test_a_stream_wait_waits_for_its_stream_and_a_device_wait_for_all(target: int | None, expected: float) -> None:
    steps = (launch(4, gpu(20, 0)), launch(4, gpu(100, 1)), wait(1, target))
    assert period(program(*steps, streams=2)) == expected


def test_a_stream_wait_for_an_unknown_stream_waits_for_all() -> None:
    assert period(program(launch(4, gpu(20, 0)), launch(4, gpu(100, 1)), wait(1, -1), streams=2)) == 113


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        # 4 x (50 + 1): the host's 150 pass beside it.
        (1022, 204),
        (2, 204),
        # The fourth launch waits until the third kernel starts, at 105; 150 of host work follow.
        (1, 255),
    ],
)
def test_a_full_queue_blocks_the_host(queue: int, expected: float) -> None:
    burst = [launch(1, gpu(50)) for _ in range(4)]
    assert period(program(*burst, host(150)), replace(MACHINE, queue=queue)) == expected


def test_the_queue_is_as_deep_as_the_machine_says() -> None:
    # A long kernel, 3 to 1000003, then kernels of 1 behind it, then 5000 of host work. The 1023rd launch finds 1021
    # waiting; the 1024th waits for the second kernel's start.
    last = 1024
    burst = [launch(1, gpu(1_000_000))] + [launch(1, gpu(1))] * (last - 1)
    ahead, held = run(program(*burst[:-1], host(5_000)), MACHINE), run(program(*burst, host(5_000)), MACHINE)
    assert ahead.ends[0] == 1_000_003 + 2 * (last - 2)
    assert held.ends[0] == 1_000_004 + 5_000


def test_work_on_another_stream_waits_for_an_event() -> None:
    first, second = launch(1, gpu(100, 0)), launch(1, gpu(10, 1))
    # 3-103 beside 4-14
    assert period(program(first, second, wait(1), streams=2)) == 106
    # the other starts 2 after 103, ends at 115
    assert period(program(first, launch(1, gpu(10, 1, after=0)), wait(1), streams=2)) == 118
    # Nobody waits on the host: the next step's first kernel runs beside the second.
    assert period(program(first, launch(1, gpu(10, 1, after=0)), streams=2)) == 101


def test_a_blocking_copy_returns_after_its_own_copy_by_its_own_delay() -> None:
    # 4 launch, 6-46
    assert period(program(copy(4, gpu(40)))) == 46 + 3
    assert period(program(copy(4, gpu(40), back=7))) == 46 + 7


def test_a_copy_waits_behind_the_kernels_of_its_stream() -> None:
    # 1 + 2 = 3-103, 104-114, returns at 117
    assert period(program(launch(1, gpu(100)), copy(4, gpu(10)))) == 117
    # on a stream of its own: launched until 5, 7-17, returns at 20; then the kernels queue up
    assert period(program(launch(1, gpu(100)), copy(4, gpu(10, 1)), streams=2)) == 101


def test_a_launch_of_several_activities_runs_them_in_order() -> None:
    # 4 launch, 6-16, 17-37, wait 40
    assert period(program(launch(4, gpu(10), gpu(20)), wait(1))) == 40


@pytest.mark.parametrize(("field", "per_step"), [("delay_ns", 1), ("return_ns", 1), ("spacing_ns", 2)])
def test_each_constant_counts_as_often_as_it_is_met(field: str, per_step: int) -> None:
    # Three kernels in a row (two spaces), then a wait: one start on an idle stream, one return.
    p = program(launch(1, gpu(30)), launch(1, gpu(30)), launch(1, gpu(30)), wait(1), host(20))
    usual = period(p)
    assert usual == 1 + 2 + 30 + 1 + 30 + 1 + 30 + 3 + 20
    slower = replace(MACHINE, **{field: getattr(MACHINE, field) + 10})
    assert period(p, slower) == usual + 10 * per_step


def test_a_program_without_calls_takes_its_host_work() -> None:
    found = run(program(host(30), host(12)), MACHINE)
    assert (found.period_ns, found.host_ns, found.gpu_ns) == (42, 42, 0)
    assert run(program(), MACHINE).period_ns == 0


@pytest.mark.parametrize("items", [1, 10, 400, 1_000, 2_000, 6_000, LONG_PROGRAM, LONG_PROGRAM + 1])
def test_the_work_of_a_replay_is_linear_in_the_items(items: int) -> None:
    found = run(program(*[launch(1, gpu(1))] * items), MACHINE)
    replayed = items * len(found.ends)
    assert 1 <= len(found.ends) <= MAX_ROUNDS
    assert replayed <= max(MAX_ITEMS, 4 * items)
    assert (len(found.ends) == 1) == (items > LONG_PROGRAM)
    assert found.period_ns == pytest.approx(2 * items, rel=0.01, abs=0.01)
