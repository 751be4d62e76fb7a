"""Whatever is done to a real trace, `gapless.report` gives an exact report or one clear line.

GAPLESS_FUZZ=5000 tries so many mutants of every file and kind (in CI a few); GAPLESS_FUZZ_SEED=7 tries others. A
failing mutant is kept in the folder that GAPLESS_FUZZ_KEEP names.
"""

from __future__ import annotations

import gzip
import json
import os
import random
from collections import Counter
from pathlib import Path

import pytest
from tests.conftest import SHARED

from .checking import check, check_pair
from .mutators import contradicted, mutated_bytes, mutated_field

ROUNDS = int(os.environ.get("GAPLESS_FUZZ", "4"))
SEED = os.environ.get("GAPLESS_FUZZ_SEED", "0")
KEEP = os.environ.get("GAPLESS_FUZZ_KEEP")
PAIRS = Path(__file__).resolve().parents[1] / "data" / "pairs"
OURS = ("host_work/decode_graph.before", "host_work/print_tensor.after", "gpu_work/fp32_mlp.before",
        "gpu_work/adam_foreach.after", "host_work/tiny_compiled.after", "gpu_work/transposed_weight.before")  # fmt: skip
HANDED = ("h200/article/copies.json.gz", "public/hta/mi250.json.gz", "public/hta/event_sync_multi_stream.json.gz",
          "h200/odd/gc_pause.json.gz")  # fmt: skip
FILES = [*(PAIRS / f"{name}.json.gz" for name in OURS), *(SHARED / name for name in HANDED)]


def named(path: Path) -> str:
    return path.name.removesuffix(".json.gz")


def text_of(path: Path) -> bytes:
    if not path.is_file():
        pytest.skip("the handed traces (../shared/traces) are not here")
    return gzip.decompress(path.read_bytes())


def damaged(data: bytes, kind: str, rng: random.Random) -> bytes:
    """One mutant."""
    if kind == "bytes":
        return mutated_bytes(data, rng)
    whole = json.loads(data, strict=False)
    if kind == "contradictions":
        return json.dumps(contradicted(whole, rng)).encode()
    share = rng.choice((0.002, 0.1))
    mutant = {
        **whole,
        "traceEvents": [mutated_field(e, rng) if rng.random() < share else e for e in whole["traceEvents"]],
    }
    return json.dumps(mutated_field(mutant, rng) if rng.random() < 0.3 else mutant).encode()


@pytest.mark.parametrize("kind", ["bytes", "fields", "contradictions"])
@pytest.mark.parametrize("path", FILES, ids=named)
def test_a_report_or_one_clear_line(path: Path, kind: str) -> None:
    data = text_of(path)
    found: Counter[str] = Counter()
    for number in range(ROUNDS):
        mutant = damaged(data, kind, random.Random(f"{SEED} {kind} {path.name} {number}"))
        try:
            found[check(mutant)] += 1
        except BaseException:
            print(f"mutant {number} of {path.name}, {kind}, seed {SEED}")
            if KEEP:
                (Path(KEEP) / f"{path.name}-{kind}-{SEED}-{number}.json").write_bytes(mutant)
            raise
    assert found["report"] * 2 >= ROUNDS, "most mutants still are traces: otherwise this tests the reader alone"


@pytest.mark.parametrize("path", FILES[:2], ids=named)
def test_a_comparison_or_one_clear_line(path: Path) -> None:
    data = text_of(path)
    for number in range(ROUNDS):
        mutant = damaged(data, "contradictions", random.Random(f"{SEED} pair {path.name} {number}"))
        pair = (data, mutant) if number % 2 else (mutant, data)
        try:
            check_pair(*pair)
        except BaseException:
            print(f"mutant {number} of {path.name} against the original, seed {SEED}")
            if KEEP:
                (Path(KEEP) / f"{path.name}-pair-{SEED}-{number}.json").write_bytes(mutant)
            raise


def test_compiled_regions_recorded_as_annotations_are_searched_to_an_end() -> None:
    data = text_of(PAIRS / "host_work/tiny_compiled.after.json.gz")
    whole = json.loads(data)
    regions = [event for event in whole["traceEvents"] if event.get("name", "").startswith("Torch-Compiled Region")]
    for event in regions:
        event["cat"] = "user_annotation"
    inner = [{**event, "ts": event["ts"] + 0.2, "dur": event["dur"] - 0.4} for event in regions]
    assert inner
    assert check_pair(data, json.dumps({**whole, "traceEvents": [*whole["traceEvents"], *inner]}).encode()) == "diff"
