"""Run the command line as its users do: a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SAMPLES = Path(__file__).resolve().parents[2] / "src" / "gapless" / "samples"
BEFORE = SAMPLES / "layer_sync.before.stack.json.gz"
AFTER = SAMPLES / "layer_sync.after.stack.json.gz"


def environment(**more: str) -> dict[str, str]:
    """A plain environment: 80 columns, no colour, nothing inherited that changes output."""
    kept = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "GAPLESS_CACHE_DIR"}}
    return kept | {"COLUMNS": "80", "PYTHONIOENCODING": "utf-8"} | more


def gapless(*words: str | Path, stdin: bytes | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """The finished process of `gapless WORDS`."""
    done = subprocess.run(
        [sys.executable, "-m", "gapless", *map(str, words)],
        input=stdin,
        capture_output=True,
        env=environment(**env),
        check=False,
        timeout=300,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def python(code: str, **env: str) -> str:
    """What a small program prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(**env), check=True, timeout=120
    )
    return done.stdout


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """The single line on stderr of a run that failed as it should."""
    assert done.returncode == 2, (done.returncode, done.stderr)
    lines = done.stderr.splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("gapless: ")
    return lines[0]
