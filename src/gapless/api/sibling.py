"""Which file beside a trace holds the same program's short window with stacks?"""

from __future__ import annotations

from pathlib import Path

from gapless.ingest.raw import RawTrace


def stack_file_name(raw: RawTrace) -> str | None:
    """The name that `gapless run` wrote into the trace, if the trace itself was recorded without stacks."""
    name = (raw.meta.recorder or {}).get("stack_file")
    if not isinstance(name, str) or raw.frames.height:
        return None
    # Only a plain file name: a trace from elsewhere must not make us read any path it likes.
    return name if name and Path(name).name == name and "\\" not in name else None


def stack_file(raw: RawTrace, source: object) -> Path | None:
    """The window with stacks beside the trace read from `source`; None where there is none on this disk."""
    name = stack_file_name(raw)
    if name is None or not isinstance(source, (str, Path)):
        return None
    path = Path(source).with_name(name)
    return path if path.is_file() else None
