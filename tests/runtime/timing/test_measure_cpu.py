"""On a CPU-only torch: host times are measured, GPU quantities are unknown, and the checks still look."""

from __future__ import annotations

import sys

import pytest
import torch

from gapless.model.errors import UsageError
from gapless.runtime.timing import Options, compare, measure
from gapless.runtime.timing import evidence as facts
from gapless.runtime.timing.subject import Subject, tensors_in

QUICK = Options(budget_s=0.05, warmup_s=0.01, min_samples=6)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.skipif(torch.cuda.is_available(), reason="tests what a machine without a GPU says")
def test_host_times_are_known_and_gpu_times_are_not():
    x = torch.randn(32, 32)
    m = measure(torch.mm, x, x, options=QUICK)
    assert m.backend == "cpu" and m.verdict.kind == "host-only" and m.headline.id == "t_tput"
    assert m.us is not None and m["t_lat"].known and m["t_first"].known
    for name in ("t_gpu", "t_enq", "t_graph", "t_kern_sum"):
        assert not m[name].known and "no GPU" in m[name].why
    assert m.check("H03").status == "unknown"
    assert m.check("H11").status == "pass" and m.check("H12").status == "pass" and m.check("H13").status == "pass"
    assert m.facts["footprint_bytes"] == 2 * 32 * 32 * 4, "one input used twice, and the output"


def test_keyword_arguments_reach_the_function():
    seen = []

    def fn(a, *, b):
        seen.append((a, b))

    measure(fn, 1, b=2, options=QUICK)
    assert set(seen) == {(1, 2)}


def test_faults_of_the_inputs_are_seen():
    zeros = torch.zeros(64, 64)
    m = measure(lambda x: x.add_(1), zeros, options=QUICK)
    assert m.check("H12").status == "warn"
    m = measure(torch.mm, torch.zeros(64, 64), torch.ones(64, 64), options=QUICK)
    assert m.check("H11").status == "warn" and "one value" in m.check("H11").evidence


def test_accumulating_gradients_are_seen_and_can_be_cleared():
    weight = torch.randn(8, 8, requires_grad=True)

    def step(w):
        (w * 2).sum().backward()

    assert measure(step, weight, options=QUICK).check("H12").status == "warn"
    cleared = Options(budget_s=0.05, warmup_s=0.01, min_samples=6, grad_to_none=True)
    assert measure(step, weight, options=cleared).check("H12").status == "pass"


def test_changing_results_are_seen():
    m = measure(lambda x: x + torch.rand(()), torch.randn(16), options=QUICK)
    assert m.check("H13").status == "warn"


def test_a_tracer_fails_the_surroundings_check():
    previous = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        m = measure(lambda: None, options=QUICK)
    finally:
        sys.settrace(previous)
    assert m.check("H15").status == "fail"


def test_patched_clock_fails(monkeypatch):
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)
    assert measure(lambda: None, options=QUICK).check("H19").status == "fail"


def test_compare_tells_twice_the_work():
    x = torch.randn(64, 64)
    c = compare({"once": lambda: x @ x, "four": lambda: x @ x @ x @ x @ x}, options=QUICK)
    assert c.baseline == "once" and c.quantity in ("t_tput", "t_gpu")
    assert c["four"].ratio > 1.5
    assert "once" in str(c) and "<pre>" in c._repr_html_()
    assert len(c.times_us["once"]) == c.blocks >= 10


@pytest.mark.parametrize(
    "bad",
    [
        {"l2": "hot"},
        {"headline": "t_best"},
        {"budget_s": 0.0},
        {"budget_s": float("nan")},
        {"target": 1.5},
        {"min_samples": 1},
    ],
)
def test_options_that_make_no_sense_are_refused(bad):
    with pytest.raises(UsageError):
        Options(**bad)


def test_misuse_is_named():
    with pytest.raises(UsageError, match="pass the function"):
        measure(torch.ones(3))
    with pytest.raises(UsageError, match="two or more"):
        compare({"a": lambda: None})
    with pytest.raises(UsageError, match="cannot be called"):
        compare({"a": lambda: None, "b": 3})


def test_an_exception_of_the_function_comes_through():
    def broken():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        measure(broken, options=QUICK)


def test_tensors_are_found_in_nested_arguments_and_copied():
    x, y = torch.randn(4), torch.randn(4)
    nested = {"a": [x, (y, 3)], "b": "text"}
    assert list(tensors_in(nested)) == [x, y]
    subject = Subject(lambda n: n["a"][0].add_(1), (nested,))
    first, second = subject.copies(2)
    before = x.clone()
    second()
    assert torch.equal(x, before), "the copy has its own tensors"
    first()
    assert torch.equal(x, before + 1)


def test_endless_nesting_ends():
    loop: list[object] = []
    loop.append(loop)
    assert list(tensors_in(loop)) == []


def test_footprint_counts_shared_storage_once():
    x = torch.randn(1000)
    assert Subject(lambda a, b: None, (x, x[:500])).footprint_bytes() == 4000


def test_checksums_and_constants():
    assert facts.checksum((torch.ones(4), torch.tensor([True, False]))) == [4.0, 1.0]
    assert facts.checksum("nothing") is None
    assert facts.constant_inputs([torch.arange(100)]) == [], "integers are not judged"
    mostly = torch.zeros(1000)
    mostly[:50] = torch.randn(50)
    assert "zeros" in facts.constant_inputs([mostly])[0]
    assert facts.constant_inputs([torch.randn(1000)]) == []
