import io

import pytest

torch = pytest.importorskip("torch")

from gapless.runtime.syncs import HostRaceError  # noqa: E402

GPU = torch.device("meta")


def races(watch):
    return [(race.kind, race.access, race.count) for race in watch.report().races]


READS = [
    ("aten::_local_scalar_dense", lambda host: host[0].item()),
    ("aten::sum", lambda host: host.sum()),
    ("aten::clone", lambda host: host[1:].clone()),
    ("aten::stack", lambda host: torch.stack([host, host])),
    ("Tensor.tolist", lambda host: host.tolist()),
    ("Tensor.__array__", lambda host: __import__("numpy").asarray(host)),
    ("Tensor.__repr__", lambda host: repr(host)),
    ("Tensor.untyped_storage", lambda host: torch.save(host, io.BytesIO())),
]


@pytest.mark.parametrize(("access", "read"), READS)
def test_reading_a_copy_too_early_is_a_race(gpu, access, read):
    x = torch.empty(4, device=GPU)
    with gpu.watch() as watch:
        gpu.queue.launch()
        host = x.to("cpu", non_blocking=True)
        read(host)
    found = races(watch)
    assert ("read-too-early", access) in {race[:2] for race in found}
    (race, *_) = watch.report().races
    assert race.copy_site.file == race.access_site.file == __file__
    assert "RACE" in watch.report().text()


@pytest.mark.parametrize(("access", "read"), READS)
def test_reading_after_the_copy_is_none(gpu, access, read):
    x = torch.empty(4, device=GPU)
    with gpu.watch() as watch:
        gpu.queue.launch()
        host = x.to("cpu", non_blocking=True)
        gpu.queue.wait()
        read(host)
    assert watch.report().races == []


def test_copy_into_a_pinned_buffer_is_followed_too(gpu):
    x, buffer = torch.empty(4, device=GPU), gpu.backend.pin(torch.zeros(8))
    with gpu.watch() as watch:
        gpu.queue.launch()
        buffer[:4].copy_(x, non_blocking=True)
        buffer[4:].sum()
        assert watch.report().races == []
        buffer[3:].sum()
    assert races(watch) == [("read-too-early", "aten::sum", 1)]


@pytest.mark.parametrize(
    ("access", "write"),
    [
        ("aten::zero_", lambda batch: batch.zero_()),
        ("aten::copy_", lambda batch: batch.__setitem__(0, 1.0)),
        ("aten::fill_", lambda batch: batch.fill_(1.0)),
        ("aten::add_", lambda batch: batch.add_(1)),
        ("aten::copy_", lambda batch: batch.copy_(torch.ones(4))),
        ("aten::add", lambda batch: torch.add(torch.ones(4), 1, out=batch)),
    ],
)
def test_overwriting_a_pinned_source_too_early_is_a_race(gpu, access, write):
    batch = gpu.backend.pin(torch.zeros(4))
    with gpu.watch() as watch:
        gpu.queue.launch()
        batch.to(GPU, non_blocking=True)
        write(batch)
    assert ("overwritten-too-early", access) in {race[:2] for race in races(watch)}


def test_reading_a_pinned_source_is_allowed(gpu):
    batch = gpu.backend.pin(torch.zeros(4))
    with gpu.watch() as watch:
        gpu.queue.launch()
        batch.to(GPU, non_blocking=True)
        batch.sum()
        batch.to(GPU, non_blocking=True)
    assert watch.report().races == []


def test_a_numpy_view_taken_meanwhile_cannot_be_watched(gpu):
    x = torch.empty(4, device=GPU)
    with gpu.watch() as watch:
        gpu.queue.launch()
        x.to("cpu", non_blocking=True).numpy()
    assert ("numpy-view", "Tensor.numpy") in {race[:2] for race in races(watch)}


def test_the_same_race_is_counted_once_a_place(gpu):
    x = torch.empty(4, device=GPU)
    with gpu.watch() as watch:
        for _ in range(3):
            gpu.queue.launch()
            host = x.to("cpu", non_blocking=True)
            host.sum()
            gpu.queue.wait()
    assert races(watch) == [("read-too-early", "aten::sum", 3)]


def test_raise_stops_before_the_read(gpu):
    x = torch.empty(4, device=GPU)
    message = "reads the result of a copy that is still running"
    with pytest.raises(HostRaceError, match=message), gpu.watch(on="raise"):
        gpu.queue.launch()
        x.to("cpu", non_blocking=True).sum()


def test_races_can_be_left_out(gpu):
    x = torch.empty(4, device=GPU)
    with gpu.watch(races=False) as watch:
        gpu.queue.launch()
        x.to("cpu", non_blocking=True).sum()
    assert watch.report().races == []
