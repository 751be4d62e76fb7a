"""What do the jobs that run cases share: reading a file of cases, and waiting for the device?"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import torch


def load_cases(path: str) -> dict[str, tuple[object, ...]]:
    """`CASES` of a file: name -> (build, ...); `build(variant)` gives a step."""
    sys.path.insert(0, str(Path(path).resolve().parent))
    spec = importlib.util.spec_from_file_location("cases", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.CASES


def sync() -> None:
    """Wait for the device, where there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
