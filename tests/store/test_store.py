from __future__ import annotations

import io
import json
import multiprocessing
import os
import time
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from gapless import store
from gapless.ingest import read
from gapless.ingest.raw import RawTrace
from gapless.model import schema
from gapless.model.errors import NotATraceError, UsageError
from gapless.store import folder, loading


def trace(path: Path, count: int = 20, **top: object) -> Path:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": f"op{i % 7}", "pid": 1, "tid": 1, "ts": i, "dur": 0.5,
         "args": {"External id": i, "Input Dims": [[i]], "Collective name": "allreduce", "dtype": "Half"}}
        for i in range(count)
    ]  # fmt: skip
    kernel = {
        "ph": "X",
        "cat": "kernel",
        "name": "k",
        "pid": 0,
        "tid": 7,
        "ts": 1,
        "dur": 1,
        "args": {"grid": [1, 2, 3]},
    }
    path.write_text(json.dumps({"traceEvents": [*events, kernel], "with_stack": 1, **top}))
    return path


def assert_equal(left: RawTrace, right: RawTrace) -> None:
    assert left.meta == right.meta
    for table in schema.TABLES:
        assert_frame_equal(getattr(left, table.name), getattr(right, table.name))
        assert getattr(left, table.name).schema == getattr(right, table.name).schema


@pytest.fixture
def no_reading(monkeypatch: pytest.MonkeyPatch):
    """Makes every reading of a trace file fail, so that only the cache can answer."""

    def start() -> None:
        def refuse(*args: object, **options: object) -> RawTrace:
            raise AssertionError("the file was read again")

        monkeypatch.setattr(loading.ingest, "read", refuse)

    return start


def test_the_second_read_comes_from_the_cache_and_is_equal(tmp_path: Path, no_reading):
    path = trace(
        tmp_path / "a.json", distributedInfo={"rank": 1, "pg_config": [{"ranks": [0, 1]}]}, gapless={"x": [1.5, None]},
        deviceProperties=[{"id": 0, "name": "H200"}],
    )  # fmt: skip
    plain = read(path)
    first = store.load(path, cache_dir=tmp_path / "cache")
    no_reading()
    second = store.load(path, cache_dir=tmp_path / "cache")
    assert_equal(plain, first)
    assert_equal(first, second)


def test_a_copy_is_known_and_shows_its_own_path(tmp_path: Path, no_reading):
    path = trace(tmp_path / "a.json")
    store.load(path, cache_dir=tmp_path / "cache")
    copy = tmp_path / "b.json"
    copy.write_bytes(path.read_bytes())
    no_reading()
    assert store.load(copy, cache_dir=tmp_path / "cache").meta.path == str(copy)
    stream = io.BytesIO(path.read_bytes())
    assert store.load(stream, cache_dir=tmp_path / "cache").ops.height == 20


def test_a_changed_file_is_read_again(tmp_path: Path):
    path = trace(tmp_path / "a.json", 20)
    store.load(path, cache_dir=tmp_path / "cache")
    times = path.stat()
    trace(path, 21)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert store.load(path, cache_dir=tmp_path / "cache").ops.height == 21


def test_another_format_version_is_rebuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = trace(tmp_path / "a.json")
    store.load(path, cache_dir=tmp_path / "cache")
    monkeypatch.setattr(schema, "FORMAT_VERSION", schema.FORMAT_VERSION + 1)
    assert store.load(path, cache_dir=tmp_path / "cache").ops.height == 20
    (entry,) = (tmp_path / "cache").iterdir()
    assert json.loads((entry / "manifest.json").read_text())["format_version"] == schema.FORMAT_VERSION


def test_another_reader_has_its_own_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = trace(tmp_path / "a.json")
    store.load(path, cache_dir=tmp_path / "cache")
    monkeypatch.setattr(loading, "reader_mark", lambda: "other")
    store.load(path, cache_dir=tmp_path / "cache")
    assert len(list((tmp_path / "cache").iterdir())) == 2


@pytest.mark.parametrize(
    "damage", ["flip", "cut", "empty", "missing", "manifest", "manifest-cut", "manifest-list", "gone"]
)
def test_a_damaged_entry_is_rebuilt(tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch):
    path = trace(tmp_path / "a.json")
    cache = tmp_path / "cache"
    first = store.load(path, cache_dir=cache)
    (entry,) = cache.iterdir()
    table, manifest = entry / "ops.arrow", entry / "manifest.json"
    data = bytearray(table.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 1
        table.write_bytes(data)
    elif damage == "cut":
        table.write_bytes(data[:-9])
    elif damage == "empty":
        table.write_bytes(b"")
    elif damage == "missing":
        table.unlink()
    elif damage == "manifest":
        manifest.write_bytes(b"\xff" + manifest.read_bytes())
    elif damage == "manifest-cut":
        manifest.write_bytes(manifest.read_bytes()[:-40])
    elif damage == "manifest-list":
        manifest.write_text("[]")
    else:
        manifest.unlink()
    assert_equal(first, store.load(path, cache_dir=cache))
    monkeypatch.setattr(loading.ingest, "read", None)
    assert_equal(first, store.load(path, cache_dir=cache))
    assert len(list(cache.iterdir())) == 1


def test_entries_used_longest_ago_leave(tmp_path: Path):
    cache = tmp_path / "cache"
    paths = [trace(tmp_path / f"{i}.json", 20 + i) for i in range(4)]
    digests = [store.load(path, cache_dir=cache).meta.sha256 for path in paths[:3]]
    now = time.time()
    for age, digest in zip((300, 100, 200), digests, strict=True):
        (entry,) = cache.glob(f"{digest}*")
        os.utime(entry, (now - age, now - age))
    store.load(paths[0], cache_dir=cache)  # a use makes it young again
    size = folder.size_bytes(next(cache.iterdir()))
    store.load(paths[3], cache_dir=cache, max_cache_bytes=int(size * 3.5))
    left = {entry.name[:64] for entry in cache.iterdir()}
    assert len(left) == 3
    assert digests[0] in left
    assert digests[2] not in left


def test_a_trace_larger_than_the_cap_is_not_kept(tmp_path: Path):
    raw = store.load(trace(tmp_path / "a.json"), cache_dir=tmp_path / "cache", max_cache_bytes=10)
    assert raw.ops.height == 20
    assert list((tmp_path / "cache").iterdir()) == []


def test_abandoned_work_is_cleared_and_fresh_work_is_not(tmp_path: Path):
    cache = tmp_path / "cache"
    old, fresh = folder.new_folder(cache), folder.new_folder(cache)
    (old / "x").write_text("x")
    os.utime(old, (1, 1))
    folder.evict(cache, 1 << 30)
    assert not old.exists()
    assert fresh.exists()


def test_a_folder_that_cannot_be_written_is_no_obstacle(tmp_path: Path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    raw = store.load(trace(tmp_path / "a.json"), cache_dir=blocked / "cache")
    assert raw.ops.height == 20


def test_no_cache_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    path = trace(tmp_path / "a.json")
    assert store.load(path, cache_dir=None).ops.height == 20
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_errors_are_those_of_reading(tmp_path: Path):
    bad = tmp_path / "bad.json"
    bad.write_text("<html>")
    with pytest.raises(NotATraceError):
        store.load(bad, cache_dir=tmp_path / "cache")
    with pytest.raises(UsageError):
        store.load(tmp_path / "missing.json", cache_dir=tmp_path / "cache")


def _load(path: Path, cache: Path, results: multiprocessing.Queue) -> None:
    results.put(store.load(path, cache_dir=cache).ops.height)


def test_processes_may_race(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, cache = trace(tmp_path / "a.json", 500), tmp_path / "cache"
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=_load, args=(path, cache, results)) for _ in range(3)]
    for process in processes:
        process.start()
    assert [results.get(timeout=60) for _ in processes] == [500] * 3
    for process in processes:
        process.join(timeout=60)
        assert process.exitcode == 0
    assert len(list(cache.iterdir())) == 1
    monkeypatch.setattr(loading.ingest, "read", None)
    assert store.load(path, cache_dir=cache).ops.height == 500


def test_whoever_comes_second_throws_its_copy_away(tmp_path: Path):
    cache = tmp_path / "cache"
    entry = cache / "entry"
    for content in ("first", "second"):
        new = folder.new_folder(cache)
        (new / "manifest.json").write_text(content)
        folder.publish(new, entry, replace=False)
    assert (entry / "manifest.json").read_text() == "first"
    assert list(cache.iterdir()) == [entry]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"GAPLESS_CACHE_DIR": "/a/b", "XDG_CACHE_HOME": "/x"}, Path("/a/b")),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, Path("/x/gapless")),
        ({"LOCALAPPDATA": "/l", "HOME": "/h"}, Path("/l/gapless/cache")),
        ({"HOME": "/h"}, Path("/h/.cache/gapless")),
    ],
)
def test_default_folder(environ: dict[str, str], expected: Path):
    assert store.default_cache_dir(environ) == expected


def test_handed_traces_survive_the_cache(shared: Path, tmp_path: Path):
    names = ("h200/odd/expandable.json.gz", "public/hta/simple_add.json.gz", "invalid/absurd_durations.json",
             "public/tracelens/mi300_triton.json.gz", "h200/ddp/plain.rank0.json.gz")  # fmt: skip
    for name in names:
        first = store.load(shared / name, cache_dir=tmp_path)
        assert_equal(first, store.load(shared / name, cache_dir=tmp_path))
