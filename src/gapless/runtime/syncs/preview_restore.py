"""What must be put back after a preview: gradients and optimizer states that now hold fake tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.optim.optimizer import register_optimizer_step_pre_hook

from gapless.runtime.syncs.preview_notes import Notes


class Restore:
    """Remembers what a preview is about to change the first time it touches it."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._gradients: dict[int, tuple[torch.Tensor, torch.Tensor | None]] = {}
        self._states: dict[int, tuple[torch.optim.Optimizer, dict[Any, Any]]] = {}
        self._handle = register_optimizer_step_pre_hook(self._before_step)

    def touched(self, args: object) -> None:
        """An op is about to run on these arguments."""
        for item in args if isinstance(args, (list, tuple)) else ():
            if isinstance(item, torch.Tensor) and not isinstance(item, FakeTensor):
                self._remember(item)

    def undo(self) -> None:
        """Puts gradients and optimizer states back as they were."""
        self._handle.remove()
        for tensor, gradient in self._gradients.values():
            tensor.grad = gradient
        for optimizer, state in self._states.values():
            optimizer.state.clear()
            optimizer.state.update(state)

    def _remember(self, tensor: torch.Tensor) -> None:
        if tensor.is_leaf and tensor.requires_grad and id(tensor) not in self._gradients:
            self._gradients[id(tensor)] = (tensor, tensor.grad)

    def _before_step(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        on_gpu = any(group.get("capturable") or group.get("fused") for group in optimizer.param_groups)
        for state in optimizer.state.values():
            # Optimizers keep their step counters on the host unless they were told otherwise.
            if isinstance(state, dict) and isinstance(state.get("step"), torch.Tensor) and not on_gpu:
                self._notes.place(state["step"], host=True)
        if id(optimizer) not in self._states:
            copied = {key: dict(value) if isinstance(value, dict) else value for key, value in optimizer.state.items()}
            self._states[id(optimizer)] = (optimizer, copied)
