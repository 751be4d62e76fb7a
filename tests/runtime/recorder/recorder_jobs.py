"""Helpers: scripts in a fresh process, and the traces they leave."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HEAD = """
import torch, torch.nn as nn
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
x = torch.randn(16, 32)
"""
TRAIN = (
    HEAD
    + """
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
def train(n):
    for _ in range(n):
        model(x).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
"""
)


@dataclass
class Ran:
    code: int
    out: str
    err: str
    folder: Path

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.json.gz")) if self.folder.is_dir() else []

    def timing(self) -> dict[str, Any]:
        (path,) = [p for p in self.files() if not p.name.endswith(".stack.json.gz")]
        return load(path)


def load(path: Path) -> dict[str, Any]:
    return json.loads(gzip.decompress(path.read_bytes()))


def steps(trace: dict[str, Any]) -> list[int]:
    """Numbers of the recorded steps, in order of time."""
    found = [e for e in trace["traceEvents"] if str(e.get("name", "")).startswith("ProfilerStep#")]
    return [int(e["name"].partition("#")[2]) for e in sorted(found, key=lambda e: e["ts"])]


def environment() -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "GAPLESS_CACHE_DIR")}
    return {**clean, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def finish(command: list[str], folder: Path, **extra: str) -> Ran:
    done = subprocess.run(
        command, cwd=folder, env={**environment(), **extra}, capture_output=True, text=True, timeout=300
    )
    return Ran(done.returncode, done.stdout, done.stderr, folder / "out")
