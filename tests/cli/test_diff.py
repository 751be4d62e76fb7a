"""`gapless diff` as its users run it: formats, gates, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gapless as package

from .harness import AFTER, BEFORE, gapless, one_line

PAIR = (BEFORE, AFTER, "--no-cache")


def test_the_first_screen() -> None:
    shown = gapless("diff", *PAIR)
    assert (shown.returncode, shown.stderr) == (0, "")
    lines = shown.stdout.splitlines()
    assert len(lines) <= 24
    assert lines[0].startswith("Faster: 1.")
    assert "24 waits for the GPU a step in cudaDeviceSynchronize" in shown.stdout.replace("\n", " ")
    assert any(line.startswith("Next ") and line.endswith("--full") for line in lines)
    assert "\x1b" not in shown.stdout


def test_full_says_where() -> None:
    full = gapless("diff", *PAIR, "--full", COLUMNS="140").stdout
    assert "Places that wait for the GPU" in full
    assert "record.py:" in full or "step" in full
    assert "How far they can be compared" in full


def test_json_is_the_contract() -> None:
    shown = gapless("diff", *PAIR, "--format", "json")
    value = json.loads(shown.stdout)
    assert value["schema"] == "gapless.diff/1"
    assert value["speedup"]["verdict"] == "faster"
    assert gapless("diff", *PAIR, "--format", "json").stdout == shown.stdout


def test_the_output_file_means_the_format(tmp_path: Path) -> None:
    for name, start in (("d.md", "Faster"), ("d.html", "<!doctype html>"), ("d.json", "{"), ("d.txt", "Faster")):
        shown = gapless("diff", *PAIR, "-o", tmp_path / name)
        assert (shown.returncode, shown.stderr) == (0, f"wrote {tmp_path / name}\n")
        assert (tmp_path / name).read_text().startswith(start)
    assert "end it in one of" in one_line(gapless("diff", *PAIR, "-o", tmp_path / "d.xyz"))


def test_the_library_says_the_same() -> None:
    view = package.diff(package.load(BEFORE), package.load(AFTER))
    shown = json.loads(gapless("diff", *PAIR, "--format", "json").stdout)
    assert view.to_dict() == shown
    assert str(view).startswith("Faster")
    assert view._repr_html_().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("gates", "code"),
    [
        (["slower=5%,launches,syncs"], 0),
        (["syncs=+0"], 0),
        (["kernels", "host-ops"], 0),
    ],
)
def test_gates_that_hold(gates: list[str], code: int) -> None:
    words = [word for gate in gates for word in ("--fail-on", gate)]
    shown = gapless("diff", *PAIR, *words)
    assert (shown.returncode, shown.stderr) == (code, "")


def test_a_breached_gate_is_one() -> None:
    shown = gapless("diff", AFTER, BEFORE, "--no-cache", "--fail-on", "slower=5%", "--fail-on", "syncs=+3,launches")
    assert shown.returncode == 1
    assert shown.stdout.startswith("Slower"), "the comparison is written all the same"
    lines = shown.stderr.splitlines()
    assert lines[0].startswith("breached: slower=5%: the step takes")
    assert lines[1] == "breached: syncs=+3: 24 waits for the GPU a step, 0 before"
    assert lines[-1] == "gapless: --fail-on slower=5%, syncs=+3: breached"


def test_without_a_gate_slower_is_no_failure() -> None:
    assert gapless("diff", AFTER, BEFORE, "--no-cache").returncode == 0


def test_a_gate_that_cannot_be_judged_does_not_pass(shared: Path) -> None:
    folder = shared / "h200" / "pairs"
    pair = [folder / f"position_upload.{side}.json.gz" for side in ("before", "after")]
    shown = gapless("diff", *pair, "--no-cache", "--fail-on", "slower")
    assert shown.returncode == 2
    assert shown.stderr.splitlines()[-1].startswith("gapless: --fail-on slower: cannot be judged")
    assert gapless("diff", *pair, "--no-cache", "--fail-on", "syncs").returncode == 0


def test_counts_that_one_side_lacks_cannot_be_judged(shared: Path) -> None:
    odd = shared / "h200" / "odd"
    shown = gapless(
        "diff", odd / "cpu_activity_only.json.gz", odd / "cycle1.json.gz", "--no-cache", "--fail-on", "kernels"
    )
    assert shown.returncode == 2
    assert "the before trace does not hold the kernels a step" in shown.stderr


def test_nothing_in_common_cannot_be_compared(tmp_path: Path) -> None:
    def trace(name: str, *events: dict[str, object]) -> Path:
        rows = [{"ph": "X", "ts": 1.0, "dur": 5.0, "pid": 1, "tid": 1, **event} for event in events]
        (tmp_path / name).write_text(json.dumps({"schemaVersion": 1, "traceEvents": rows}))
        return tmp_path / name

    host = trace("host.json", {"cat": "cpu_op", "name": "aten::add", "args": {"External id": 1}})
    launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "args": {"correlation": 1}}
    kernel = {"cat": "kernel", "name": "k", "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7, "correlation": 1}}
    gpu = trace("gpu.json", launch, {**kernel, "ts": 4.0})
    shown = gapless("diff", host, gpu, "--no-cache")
    assert shown.returncode == 2
    assert shown.stdout.startswith("These two traces cannot be compared.")
    assert shown.stderr.splitlines()[-1].startswith("gapless: nothing can be compared: the before trace holds CPU ops")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--fail-on", "faster"], "not a gate"),
        (["--fail-on", "slower=5"], "in percent"),
        (["--compile-seconds", "soon"], "not a number of seconds"),
        (["--compile-seconds", "-1"], "not a number of seconds"),
        (["--step-marker", "no such annotation"], "no annotation or op of this trace matches"),
        (["--device", "7"], "no activity ran there"),
    ],
)
def test_what_cannot_be_asked(words: list[str], said: str) -> None:
    assert said in one_line(gapless("diff", *PAIR, *words))


def test_sides_that_are_not_one_trace(tmp_path: Path) -> None:
    assert "no such file" in one_line(gapless("diff", BEFORE, tmp_path / "none.json"))
    assert "AFTER must be one trace" in one_line(gapless("diff", BEFORE, AFTER.parent))
    assert "both traces cannot come from stdin" in one_line(gapless("diff", "-", "-", stdin=b"{}"))


def test_one_side_from_stdin() -> None:
    shown = gapless("diff", "-", AFTER, "--no-cache", stdin=BEFORE.read_bytes())
    assert shown.returncode == 0
    assert "gapless diff BEFORE " in shown.stdout


def test_compile_seconds_are_taken(shared: Path) -> None:
    folder = shared / "h200" / "pairs"
    pair = [folder / f"pointwise_chain.{side}.json.gz" for side in ("before", "after")]
    value = json.loads(gapless("diff", *pair, "--no-cache", "--compile-seconds", "1.1", "--format", "json").stdout)
    assert value["compile"]["cost_source"] == "given"
    assert value["compile"]["break_even_steps"] > 1000
