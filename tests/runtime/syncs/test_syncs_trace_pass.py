import pytest

torch = pytest.importorskip("torch")

from gapless.runtime.syncs.trace_pass import TraceEvent, TracePass, rows  # noqa: E402

MS = 1_000_000


def event(name, kind, start, end, correlation=0, thread=1):
    return TraceEvent(name, kind, int(start * MS), int(end * MS), thread, correlation)


def test_a_sync_is_put_under_its_outermost_op_with_the_idle_time_after_it():
    (row,) = rows([
        event("aten::item", "op", 0, 6),
        event("aten::_local_scalar_dense", "op", 0, 5),
        event("cudaStreamSynchronize", "call", 1, 4),
        event("kernel", "gpu", 0, 4),
        event("kernel", "gpu", 9, 10),
    ])  # fmt: skip
    assert (row.call, row.op, row.count, row.wall_ms, row.idle_after_ms) == (
        "cudaStreamSynchronize", "aten::item", 1, 3.0, 5.0,
    )  # fmt: skip
    assert "needs the number" in row.why
    assert "GPU idle 5 ms after" in row.text()


def test_pageable_copies_are_found_by_their_gpu_record():
    (row,) = rows([
        event("aten::copy_", "op", 0, 6),
        event("cudaMemcpyAsync", "call", 1, 5, correlation=3),
        event("Memcpy HtoD (Pageable -> Device)", "gpu", 2, 5, correlation=3),
        event("cudaMemcpyAsync", "call", 5, 6, correlation=4),
        event("Memcpy HtoD (Pinned -> Device)", "gpu", 6, 7, correlation=4),
    ])  # fmt: skip
    assert row.call == "cudaMemcpyAsync (Memcpy HtoD (Pageable -> Device))"
    assert (row.op, row.wall_ms) == ("aten::copy_", 4.0)
    assert "pageable" in row.why


def test_ops_of_another_thread_and_finished_ops_do_not_count():
    (row,) = rows([
        event("aten::item", "op", 0, 6, thread=2),
        event("aten::mm", "op", 0, 1),
        event("cudaDeviceSynchronize", "call", 2, 4),
    ])  # fmt: skip
    assert row.op == ""
    assert "every stream" in row.why


def test_idle_is_zero_while_other_work_runs_and_at_the_end():
    found = rows([
        event("cudaStreamSynchronize", "call", 0, 2),
        event("kernel", "gpu", 1, 3),
        event("cudaEventSynchronize", "call", 4, 5),
    ])  # fmt: skip
    assert [row.idle_after_ms for row in found] == [0.0, 0.0]


def test_a_recorded_window_on_the_cpu_has_no_waits():
    window = TracePass()
    window.start()
    torch.ones(3).sum().item()
    assert window.stop() == []
