"""What is a recording called, so that ranks and runs never overwrite one another?"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

from gapless.model.stack_names import stack_names


def rank(environ: Mapping[str, str]) -> int:
    """This process' rank by torchrun's, Slurm's or MPI's environment; 0 where there is one process."""
    for rank_key, size_key in (
        ("RANK", "WORLD_SIZE"),
        ("SLURM_PROCID", "SLURM_NTASKS"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ):
        if world_size_of(environ, size_key) > 1 and environ.get(rank_key, "").isdigit():
            return int(environ[rank_key])
    return 0


def world_size(environ: Mapping[str, str]) -> int:
    """How many processes the launcher started."""
    return max(world_size_of(environ, key) for key in ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"))


def world_size_of(environ: Mapping[str, str], key: str) -> int:
    """One variable's count, 1 where it is absent or no number."""
    value = environ.get(key, "")
    return int(value) if value.isdigit() and int(value) > 0 else 1


def stem(text: str) -> str:
    """A file-name-safe stem from a script path or module name, at most 60 characters."""
    name = Path(text).name.removesuffix(".py")
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("._-")[:60] or "trace"


def reserve(folder: Path, base: str, rank_number: int, when_s: float) -> Path:
    """Create an empty file `<base>.rank<R>.<YYYYmmdd-HHMMSS>[-n].json.gz` that did not exist, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    moment = time.strftime("%Y%m%d-%H%M%S", time.localtime(when_s))
    for attempt in range(1, 1000):
        suffix = "" if attempt == 1 else f"-{attempt}"
        path = folder / f"{base}.rank{rank_number}.{moment}{suffix}.json.gz"
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        except FileExistsError:
            continue
        return path
    raise FileExistsError(f"{folder}: a thousand recordings of {base} within one second")


def stack_name(path: Path) -> Path:
    """The second window's file beside the first: `x.json.gz` -> `x.stack.json.gz`."""
    return path.with_name(stack_names(path.name)[0])
