"""On a CUDA GPU: the blocker, its timeout, and the claims that need a device."""

from __future__ import annotations

import time

import pytest
import torch

from gapless.runtime.timing import Options, compare, measure
from gapless.runtime.timing import quantities as q
from gapless.runtime.timing.sampling import StopRule

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")]
QUICK = Options(budget_s=0.2)


@pytest.fixture(scope="module")
def backend():
    from gapless.runtime.timing.cuda import current_backend

    return current_backend()


def test_flag_blocker_holds_until_released(backend):
    assert backend.caps.blocker == "flag", backend.caps.notes
    x = torch.zeros(1, device="cuda")
    done = torch.cuda.Event()
    hold = backend.hold(1000.0, self_ending=False)
    x.add_(1)
    done.record()
    time.sleep(0.02)
    assert hold.holding() and not done.query()
    hold.release()
    torch.cuda.synchronize()
    assert x.item() == 1


def test_flag_blocker_gives_up_by_itself(backend):
    hold = backend.hold(10.0, self_ending=False)
    torch.cuda.synchronize()
    assert not hold.holding(), "an unreleased blocker ends by its own clock"
    hold.release()
    again = backend.hold(10.0, self_ending=False)
    assert again.holding(), "a late release does not open the next gate"
    again.release()
    torch.cuda.synchronize()


@pytest.mark.parametrize("delay_us", [0, 100])
def test_gpu_time_does_not_depend_on_the_host(backend, delay_us):
    x = torch.randn(1 << 22, device="cuda")

    def run() -> None:
        end = time.perf_counter_ns() + delay_us * 1000
        while time.perf_counter_ns() < end:
            pass
        x.add_(1)

    for _ in range(3):
        run()
    found = q.fit(run, backend, 20.0 + delay_us)
    gpu, _ = q.queued(run, backend, StopRule(20, 0.01, 0.3), found)
    plain = q.fit(lambda: x.add_(1), backend, 20.0)
    reference, _ = q.queued(lambda: x.add_(1), backend, StopRule(20, 0.01, 0.3), plain)
    assert gpu.us == pytest.approx(reference.us, rel=0.05)


def test_hidden_sync_is_found_with_its_line():
    x = torch.randn(2048, 2048, device="cuda")

    def subject(t):
        return (t @ t)[0, 0].item()

    m = measure(subject, x, options=QUICK)
    assert m.verdict.kind == "host-serialised"
    assert f"{__file__}:{subject.__code__.co_firstlineno + 1}" in m.check("H04").evidence


def test_pageable_non_blocking_copy_is_found_by_the_blocker():
    x = torch.randn(4096, 4096, device="cuda")
    page = torch.randn(1 << 20)
    m = measure(lambda t: (t @ t, page.to("cuda", non_blocking=True)), x, options=QUICK)
    assert m.verdict.kind == "host-serialised" and m.check("H04").status == "warn"
    assert not m["t_gpu"].known


def test_stray_stream_fails():
    x = torch.randn(4096, 4096, device="cuda")
    side = torch.cuda.Stream()

    def subject(t):
        with torch.cuda.stream(side):
            t @ t
        return t[:1] * 2

    m = measure(subject, x, options=QUICK)
    assert m.check("H03").status == "fail" and m.headline.id == "t_lat"


def test_failed_capture_leaves_torch_usable():
    x = torch.randn(64, 64, device="cuda")
    stream = torch.cuda.current_stream()
    m = measure(lambda: (x * 2, torch.cuda.current_stream().query()), options=QUICK)
    assert not m["t_graph"].known and "capture failed" in m["t_graph"].why
    assert torch.cuda.current_stream() == stream
    assert torch.isfinite(torch.randn(8, device="cuda").sum())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + 1
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(y, x + 1)


def test_graph_is_verified_and_kernels_counted():
    x = torch.randn(512, 512, device="cuda")
    m = measure(lambda t: torch.relu(t) + 1, x, options=Options(budget_s=0.2, kernels=True))
    assert m.check("H14").status == "pass", m.check("H14").evidence
    assert m.facts["kernels_per_call"] == 2
    assert m["t_kern_sum"].known


def test_compare_on_the_gpu():
    x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    c = compare({"one": lambda: x @ x, "two": lambda: (x @ x) @ x}, options=Options(budget_s=0.5))
    assert c.quantity == "t_gpu" and c["two"].verdict == "SLOWER"
    assert "cycles" in c.cycles_note
