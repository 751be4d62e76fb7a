"""What the helpers promise, on the CPU; the same promises are checked on a GPU by benchmarks/gpu/syncs_h200.py."""

import collections
import dataclasses
import time

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from gapless.model.errors import UsageError  # noqa: E402
from gapless.runtime import streams  # noqa: E402
from gapless.runtime.streams.structure import map_tensors, tensors_of  # noqa: E402

Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass(frozen=True)
class Batch:
    image: object
    label: int = 0
    late: object = dataclasses.field(init=False, default=None)


class Encoding(collections.UserDict):
    """Like a tokenizer's result: a mapping that is no dict."""


def test_structures_keep_their_types():
    t = torch.ones(2)
    value = {
        "a": [t, (t, "text")],
        "p": Point(t, 3),
        "b": Batch(t, 7),
        "o": collections.OrderedDict(k=t),
        "e": Encoding(ids=t),
        "n": None,
    }
    moved = map_tensors(lambda tensor: tensor + 1, value)
    assert len(tensors_of(moved)) == 6
    assert all(tensor.tolist() == [2, 2] for tensor in tensors_of(moved))
    assert all(tensor.tolist() == [1, 1] for tensor in tensors_of(value))
    assert isinstance(moved["p"], Point)
    assert moved["p"].y == 3
    assert isinstance(moved["b"], Batch)
    assert moved["b"].label == 7
    assert isinstance(moved["o"], collections.OrderedDict)
    assert isinstance(moved["e"], Encoding)
    assert moved["a"][1][1] == "text"


def test_defaultdict_keeps_its_factory():
    value = collections.defaultdict(list, a=[torch.ones(1)])
    assert map_tensors(lambda tensor: tensor, value)["missing"] == []


def test_a_structure_inside_itself_ends():
    loop = []
    loop.append(loop)
    assert isinstance(map_tensors(lambda tensor: tensor, loop), list)


leaves = st.one_of(st.none(), st.integers(), st.text(max_size=3), st.builds(lambda: torch.ones(1)))
nested = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
        st.tuples(inner, inner),
        st.builds(Point, inner, inner),
        st.builds(Batch, inner),
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(nested)
def test_identity_changes_nothing(value):
    same = map_tensors(lambda tensor: tensor, value)
    assert type(same) is type(value)
    assert [id(tensor) for tensor in tensors_of(same)] == [id(tensor) for tensor in tensors_of(value)]


def test_to_host_gives_the_values_of_the_moment():
    x = torch.ones(3)
    handle = streams.to_host({"x": x, "same": x})
    x.zero_()
    assert handle.done()
    result = handle.result()
    assert result["x"].tolist() == [1, 1, 1]
    assert result["x"] is result["same"]
    assert handle.result() is result


def test_to_host_lets_go_of_the_graph():
    x = torch.ones(3, requires_grad=True)
    assert not streams.to_host(x * 2).result().requires_grad


def test_save_async_writes_the_values_of_the_moment(tmp_path):
    weight = torch.ones(3)
    saving = streams.save_async({"weight": weight, "step": 3}, tmp_path / "a.pt")
    weight.zero_()
    assert saving.result() == tmp_path / "a.pt"
    assert saving.done()
    loaded = torch.load(tmp_path / "a.pt")
    assert loaded["weight"].tolist() == [1, 1, 1]
    assert loaded["step"] == 3
    assert [path.name for path in tmp_path.iterdir()] == ["a.pt"]


def test_a_failed_save_leaves_the_old_file_and_no_litter(tmp_path):
    target = tmp_path / "a.pt"
    streams.save_async(torch.ones(1), target).result()
    before = target.read_bytes()
    broken = streams.save_async({"weight": torch.ones(1), "bad": (lambda: None)}, target)
    with pytest.raises(Exception, match="pickle"):
        broken.result()
    assert target.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.pt"]


def test_savings_to_one_path_finish_in_order(tmp_path):
    savings = [streams.save_async(torch.full((1000,), float(n)), tmp_path / "a.pt") for n in range(8)]
    for saving in savings:
        saving.result()
    assert torch.load(tmp_path / "a.pt")[0] == 7


def test_save_into_no_folder_says_what_to_do(tmp_path):
    with pytest.raises(UsageError, match="create it first"):
        streams.save_async(torch.ones(1), tmp_path / "none" / "a.pt")


def test_prefetch_keeps_order_structure_and_can_be_repeated():
    loader = torch.utils.data.DataLoader([{"x": torch.full((2,), float(n)), "n": n} for n in range(6)], batch_size=2)
    ahead = streams.prefetch(loader, "cpu")
    for _ in range(2):
        batches = list(ahead)
        assert [batch["n"].tolist() for batch in batches] == [[0, 1], [2, 3], [4, 5]]
    assert len(ahead) == 3
    assert ahead.unpinned_batches == 0


def test_exceptions_of_the_loader_surface_after_the_batches_before():
    def loader():
        yield torch.ones(1)
        yield torch.ones(1)
        raise OSError("disk gone")

    seen = []
    with pytest.raises(OSError, match="disk gone"):
        for batch in streams.prefetch(loader(), "cpu"):
            seen.append(batch)  # noqa: PERF402
    assert len(seen) == 2


def test_empty_loader_and_early_stop():
    assert list(streams.prefetch([], "cpu")) == []
    for batch in streams.prefetch([torch.ones(1), torch.ones(1)], "cpu"):
        assert batch.sum() == 1
        break


def test_side_stream_on_the_cpu_runs_the_body_and_lets_errors_through():
    x = torch.ones(2)
    with streams.side_stream(x, device="cpu") as side:
        y = x * 2
        side.record(y)
    assert side.stream is None
    assert y.tolist() == [2, 2]
    with pytest.raises(ZeroDivisionError), streams.side_stream(device="cpu"):
        raise ZeroDivisionError


def test_timer_keeps_laps_by_name_and_survives_exceptions():
    for _ in range(3):
        with streams.timer("test-forward", "cpu"):
            time.sleep(0.001)
    with pytest.raises(ZeroDivisionError), streams.timer("test-forward", "cpu"):
        raise ZeroDivisionError
    laps = streams.timers()["test-forward"]
    assert len(laps.ready_ms()) == 4
    assert laps.ready_ms() == laps.wait_ms()
    assert all(ms >= 1.0 for ms in laps.ready_ms()[:3])
    laps.reset()
    assert laps.ready_ms() == []


def test_unknown_and_absent_devices_are_refused_in_words():
    with pytest.raises(UsageError, match="unknown to torch"):
        streams.prefetch([], "gpu0")
    if not torch.cuda.is_available():
        with pytest.raises(UsageError, match="not available here"):
            streams.prefetch([], "cuda")
