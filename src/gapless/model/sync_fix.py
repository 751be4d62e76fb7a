"""What does one entry of the table of waits say: trigger, reason, kind of dependency, code without the wait?

Rewrites are code to paste. They use these names: `x` a float tensor on the GPU, `y` another of its shape, `mask` a
boolean tensor of its shape, `i` a vector of integers, `k` a 0-d integer tensor, `n` a Python int known beforehand,
`batch` and `table` CPU tensors, `device` the GPU, `step` the step's number, `model`, `optimizer`, `loss`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Dependency = Literal["true", "false"]
Direction = Literal["DtoH", "HtoD"]


@dataclass(frozen=True, slots=True)
class SyncFix:
    """One reason for a wait: what triggers it, why, whether the host needs the value, and the code without the wait.

    names: ops, idioms, calls and copies (`copy:DtoH`) that mean this entry.
    inner: these must all lie inside it, otherwise another entry of the same name is meant.
    """

    key: str
    names: tuple[str, ...]
    dependency: Dependency
    reason: str
    rewrite: str
    note: str = ""
    inner: tuple[str, ...] = ()
