"""How the file is stored, cut and shared among processes changes nothing."""

from __future__ import annotations

import io
import json
import os
import select
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trace_files import assert_same, gz, kernel, read_text, span, text_of

from gapless.ingest import read, reader, workers
from gapless.ingest.cutter import Cutter
from gapless.model.errors import GaplessError

SMALL = (
    "h200/article/mm4096_shapes_mem_sync.json.gz",
    "public/hta/mi250.json.gz",
    "public/torch_profiling_tutorial/transformer.json.gz",
    "invalid/edge_w2.10.0_kwnan.json",
    "invalid/truncated.json",
    "invalid/comma_decimals.json",
)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("chunk_bytes", [100, 5000])
def test_chunk_size_changes_nothing_on_real_files(shared: Path, name: str, chunk_bytes: int):
    assert_same(read(shared / name), read(shared / name, chunk_bytes=chunk_bytes))


hostile = st.sampled_from(['}, {"ph": "X"', '"}],'])
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=8) | hostile
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "ph", "a"]), inner, max_size=3)
    ),
    max_leaves=8,
)
args = st.dictionaries(st.sampled_from(["External id", "name", "list", "ts", "Input Dims", "x"]), values, max_size=4)
events = st.lists(
    st.builds(
        lambda cat, name, ts, dur, a: span(cat, name, ts / 1000, dur / 1000, 1, 1) | {"args": a},
        st.sampled_from(["cpu_op", "kernel", "python_function", "user_annotation", "cuda_runtime", "odd"]),
        st.text(max_size=12) | st.sampled_from(['"}, {"name": "', "\\", '], "x": ']),
        st.integers(0, 10**9),
        st.integers(0, 10**6),
        args,
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(events, st.integers(1, 400), st.integers(1, 300))
def test_chunk_and_block_size_change_nothing(items: list[dict], chunk_bytes: int, block: int):
    text = text_of(kernel("k", 1, 1), *items, deviceProperties=[{"id": 0, "name": "g"}], with_stack=1)

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size or block, block))

    assert_same(read_text(text), read(Slow(text.encode()), chunk_bytes=chunk_bytes))


def test_layout_of_the_json_changes_nothing():
    items = [span("cpu_op", f"op {i}", i, 1, External=i) for i in range(50)]
    value = {"traceEvents": items, "with_stack": 1}
    compact = read_text(json.dumps(value, separators=(",", ":")))
    assert_same(compact, read_text(json.dumps(value, indent=2)))
    assert_same(compact, read_text(json.dumps({"with_stack": 1, "traceEvents": items})))


def test_gzip_and_plain_are_equal(tmp_path: Path):
    text = text_of(*(span("cpu_op", f"op {i % 7}", i, 1) for i in range(300))).encode()
    plain, packed = tmp_path / "a.json.gz", tmp_path / "a.json"  # names do not matter
    plain.write_bytes(text)
    packed.write_bytes(gz(text))
    assert_same(read(plain), read(packed))


def many_events(count: int) -> bytes:
    ops = (span("cpu_op", f"op {i % 97}", i, 0.5, 1, i % 5, **{"Input Dims": [[i % 13]]}) for i in range(count))
    kernels = (kernel(f"k{i % 11}", i, 0.25, i) for i in range(count))
    return text_of(*ops, *kernels, with_stack=1).encode()


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="workers need Linux")
def test_workers_change_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reader, "FORK_BYTES", 1)
    data = many_events(2000)
    broken = data.replace(b'"op 5"', b'"op "5""')
    for text in (data, broken, gz(data)):
        assert_same(read_text(text, fork=False), read_text(text, fork=True, chunk_bytes=20_000))


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="workers need Linux")
def test_a_worker_that_dies_costs_no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(reader, "FORK_BYTES", 1)
    data = many_events(1000)
    path = tmp_path / "t.json"
    path.write_bytes(data)
    expected = read(path, fork=False)
    killing = workers.Pool.no_more

    def kill_then_end(pool: workers.Pool) -> None:
        # A worker that dies before it took a chunk loses nothing: wait until one was decoded.
        if pool._tasks[1] >= 0:
            assert select.select([pool._done[0]], [], [], 30)[0]
        for worker in pool._workers:
            os.kill(worker.pid, signal.SIGKILL)
        killing(pool)

    monkeypatch.setattr(workers.Pool, "no_more", kill_then_end)
    assert_same(expected, read(path, fork=True, chunk_bytes=20_000))
    with pytest.raises(GaplessError, match="helper process died"):
        read_text(data, fork=True, chunk_bytes=20_000)


def test_frames_can_be_left_out():
    raw = read_text(text_of(span("python_function", "f", 1, 1), kernel("k", 2, 1)), keep_frames=False)
    assert raw.frames.height == 0
    assert raw.meta.size_by_category["python_function"][0] == 1


def test_the_cutter_loses_no_byte():
    text = many_events(50)
    pieces: list[bytes] = []
    cutter = Cutter(700, lambda view: pieces.append(bytes(view[1:-1])))
    for begin in range(0, len(text), 333):
        cutter.feed(text[begin : begin + 333])
    cutter.end()
    whole = cutter.before + b'"traceEvents": [' + b", ".join([*pieces, cutter.rest])
    assert whole == text
    assert len(pieces) > 10
