"""When does a training step end? After the first optimizer's `step()`, unless the user says so himself."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook


class OptimizerSteps:
    """Calls `on_step` after each step of the first optimizer that steps; others (a GAN's second) are ignored."""

    def __init__(self, on_step: Callable[[], None]) -> None:
        self._on_step = on_step
        self._first: weakref.ref[torch.optim.Optimizer] | None = None
        self._handle: torch.utils.hooks.RemovableHandle | None = None

    def start(self) -> None:
        """Listens to every optimizer of the process."""
        self._handle = register_optimizer_step_post_hook(self._after)

    def stop(self) -> None:
        """Ends it."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def _after(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        if self._first is None or self._first() is None:
            self._first = weakref.ref(optimizer)
        if self._first() is optimizer:
            self._on_step()
