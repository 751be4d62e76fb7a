"""Which file beside a trace holds the same program's short window with stacks?"""

from __future__ import annotations

from pathlib import Path

from gapless.ingest.raw import RawTrace
from gapless.model.stack_names import stack_names


def stack_file_name(raw: RawTrace) -> str | None:
    """The name that `gapless run` wrote into the trace, if the trace itself was recorded without stacks."""
    name = (raw.meta.recorder or {}).get("stack_file")
    if not isinstance(name, str) or raw.frames.height:
        return None
    # Only a plain file name: a trace from elsewhere must not make us read any path it likes.
    return name if name and Path(name).name == name and "\\" not in name else None


def stack_file(raw: RawTrace, source: object) -> Path | None:
    """The window with stacks beside the trace read from `source`; None where there is none on this disk.

    It is the file that the trace names, else `x.stack.json[.gz]` beside `x.json[.gz]`. A trace that has stacks needs none.
    """
    if raw.frames.height or not isinstance(source, (str, Path)):
        return None
    own = stack_file_name(raw)
    path = Path(source)
    beside = (path.with_name(name) for name in ([own] if own else stack_names(path.name)))
    return next((file for file in beside if file.is_file()), None)
