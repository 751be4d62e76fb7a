"""How does a Hugging Face `Trainer` or a Lightning `Trainer` record a window? As a callback, each made on demand.

    trainer = transformers.Trainer(..., callbacks=[gapless.trainer_callback("traces/")])
    trainer = lightning.Trainer(..., callbacks=[gapless.lightning_callback("traces/")])

`gapless run` needs neither: it finds the steps by itself.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from gapless.model.errors import UsageError
from gapless.runtime.recorder.inline import profile


def trainer_callback(folder: str | os.PathLike[str] = "gapless-traces", **options: Any) -> Any:  # noqa: ANN401
    """A `transformers.TrainerCallback` that records a window; `options` are those of `gapless.profile`.

    A step is an optimizer step of the Trainer, gradient accumulation included.
    """
    base = _import("transformers", "TrainerCallback")
    recording = profile(folder, **options)

    class GaplessCallback(base):  # type: ignore[misc,valid-type]
        """Marks each step of the Trainer."""

        profile = recording

        def on_train_begin(self, *_args: object, **_kwargs: object) -> None:
            """Begin with the training."""
            recording.start()

        def on_step_begin(self, *_args: object, **_kwargs: object) -> None:
            """A step begins."""
            recording.step()

        def on_train_end(self, *_args: object, **_kwargs: object) -> None:
            """End with it."""
            recording.stop("the training ended")

    return GaplessCallback()


def lightning_callback(folder: str | os.PathLike[str] = "gapless-traces", **options: Any) -> Any:  # noqa: ANN401
    """A Lightning `Callback` that records a window; `options` are those of `gapless.profile`.

    A step is a training batch.
    """
    base = _import("lightning.pytorch", "Callback", otherwise="pytorch_lightning")
    recording = profile(folder, **options)

    class GaplessCallback(base):  # type: ignore[misc,valid-type]
        """Marks each training batch."""

        profile = recording

        def on_train_start(self, *_args: object, **_kwargs: object) -> None:
            """Begin with the training."""
            recording.start()

        def on_train_batch_start(self, *_args: object, **_kwargs: object) -> None:
            """A step begins."""
            recording.step()

        def on_train_end(self, *_args: object, **_kwargs: object) -> None:
            """End with it."""
            recording.stop("the training ended")

        def on_exception(self, _trainer: object, _module: object, exception: BaseException) -> None:
            """Keep what was recorded before the exception."""
            recording.stop(f"the training raised {type(exception).__name__}")

    return GaplessCallback()


def _import(module: str, name: str, otherwise: str | None = None) -> Any:  # noqa: ANN401
    for candidate in (module, otherwise):
        if candidate is not None:
            try:
                return getattr(importlib.import_module(candidate), name)
            except ImportError:
                continue
    raise UsageError(
        f"{module.split('.')[0]} is not installed, so it has no callbacks; use gapless.profile in your loop"
    )
