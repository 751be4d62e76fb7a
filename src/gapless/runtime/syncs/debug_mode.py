"""Does torch's own detector, `set_sync_debug_mode("warn")`, agree? (Layer D: a cross-check.)"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

_MESSAGE = "called a synchronizing"


class DebugModeLayer:
    """Turns the detector on, takes its warnings out of the stream of warnings, and puts everything back."""

    def __init__(self, on_warning: Callable[[], None]) -> None:
        self._on_warning = on_warning
        self._previous_mode: int | None = None
        self._previous_show: Callable[..., Any] | None = None
        self._show: Callable[..., Any] | None = None
        self._filter: object = None

    def start(self) -> bool:
        """False, and nothing changed, where there is no CUDA device or the user has already chosen a mode."""
        if not torch.cuda.is_available() or torch.cuda.get_sync_debug_mode() != 0:
            return False
        self._previous_mode = torch.cuda.get_sync_debug_mode()
        previous = warnings.showwarning

        def show(message: Warning | str, *args: object, **kwargs: object) -> None:
            if _MESSAGE in str(message):
                self._on_warning()
            else:
                previous(message, *args, **kwargs)  # type: ignore[arg-type]

        warnings.filterwarnings("always", message=f".*{_MESSAGE}")
        self._filter = warnings.filters[0]
        self._previous_show, self._show = previous, show
        warnings.showwarning = show
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.cuda.set_sync_debug_mode("warn")
        return True

    def stop(self) -> None:
        """Restores the mode, the filter and the way warnings are shown."""
        if self._previous_mode is None:
            return
        torch.cuda.set_sync_debug_mode(self._previous_mode)
        self._previous_mode = None
        if self._filter in warnings.filters:
            warnings.filters.remove(self._filter)  # type: ignore[attr-defined]
            with warnings.catch_warnings():
                pass  # entering and leaving tells Python's warning cache that the filters have changed
        if warnings.showwarning is self._show and self._previous_show is not None:
            warnings.showwarning = self._previous_show
