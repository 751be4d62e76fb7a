"""Mutated real traces give tables or one clear line, never a crash."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
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
PIECES = (b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\x00", b"\xff", b"nan", b"-", b"1e999", b"null",
          b'", "pid": ', b"\n", b"}, {", b'"ph": "X"', b"\xed\xa0\x80", b'\\ud800')  # fmt: skip
VALUES = (None, True, -1, 0, 2**63, 2**64, 10**40, -1e300, 1e300, 0.5, "", "x", "nan", "12", [], [1], {},
          {"a": [{"name": 1}]}, "\ud800", "A" * 70_000, [[[[1]]]], "cpu_op", "X", "M")  # fmt: skip


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
        mutant = bytearray(data)
        for _ in range(rng.choice((1, 1, 3, 30))):
            at = rng.randrange(len(mutant))
            action = rng.randrange(4)
            if action == 0:
                mutant[at] = rng.randrange(256)
            elif action == 1:
                del mutant[at : at + rng.choice((1, 5, 500))]
            elif action == 2:
                mutant[at:at] = rng.choice(PIECES)
            else:
                other = rng.randrange(len(mutant))
                mutant[at:at] = mutant[other : other + rng.choice((3, 300))]
        check(bytes(mutant), rng.choice((200, 1 << 21)))


@pytest.mark.parametrize("name", FILES)
def test_mutated_gzip(shared: Path, name: str):
    data = gz(text_of_file(shared / name))
    rng = random.Random(name)
    for _ in range(ROUNDS // 2):
        mutant = bytearray(data)
        for _ in range(rng.choice((1, 2, 20))):
            mutant[rng.randrange(len(mutant))] ^= 1 << rng.randrange(8)
        check(bytes(mutant[: rng.choice((len(mutant), rng.randrange(len(mutant))))]), 1 << 21)


def fields(value: object, rng: random.Random) -> object:
    """The value with something inside replaced, removed or renamed."""
    if isinstance(value, dict) and value:
        key = rng.choice(list(value))
        changed = dict(value)
        action = rng.randrange(5)
        if action == 0:
            del changed[key]
        elif action == 1:
            changed[rng.choice(("ph", "cat", "ts", "dur", "args", "pid", "tid", "name", "x" * 300))] = changed.pop(key)
        elif action == 2:
            changed[key] = rng.choice(VALUES)
        else:
            changed[key] = fields(value[key], rng)
        return changed
    if isinstance(value, list) and value:
        changed_list = list(value)
        i = rng.randrange(len(value))
        changed_list[i] = fields(value[i], rng) if rng.random() < 0.8 else rng.choice(VALUES)
        return changed_list
    return rng.choice(VALUES)


@pytest.mark.parametrize("name", FILES[:4] + FILES[5:])
def test_mutated_fields(shared: Path, name: str):
    value = json.loads(text_of_file(shared / name), strict=False)
    rng = random.Random(name)
    for _ in range(ROUNDS):
        mutant = dict(value)
        mutant["traceEvents"] = [fields(e, rng) if rng.random() < 0.1 else e for e in value["traceEvents"]]
        if rng.random() < 0.3:
            mutant = fields(mutant, rng)
        check(json.dumps(mutant).encode(), rng.choice((200, 1 << 21)))
