"""Completion files and generated pages are what the code says, and complete what can be typed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gapless.cli import registry

from .harness import gapless

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import completion_files  # noqa: E402
import generate  # noqa: E402


def test_generated_files_are_up_to_date() -> None:
    assert generate.stale(generate.generated()) == [], "run `make generate`"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_verb_and_flag_is_completed(shell: str) -> None:
    text = gapless("completions", shell).stdout
    for verb, parser in completion_files.verbs().items():
        assert verb in text
        for flag in completion_files.flags(parser):
            for name in flag.names:
                assert (name if shell != "fish" else name.lstrip("-")) in text


def complete(*words: str) -> list[str]:
    """What bash offers for the last word."""
    script = (
        completion_files.bash()
        + 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gapless; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    shown = subprocess.run(
        ["bash", "-c", script, "-", "gapless", *words], capture_output=True, text=True, check=True, timeout=60
    )
    assert shown.stderr == ""
    return shown.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["rep"], ["report"]),
        (["report", "--form"], ["--format"]),
        (["report", "--format", ""], ["text", "json", "markdown", "html"]),
        (["query", "--format", "p"], ["parquet"]),
        (["completions", ""], ["bash", "fish", "zsh"]),
        (["report", "tra"], []),
        (["report", "-o", ""], []),
    ],
)
def test_bash_offers(words: list[str], offered: list[str]) -> None:
    assert complete(*words) == offered


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_offers_every_verb() -> None:
    assert complete("") == [*registry.VERBS, "--help", "--version"]


def test_a_stale_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    (tmp_path / "docs" / "rules").mkdir(parents=True)
    gone = tmp_path / "docs" / "rules" / "gone.md"
    gone.write_text("x")
    kept, changed = tmp_path / "kept.md", tmp_path / "changed.md"
    kept.write_text("a")
    changed.write_text("b")
    assert generate.stale({kept: "a", changed: "c", tmp_path / "new.md": "d"}) == [changed, tmp_path / "new.md", gone]
