"""The metadata is part of the JSON, exact, and can be replaced without touching the body."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

import pytest

from gapless.runtime.recorder import metadata

BODY = '{\n  "schemaVersion": 1,\n  "traceEvents": [\n    {\n      "ph": "X", "cat": "kernel"\n    },\n' + (
    '    {\n      "ph": "X", "cat": "cpu_op", "name": "größe"\n    },\n' * 40_000
)
RAW = BODY + '    {"ph": "M"}\n  ],\n  "traceName": "a}"\n}\n'


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    path = tmp_path / "raw.json"
    path.write_text(RAW, "utf-8")
    return path


def test_the_key_is_added_and_nothing_else_changes(raw: Path, tmp_path: Path) -> None:
    target = tmp_path / "t.json.gz"
    metadata.write(raw, target, {"a": [1, 2.5, "q\"'"]})
    found = json.loads(gzip.decompress(target.read_bytes()))
    assert found.pop("gapless") == {"a": [1, 2.5, "q\"'"]}
    assert found == json.loads(RAW)


def test_amending_replaces_the_key_alone(raw: Path, tmp_path: Path) -> None:
    target = tmp_path / "t.json.gz"
    written = metadata.write(raw, target, {"before": 1})
    head = target.read_bytes()[: written.body_bytes]
    for record in ({"long": "x" * 100_000}, {"short": 1}):
        metadata.amend(written, record)
        assert json.loads(gzip.decompress(target.read_bytes()))["gapless"] == record
        assert target.read_bytes()[: written.body_bytes] == head
    assert [p.name for p in tmp_path.iterdir() if p.name.endswith(".part")] == []


def test_the_file_is_a_single_gzip_member(raw: Path, tmp_path: Path) -> None:
    target = tmp_path / "t.json.gz"
    metadata.amend(metadata.write(raw, target, {}), {"a": 1})
    reader = zlib.decompressobj(31)
    reader.decompress(target.read_bytes())
    assert reader.eof
    assert reader.unused_data == b""


def test_events_are_counted_whatever_the_block_edges(raw: Path) -> None:
    assert metadata.count_events(raw) == (40_001, 1)


def test_a_cut_export_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "raw.json"
    path.write_text(RAW[:-40])
    with pytest.raises(ValueError, match="not written completely"):
        metadata.write(path, tmp_path / "t.json.gz", {})
