"""Mutated real traces give tables or one clear line, never a crash."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from tests.fuzz.mutators import mutated_bytes, mutated_field
from trace_files import assert_declared, gz, read_text

from gapless.model.errors import GaplessError

FILES = (
    "h200/pairs/matmul64.before.json.gz",
    "h200/article/copies.json.gz",
    "public/hta/mi250.json.gz",
    "public/hta/event_sync_multi_stream.json.gz",
    "invalid/edge_w1.13.1_quote.json",
    "h200/odd/gc_pause.json.gz",
)
ROUNDS = 25


def text_of_file(path: Path) -> bytes:
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        import gzip

        data = gzip.decompress(data)
    return data


def check(data: bytes, chunk_bytes: int) -> None:
    try:
        raw = read_text(data, chunk_bytes=chunk_bytes)
    except GaplessError as error:
        assert str(error)
        assert "\n" not in str(error)
        return
    assert_declared(raw)


@pytest.mark.parametrize("name", FILES)
def test_mutated_bytes(shared: Path, name: str):
    data = text_of_file(shared / name)
    rng = random.Random(name)
    for _ in range(ROUNDS):
        check(mutated_bytes(data, rng), rng.choice((200, 1 << 21)))


@pytest.mark.parametrize("name", FILES)
def test_mutated_gzip(shared: Path, name: str):
    data = gz(text_of_file(shared / name))
    rng = random.Random(name)
    for _ in range(ROUNDS // 2):
        mutant = bytearray(data)
        for _ in range(rng.choice((1, 2, 20))):
            mutant[rng.randrange(len(mutant))] ^= 1 << rng.randrange(8)
        check(bytes(mutant[: rng.choice((len(mutant), rng.randrange(len(mutant))))]), 1 << 21)


@pytest.mark.parametrize("name", FILES[:4] + FILES[5:])
def test_mutated_fields(shared: Path, name: str):
    value = json.loads(text_of_file(shared / name), strict=False)
    rng = random.Random(name)
    for _ in range(ROUNDS):
        mutant = dict(value)
        mutant["traceEvents"] = [mutated_field(e, rng) if rng.random() < 0.1 else e for e in value["traceEvents"]]
        if rng.random() < 0.3:
            mutant = mutated_field(mutant, rng)
        check(json.dumps(mutant).encode(), rng.choice((200, 1 << 21)))
