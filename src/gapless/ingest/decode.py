"""How does one chunk of event text become columns, exact times included?"""

from __future__ import annotations

import re
from decimal import Decimal

import msgspec
from msgspec import Struct

from gapless.ingest.columns import Chunk, CoarseTimesError, build_chunk
from gapless.ingest.events import Event, events_decoder
from gapless.ingest.interns import Interns
from gapless.ingest.lenient import PROBLEMS
from gapless.ingest.times import COARSE_US


class _ExactTimes(Struct, gc=False):
    """`ts` and `dur` as decimal numbers."""

    ts: Decimal | None = None
    dur: Decimal | None = None


_LONG_DECIMAL = re.compile(rb'"(?:ts|dur)"\s*:\s*\d{13,}\.')

_exact = msgspec.json.Decoder(list[_ExactTimes])


class UnreadableChunkError(Exception):
    """The chunk is not a well-formed list of events."""


def _decimals_lost(events: list[Event], text: bytes | bytearray | memoryview) -> bool:
    """Whether the chunk has decimals that may have vanished: times so late that their doubles can look whole."""
    sample = events[:: len(events) // 16 + 1]
    return any(event.ts >= COARSE_US for event in sample) and _LONG_DECIMAL.search(text) is not None


def decode_chunk(text: bytes | bytearray | memoryview, interns: Interns, *, keep_frames: bool) -> Chunk:
    """Columns of the events in `text`, a JSON list; raises UnreadableChunkError.

    Times are read a second time as text where doubles cannot hold them.
    """
    try:
        events = events_decoder.decode(text)
    except PROBLEMS as error:
        raise UnreadableChunkError from error
    try:
        if _decimals_lost(events, text):
            raise CoarseTimesError
        return build_chunk(events, len(text), interns, keep_frames=keep_frames)
    except CoarseTimesError:
        exact = [(times.ts, times.dur) for times in _exact.decode(text)]
        return build_chunk(events, len(text), interns, keep_frames=keep_frames, texts=exact)
