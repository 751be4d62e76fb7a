"""Reads of a value: a printed tensor is one fault, `x[mask] = f(x[mask])` is one operation, a lone read is a read."""

from __future__ import annotations

from tests.rules.factory import MUL, Script, context, f32
from tests.rules.gains import found, gain, gains

from gapless.rules import explicit_sync, hidden_sync

SHAPE = [f32(512, 512)]


def read(t: Script, name: str) -> None:
    """An op that copies one value to the host and waits for it."""
    with t.op(name), t.op("aten::_local_scalar_dense"):
        t.wait_for_copy()


def layers(t: Script, count: int) -> None:
    for _ in range(count):
        t.simple("aten::mul", SHAPE, MUL, 5)


def print_tensor(t: Script) -> None:
    t.python(60)
    for name in ("aten::isfinite", "aten::ne", "aten::__and__"):
        t.simple(name, SHAPE, MUL, 2)
    with t.op("aten::masked_select", SHAPE), t.op("aten::nonzero"):
        t.wait_for_copy()
    for name in ("aten::abs", "aten::min", "aten::max", "aten::ceil", "aten::ne"):
        t.simple(name, SHAPE, MUL, 2)
    for _ in range(4):
        read(t, "aten::is_nonzero")
    for _ in range(8):
        with t.op("aten::detach"):
            pass
        read(t, "aten::item")
    t.python(50)


def test_all_that_a_print_computes_goes_with_it() -> None:
    def program(t: Script) -> None:
        layers(t, 12)
        print_tensor(t)
        layers(t, 12)

    def without(t: Script) -> None:
        layers(t, 24)

    c = context(program)
    one = found(hidden_sync.check(c))
    assert one.title.startswith("Printing a CUDA tensor makes the host wait for the GPU 13 times a step")
    assert "step % 100" in one.fix
    true = gain(c, lambda _: context(without).program)
    assert abs(gain(c, one.edit) / true - 1) < 0.15


def test_the_ops_of_a_print_alone_are_no_print() -> None:
    def program(t: Script) -> None:
        layers(t, 12)
        for name in ("aten::isfinite", "aten::abs", "aten::max"):
            t.simple(name, SHAPE, MUL, 2)
        read(t, "aten::item")
        layers(t, 12)

    c = context(program)
    one = found(hidden_sync.check(c))
    assert one.title.startswith("aten::item makes the host wait")
    assert gain(c, one.edit) < 1.35, "only the read goes, not the three ops before it"


def masked(t: Script) -> None:
    with t.op("aten::index", SHAPE), t.op("aten::nonzero"):
        t.wait_for_copy()
    t.simple("aten::mul", SHAPE, MUL, 5)
    with t.op("aten::index_put_", SHAPE), t.op("aten::nonzero"):
        t.wait_for_copy()
    layers(t, 2)


def test_reading_and_writing_under_one_mask_become_one_operation() -> None:
    def program(t: Script) -> None:
        for _ in range(6):
            masked(t)

    both = context(program)
    low, middle, high = gains(both, found(hidden_sync.check(both)))
    assert low < middle < high
    edited = found(hidden_sync.check(both)).edit
    assert edited is not None
    added = edited(both.program).act_row
    assert int((added < 0).sum()) == 6, "one kernel takes the place of each pair"


def test_asking_for_an_event_belongs_to_the_wait_for_it() -> None:
    def program(t: Script) -> None:
        for _ in range(4):
            layers(t, 5)
            t.python(15)
            t.call("cudaStreamIsCapturing", 0.5)
            t.call("cudaEventRecordWithFlags", 0.5)
            t.call("cudaEventSynchronize", 3)
            t.python(15)

    def without(t: Script) -> None:
        layers(t, 20)

    c = context(program)
    true = gain(c, lambda _: context(without).program)
    assert true > 1.1
    assert abs(gain(c, found(explicit_sync.check(c)).edit) / true - 1) < 0.05
