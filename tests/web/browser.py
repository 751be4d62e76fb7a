"""How do tests drive a real browser? Node scripts with playwright-core and Debian's Chromium, one process a scenario."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
WEB = HERE.parents[1] / "web"


def require() -> None:
    """Skip with a reason where the browser or what drives it is missing."""
    missing = [name for name in ("chromium", "node", "npm") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed, so no page can be opened")
    if not WEB.is_dir():
        pytest.skip("the page's source (web/) is not here")
    if not (WEB / "node_modules" / "playwright-core").is_dir():
        done = subprocess.run(
            ["npm", "ci", "--no-audit", "--no-fund"], cwd=WEB, capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"npm ci failed, so the browser cannot be driven: {done.stderr[-200:]}")


def play(scenario: str, *words: str | Path) -> Any:
    """What a scenario of `tests/web` prints as its last line, as JSON."""
    command = ["node", str(HERE / f"{scenario}.mjs"), shutil.which("chromium") or "", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])
