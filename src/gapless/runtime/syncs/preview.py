"""Where would this code wait for a GPU, if it ran on one? Answered without a GPU, on tensors without values.

The callable runs under `FakeTensorMode`. Its inputs and modules count as lying on the GPU; what it makes itself without
naming a device lies on the CPU. Ops that need a value or a size raise there; each is noted and answered with a
stand-in, so that the next one is found too. Branches that depend on values are followed for the stand-in alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map

from gapless.runtime.syncs.preview_modes import OpPreview, SourcePreview
from gapless.runtime.syncs.preview_notes import MAX_WAITS, EndlessRunError, Notes, PredictedWait
from gapless.runtime.syncs.preview_restore import Restore
from gapless.runtime.syncs.standins import STANDINS, StandIns


@dataclass(frozen=True, slots=True)
class Preview:
    """What a run on a GPU would wait for. stopped: why the run could not be followed to its end, '' if it was."""

    waits: list[PredictedWait]
    stopped: str = ""

    def text(self) -> str:
        """All places, and whether the end was reached."""
        lines = [wait.text() for wait in self.waits] or ["no hidden wait predicted"]
        if self.stopped:
            lines.append(f"stopped early, later waits are unknown: {self.stopped}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()


def preview_syncs(
    fn: Callable[..., object], *args: object, stand_ins: StandIns = STANDINS, deps: bool = False, **kwargs: object
) -> Preview:
    """Predicts where `fn(*args, **kwargs)` would make the host wait for a GPU; needs none and computes nothing.

    Tensors in the arguments and the parameters of modules count as lying on the GPU; devices given as `"cpu"` mean the
    host, any other the GPU. Values are neither read nor changed, gradients and optimizer states are put back, but
    attributes that `fn` sets stay set: pass a copy of objects that keep state. `stand_ins`: what reads and sizes that
    depend on data are answered with. An exception of `fn` ends the preview and is told in `stopped`.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    notes = Notes(deps)
    restore = Restore(notes)

    def fake(value: object) -> object:
        return mode.from_tensor(value) if isinstance(value, torch.Tensor) else value

    fake_args, fake_kwargs = tree_map(fake, (args, kwargs))
    stopped = ""
    try:
        with mode, OpPreview(mode, notes, stand_ins, restore), SourcePreview(notes, stand_ins):
            fn(*fake_args, **fake_kwargs)
    except EndlessRunError:
        stopped = f"more than {MAX_WAITS} waits, most likely a loop that ends on a value"
    except Exception as error:
        stopped = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    finally:
        restore.undo()
    return Preview(notes.merged(), stopped)
