"""What `gapless calibrate` kept for a GPU is used for traces that do not carry it, and said; a bad file is one line."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gapless.model.calibration import Calibration, store, stored_for

from .harness import BEFORE, gapless, one_line

COSTLY = replace(Calibration(), measured=True, op_ns=4_000.0, call_ns=7_200.0)


def report(folder: Path, *flags: str) -> dict[str, object]:
    shown = gapless("report", BEFORE, "--format", "json", "--no-cache", *flags, GAPLESS_CACHE_DIR=str(folder))
    assert shown.returncode == 0, shown.stderr
    found: dict[str, object] = json.loads(shown.stdout)
    return found


def unprofiled(value: dict[str, object]) -> float:
    return float(value["step"]["unprofiled_ms"])  # type: ignore[index]


def said(value: dict[str, object]) -> list[str]:
    return [row["detail"] for row in value["trust"] if row["check"] == "calibration"]  # type: ignore[attr-defined]


def test_what_is_kept_for_the_traces_gpu_is_subtracted_and_said(tmp_path: Path) -> None:
    plain = report(tmp_path)
    assert said(plain) == []
    store(tmp_path / "calibration", COSTLY)
    kept = report(tmp_path)
    assert unprofiled(kept) < unprofiled(plain), "a recorder that costs more leaves less"
    assert "NVIDIA H200, torch 2.11.0+cu130 (stored here by `gapless calibrate`" in said(kept)[0]
    assert unprofiled(report(tmp_path, "--calibration", "none")) == unprofiled(plain)


def test_what_another_gpu_costs_is_not_used(tmp_path: Path) -> None:
    store(tmp_path / "calibration", replace(COSTLY, machine="NVIDIA H100"))
    assert said(report(tmp_path)) == []


def test_a_named_file_is_used_whatever_its_name(tmp_path: Path) -> None:
    file = tmp_path / "from-the-cluster.json"
    shutil.move(store(tmp_path / "elsewhere", replace(COSTLY, machine="NVIDIA H200 NVL")), file)
    assert "NVIDIA H200 NVL" in said(report(tmp_path, "--calibration", str(file)))[0]


@pytest.mark.parametrize("content", ["", "{}", '{"schema": "other"}', "[1]"])
def test_a_file_that_is_no_calibration_is_one_line(tmp_path: Path, content: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(content)
    line = one_line(gapless("report", BEFORE, "--calibration", file))
    assert "not a file that `gapless calibrate` wrote" in line


def test_the_torch_version_chooses_where_the_trace_names_it(tmp_path: Path) -> None:
    old, new = replace(COSTLY, torch="2.9.0"), replace(COSTLY, torch="2.10.0")
    store(tmp_path, new)
    store(tmp_path, old)
    assert stored_for(tmp_path, "NVIDIA H200", "2.10.0") == new
    assert stored_for(tmp_path, "NVIDIA H200", "2.8.0") is None
    assert stored_for(tmp_path, "NVIDIA H20") is None
    assert stored_for(tmp_path / "nowhere", "NVIDIA H200") is None
    (tmp_path / "NVIDIA-H200-torch2.9.0.json").touch()
    assert stored_for(tmp_path, "NVIDIA H200") == old, "the newest file"
