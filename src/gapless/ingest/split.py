"""Where does the event list begin, and where can it be cut between two events, without parsing it?

A cut is made before a `{` that follows `}` and a comma and opens with one of the event keys. In valid JSON no such
place lies inside a string (a quote there is escaped), so the only wrong cuts fall between objects of a list inside
an event's `args`; both neighbours of such a cut then fail to decode, and are read again together.
"""

from __future__ import annotations

import re
from mmap import mmap

Buffer = bytes | bytearray | memoryview | mmap

EVENT_LIST = re.compile(rb'(?<!\\)"traceEvents"\s*:\s*\[')
"""The key of the event list and its opening bracket."""

BORDER = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|cat|name|pid|tid|ts|dur|args|id|s|bp)"\s*:)')
"""The end of one event and the comma, right before the next."""


def next_cut(data: Buffer, position: int, end: int) -> tuple[int, int] | None:
    """(end of an event, start of the next) for the first border at or after `position`; None if there is none."""
    found = BORDER.search(data, position, end)
    return (found.start() + 1, found.end()) if found else None
