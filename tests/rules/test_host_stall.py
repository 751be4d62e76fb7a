"""Is a long pause of the host named by the Python frame that fills it, in this trace's stacks or in a window beside it?"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gapless.rules import gc_pause, host_stall
from gapless.rules.outcome import Clean, Unknown

from .factory import MUL, Script, context_of, record
from .gains import found, gains

STEP, SLEEP = "train.py(40): step", "<built-in function sleep>"


def work(t: Script, ops: int = 20) -> None:
    for _ in range(ops):
        t.simple("aten::mul", [], MUL, 5)


def sleeping(t: Script) -> None:
    with t.frame(STEP):
        work(t)
        with t.frame("train.py(90): wait"), t.frame(SLEEP):
            t.python(5_000)
        t.simple("aten::add", [], MUL, 5)


def sleeping_first(t: Script) -> None:
    with t.frame(STEP), t.frame("train.py(90): wait"), t.frame(SLEEP):
        t.python(5_000)
    with t.frame(STEP):
        work(t)


def sleeping_last(t: Script) -> None:
    """Behind the work of another thread, which no outermost event of the main thread stands for."""
    with t.frame(STEP):
        work(t)
        with t.frame("torch/autograd/graph.py(800): _engine_run_backward"):
            t.thread = 2
            work(t, 400)
            t.thread = 1
        with t.frame("train.py(90): wait"), t.frame(SLEEP):
            t.python(3_000)


def two_pauses(t: Script) -> None:
    with t.frame(STEP):
        work(t)
        with t.frame("train.py(90): wait"), t.frame(SLEEP):
            t.python(5_000)
        t.simple("aten::add", [], MUL, 5)
        with t.frame("numpy/_core/_methods.py(115): _mean"), t.frame("<built-in method reduce of numpy.ufunc object>"):
            t.python(2_000)
        t.simple("aten::sub", [], MUL, 5)


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("program", [sleeping, sleeping_first, sleeping_last])
def test_the_frame_that_fills_the_pause_is_named(program: Callable[[Script], None], beside: bool) -> None:
    seen = record(program, stacks=True)
    c = context_of(record(program), seen) if beside else context_of(seen)
    one = found(host_stall.check(c))
    assert SLEEP in one.title
    assert [(site.place.file, site.place.line) for site in one.sites] == [("train.py", 90)]


def test_different_pauses_keep_their_own_places() -> None:
    one = found(host_stall.check(context_of(record(two_pauses), record(two_pauses, stacks=True))))
    assert "something that is not PyTorch" in one.title
    assert [(site.place.file, site.place.line) for site in one.sites] == [("train.py", 90), ("train.py", 40)]
    assert [text.split(" in ", 1)[1] for text in one.evidence] == [
        SLEEP,
        "<built-in method reduce of numpy.ufunc object>",
    ]


def test_without_stacks_the_neighbours_are_named() -> None:
    one = found(host_stall.check(context_of(record(sleeping))))
    assert "something that is not PyTorch" in one.title
    assert "after aten::mul before aten::add" in one.evidence[0]


def test_a_window_where_nothing_pauses_names_nothing() -> None:
    def quick(t: Script) -> None:
        with t.frame(STEP):
            work(t)
            with t.frame("train.py(90): wait"), t.frame(SLEEP):
                t.python(50)
            t.simple("aten::add", [], MUL, 5)

    one = found(host_stall.check(context_of(record(sleeping), record(quick, stacks=True))))
    assert "something that is not PyTorch" in one.title
    assert isinstance(host_stall.check(context_of(record(quick))), Clean)


def collecting(t: Script) -> None:
    with t.frame(STEP):
        work(t)
        with t.frame("train.py(70): tidy"), t.frame("<built-in function collect>"):
            t.python(4_000)
        t.simple("aten::add", [], MUL, 5)


@pytest.mark.parametrize("beside", [False, True])
def test_a_collection_is_one_and_no_pause(beside: bool) -> None:
    seen = record(collecting, stacks=True)
    c = context_of(record(collecting), seen) if beside else context_of(seen)
    assert isinstance(host_stall.check(c), Clean)
    one = found(gc_pause.check(c))
    assert one.title == "Python collects garbage for 4.0 ms a step"
    assert [(site.place.file, site.place.line) for site in one.sites] == [("train.py", 70)]
    low, middle, high = gains(c, one)
    assert 1 < low < middle <= high


def test_a_window_beside_without_collections_is_clean() -> None:
    assert isinstance(gc_pause.check(context_of(record(sleeping), record(sleeping, stacks=True))), Clean)
    assert isinstance(gc_pause.check(context_of(record(sleeping))), Unknown)
