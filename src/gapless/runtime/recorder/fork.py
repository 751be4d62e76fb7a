"""What happens in a child that is forked while we record? It must neither record nor write anything."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

_recording = False
_registered = False


def recording(on: bool) -> None:
    """Say that a session runs now, or no longer; children forked meanwhile switch their inherited recording off."""
    global _recording, _registered
    _recording = on
    if on and not _registered and hasattr(os, "register_at_fork"):
        _registered = True
        os.register_at_fork(after_in_child=_in_child)


def _in_child() -> None:
    if not _recording:
        return
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.autograd._enable_record_function(False)
    sys.setprofile(None)
    threading.setprofile(None)
