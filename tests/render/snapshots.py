"""Compare text with a kept file; `GAPLESS_UPDATE_SNAPSHOTS=1 pytest tests/render` rewrites the files on purpose."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "snapshots"


def check(name: str, text: str) -> None:
    """`text` equals the file `name`, or becomes it when an update was asked for."""
    path = FOLDER / name
    if os.environ.get("GAPLESS_UPDATE_SNAPSHOTS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert path.is_file(), f"{path} is missing: set GAPLESS_UPDATE_SNAPSHOTS=1 to write it"
    assert text == path.read_text("utf-8"), f"output differs from {path}: look, then set GAPLESS_UPDATE_SNAPSHOTS=1"
