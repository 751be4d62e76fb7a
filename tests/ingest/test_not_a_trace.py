from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from trace_files import gz, kernel, read_events, read_text, text_of

from gapless.ingest import read, reader
from gapless.model.errors import EmptyTraceError, GaplessError, NotATraceError, UsageError


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"<html>404</html>", "HTML"),
        (b"<!DOCTYPE html><html>", "HTML"),
        (b'<?xml version="1.0"?>', "XML"),
        (b'{"schema": "1.1.0-chakra", "nodes": []}', "Chakra"),
        (pickle.dumps({"segments": [], "device_traces": []}, protocol=4), "pickle"),
        (b'{"segments": [], "device_traces": []}', "memory snapshot"),
        (b"[[1, 2], [3, 4]]", "memory timeline"),
        (b"[1, 2, 3]", "list"),
        (b'[{"a": 1}]', "list"),
        (b"\x0a\x05hello\x00\x01\x02\x03", "Perfetto"),
        (b"\x0a\x10\x00\x02/host:CPU\x00\x01", "XPlane"),
        (b"SQLite format 3\x00abc", "Nsight"),
        (b"PK\x03\x04rest", "zip"),
        (b'{"answer": 42}', "keys: answer"),
        (b"just words", "plain text"),
        (b"\x00\x01\x02\x03" * 100, "binary"),
        (b"version https://git-lfs.github.com/spec/v1", "LFS"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_one_line_says_what_it_looks_like(data: bytes, word: str, packed: bool):
    with pytest.raises(NotATraceError) as caught:
        read_text(gz(data) if packed else data)
    message = str(caught.value)
    assert word in message
    assert "\n" not in message
    assert caught.value.exit_code == 2


def test_endless_text_without_events_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reader, "HEADER_LIMIT", 1 << 20)
    with pytest.raises(NotATraceError, match="keys: padding"):
        read_text(b'{"padding": "' + b"x" * (16 << 20) + b'", "traceEvents": [')


def test_a_list_of_events_that_is_not_a_list():
    with pytest.raises(NotATraceError):
        read_text('{"traceEvents": {"a": 1}}')


@pytest.mark.parametrize(
    "text", ['{"traceEvents": []}', "[]", '{"traceEvents": [', '{"traceEvents": [{"ph": "M", "name": "x"}]}']
)
def test_a_trace_without_events(text: str):
    with pytest.raises(GaplessError) as caught:
        read_text(text)
    assert "\n" not in str(caught.value)


def test_events_of_foreign_tools_are_named():
    with pytest.raises(EmptyTraceError, match="npu_thing"):
        read_text(text_of({"ph": "X", "cat": "npu_thing", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}))


def test_all_events_refused_is_an_empty_trace():
    with pytest.raises(EmptyTraceError):
        read_events(kernel("k", 1, -5))


def test_paths_that_cannot_be_opened(tmp_path: Path):
    for source in (tmp_path, tmp_path / "missing.json", str(tmp_path / "missing.json")):
        with pytest.raises(UsageError) as caught:
            read(source)
        assert "\n" not in str(caught.value)


def test_urls_go_through_fsspec(tmp_path: Path):
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    with fsspec.open("memory://traces/a.json.gz", "wb") as file:
        file.write(gz(text_of(kernel("k", 1, 1)).encode()))
    raw = read("memory://traces/a.json.gz")
    assert raw.activities.height == 1
    assert raw.meta.path == "memory://traces/a.json.gz"
    with pytest.raises(UsageError):
        read("memory://traces/none.json")


def test_a_source_that_fails_while_it_is_read():
    class Broken:
        def __init__(self) -> None:
            self.calls = 0

        def read(self, size: int = -1, /) -> bytes:
            self.calls += 1
            if self.calls > 1:
                raise OSError("connection reset\nby peer")
            return text_of(kernel("k", 1, 1)).encode()[:50]

    with pytest.raises(GaplessError, match="connection reset by peer"):
        read(Broken())


def test_progress_reaches_the_size(tmp_path: Path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": [kernel("k", i, 1) for i in range(100)]}))
    seen: list[tuple[int, int | None]] = []
    read(path, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)
