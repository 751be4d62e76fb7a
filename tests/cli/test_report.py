"""`gapless report` on the bundled samples: formats, ranks, selections, and what happens to files that are no trace."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gapless.cli import main

from .harness import AFTER, BEFORE, gapless, one_line


def test_the_first_screen() -> None:
    shown = gapless("report", BEFORE, "--no-cache")
    assert (shown.returncode, shown.stderr) == (0, "")
    lines = shown.stdout.splitlines()
    assert len(lines) <= 24
    assert "\x1b" not in shown.stdout
    assert any("found ·" in line for line in lines)
    assert any(line.startswith("Next ") for line in lines)


def test_full_is_longer() -> None:
    short = gapless("report", BEFORE, "--no-cache").stdout
    full = gapless("report", BEFORE, "--no-cache", "--full").stdout
    assert full.startswith(short.splitlines()[0])
    assert "exactly" in full
    assert "exactly" not in short


def test_json_is_the_contract_and_adds_up() -> None:
    first = gapless("report", BEFORE, "--no-cache", "--format", "json")
    value = json.loads(first.stdout)
    assert value["schema"] == "gapless.report/1"
    assert value["accounting"]
    for account in value["accounting"] + value["host"]:
        assert sum(part["ns"] for part in account["parts"]) == account["wall_ns"]
    assert gapless("report", BEFORE, "--no-cache", "--format", "json").stdout == first.stdout


def test_width_and_colour_are_the_users() -> None:
    wide = gapless("report", BEFORE, "--no-cache", "--full", COLUMNS="140").stdout
    narrow = gapless("report", BEFORE, "--no-cache", "--full", COLUMNS="60").stdout
    assert max(map(len, wide.splitlines())) > 80
    code = ("Next ", "     ")
    assert max(len(line) for line in narrow.splitlines() if not line.startswith(code)) <= 60
    assert "\x1b[" in gapless("report", BEFORE, "--no-cache", "--color", "always").stdout


def test_the_output_file_means_the_format(tmp_path: Path) -> None:
    target = tmp_path / "r.json"
    shown = gapless("report", BEFORE, "--no-cache", "-o", target)
    assert (shown.stdout, shown.stderr) == ("", f"wrote {target}\n")
    assert json.loads(target.read_text())["schema"] == "gapless.report/1"
    gapless("report", BEFORE, "--no-cache", "-o", tmp_path / "r.md")
    assert (tmp_path / "r.md").read_text().startswith("**")


def test_a_page_shows_one_trace(tmp_path: Path, ranks: Path) -> None:
    target = tmp_path / "r.html"
    assert gapless("report", BEFORE, "--no-cache", "-o", target).returncode == 0
    assert target.read_text().startswith("<!doctype html>")
    done = gapless("report", ranks, "--no-cache", "--format", "html")
    assert done.stderr.splitlines()[-1].startswith("gapless: a page shows one trace, but 2 were read")


def test_a_page_does_not_flood_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["report", str(BEFORE), "--format", "html"]) == 2
    assert "name a file with -o FILE" in capsys.readouterr().err


def test_stdin() -> None:
    shown = gapless("report", "-", "--no-cache", "--format", "json", stdin=BEFORE.read_bytes())
    assert shown.returncode == 0
    assert json.loads(shown.stdout)["trace"]["events"] > 0


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    shutil.copy(BEFORE, tmp_path / "rank10.json.gz")
    shutil.copy(AFTER, tmp_path / "rank2.json.gz")
    (tmp_path / "labels.json").write_text('{"a": 1}')
    return tmp_path


def test_a_folder_is_one_report_a_rank(ranks: Path) -> None:
    shown = gapless("report", ranks, "--no-cache", "--format", "json")
    assert shown.returncode == 0, "a file found in a folder that is no trace does not spoil the others"
    assert [Path(r["trace"]["path"]).name for r in json.loads(shown.stdout)] == ["rank2.json.gz", "rank10.json.gz"]
    assert shown.stderr.startswith("gapless: ")
    assert "labels.json" in shown.stderr
    text = gapless("report", ranks, "--no-cache").stdout
    assert text.index("rank2.json.gz") < text.index("rank10.json.gz")


def test_a_named_file_that_is_no_trace_fails_the_run(ranks: Path) -> None:
    shown = gapless("report", ranks / "labels.json", ranks / "rank2.json.gz", "--no-cache", "--format", "json")
    assert shown.returncode == 2
    assert json.loads(shown.stdout)["schema"] == "gapless.report/1"
    assert "labels.json" in one_line(gapless("report", ranks / "labels.json", "--no-cache"))


def test_a_rank_that_is_not_there(ranks: Path) -> None:
    done = gapless("report", ranks, "--no-cache", "--rank", "7")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("gapless: --rank 7: none of the 3 files")


@pytest.mark.parametrize("flags", [["--step", "9999"], ["--device", "7"], ["--step-marker", "no such annotation"]])
def test_a_selection_that_is_not_there(flags: list[str]) -> None:
    one_line(gapless("report", BEFORE, "--no-cache", *flags))


def test_one_step() -> None:
    every = json.loads(gapless("report", BEFORE, "--no-cache", "--format", "json").stdout)
    number = every["window"]["steps"][0]["name"].split("#")[1]
    one = json.loads(gapless("report", BEFORE, "--no-cache", "--format", "json", "--step", number).stdout)
    assert [s["name"] for s in one["window"]["steps"] if s["used"]] == [f"ProfilerStep#{number}"]


def test_the_cache_goes_where_it_is_told(tmp_path: Path) -> None:
    for source, env in (("flag", {}), ("environment", {"GAPLESS_CACHE_DIR": str(tmp_path / "environment")})):
        flags = ["--cache-dir", tmp_path / source] if source == "flag" else []
        first = gapless("report", BEFORE, "--format", "json", *flags, **env)
        assert first.returncode == 0
        assert any((tmp_path / source).rglob("*"))
        assert gapless("report", BEFORE, "--format", "json", *flags, **env).stdout == first.stdout
    gapless("report", BEFORE, "--no-cache", GAPLESS_CACHE_DIR=str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_hostile_names_do_nothing(shared: Path) -> None:
    for form in ("text", "markdown", "json"):
        shown = gapless("report", shared / "invalid" / "hostile_names.json", "--no-cache", "--full", "--format", form)
        assert shown.returncode == 0, shown.stderr
        assert all(c.isprintable() or c == "\n" for c in shown.stdout)


def test_demo_reports_on_both_traces() -> None:
    shown = gapless("demo")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.index("Before:") < shown.stdout.index("After:")
    assert shown.stdout.count("Checks ") == 2
    assert shown.stdout.index("After:") < shown.stdout.index("Compared") < shown.stdout.index("Faster: ")
