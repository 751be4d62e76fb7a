"""Where does the event list begin, and where can it be cut between two events, without parsing it?

A cut is made before a `{` that follows `}` and commas or blanks and opens with one of the event keys. In valid JSON no
such place lies inside a string (a quote there is escaped), so the only wrong cuts fall between objects of a list inside
an event's `args`; both neighbours of such a cut then fail to decode, and are read again together.
"""

from __future__ import annotations

import re

EVENT_LIST = re.compile(rb'(?<!\\)"traceEvents"\s*:\s*\[')
"""The key of the event list and its opening bracket."""

BORDER = re.compile(rb'\}[\s,]*(?=\{\s*"(?:ph|cat|name|pid|tid|ts|dur|args|id|s|bp)"\s*:)')
"""The end of one event and what separates it from the next: one comma, if the file is well-formed."""
