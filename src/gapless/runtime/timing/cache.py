"""What is in the L2 cache when the subject starts: how to empty it, and how many copies of its inputs fill it?"""

from __future__ import annotations

import math

import torch

from gapless.runtime.timing.backend import UnavailableError

__all__ = ["Flusher", "rotation_copies"]

MIN_FLUSH_BYTES = 64 << 20
ROTATION_MULTIPLE = 5
MAX_ROTATION_COPIES = 512
MAX_MEMORY_SHARE = 0.25


class Flusher:
    """Empties L2: writes max(2*L2, 64 MB), then reads it back.

    Reading back writes the dirty lines out first; otherwise the subject is billed for them.
    """

    def __init__(self, device: torch.device, l2_bytes: int) -> None:
        size = max(2 * l2_bytes, MIN_FLUSH_BYTES)
        try:
            self._buffer = torch.empty(size // 4, dtype=torch.float32, device=device)
        except RuntimeError as error:
            raise UnavailableError(f"no room for a flush buffer of {size >> 20} MB: {error}") from error
        self._sink = torch.empty((), dtype=torch.float32, device=device)

    def flush(self) -> None:
        """Queue one flush on the current stream."""
        self._buffer.fill_(1.0)
        torch.sum(self._buffer, dim=0, out=self._sink)


def rotation_copies(footprint_bytes: int, l2_bytes: int, free_bytes: int) -> int:
    """Copies k of the inputs such that using them in turn keeps L2 cold: k * bytes >= 5 * L2.

    1 if one set is that large already; UnavailableError if the copies would need a quarter of the free memory.
    """
    if footprint_bytes <= 0:
        raise UnavailableError("no tensor arguments to rotate; tensors in closures are not rotated")
    copies = max(1, math.ceil(ROTATION_MULTIPLE * l2_bytes / footprint_bytes))
    if copies > MAX_ROTATION_COPIES:
        raise UnavailableError(f"{copies} copies of {footprint_bytes} bytes would be needed to fill L2 five times")
    # Outputs of captured calls stay alive as well, hence twice.
    needed = 2 * copies * footprint_bytes
    if copies > 1 and needed > MAX_MEMORY_SHARE * free_bytes:
        raise UnavailableError(f"{copies} copies need {needed >> 20} MB, more than a quarter of the free memory")
    return copies
