"""Does the README show what the program prints today, and name only verbs and flags that exist?"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from gapless.cli.registry import VERBS

from .harness import SAMPLES, environment

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_sample_report_is_today_s() -> None:
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    command = [sys.executable, "-m", "gapless", "report", "layer_sync.before.json.gz", "--no-cache"]
    done = subprocess.run(command, cwd=SAMPLES, env=environment(), capture_output=True, check=True, timeout=120)
    assert shown == done.stdout.decode()


def test_every_verb_is_in_the_table() -> None:
    listed = set(re.findall(r"^\| `gapless (\w+)", README, re.MULTILINE))
    assert listed == set(VERBS)
