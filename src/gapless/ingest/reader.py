"""How is a Kineto file read?"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

from isal import igzip

from gapless.ingest.columns import Chunk, build_chunk
from gapless.ingest.events import events_decoder
from gapless.ingest.finish import Source as SourceFacts
from gapless.ingest.finish import finish
from gapless.ingest.interns import Interns
from gapless.ingest.issues import Issues
from gapless.ingest.raw import RawTrace
from gapless.ingest.source import Source, open_source
from gapless.ingest.split import EVENT_LIST, next_cut
from gapless.model.errors import NotATraceError

CHUNK_BYTES = 8 << 20


def read(
    source: Source, *, progress: Callable[[int, int | None], None] | None = None, keep_frames: bool = True
) -> RawTrace:
    """All tables of the trace in `source`."""
    opened, name, size = open_source(source)
    packed = opened.read()
    if progress:
        progress(len(packed), size)
    data = igzip.decompress(packed) if packed[:2] == b"\x1f\x8b" else packed
    if data[:3] == b"\xef\xbb\xbf":
        data = data[3:]
    head = EVENT_LIST.search(data)
    bare = data.lstrip()[:1] == b"["
    if head is None and not bare:
        raise NotATraceError(f"{name}: no traceEvents")
    start = data.index(b"[") + 1 if head is None else head.end()
    interns = Interns()
    chunks: list[Chunk] = []
    while True:
        cut = next_cut(data, start + CHUNK_BYTES, len(data))
        if cut is None:
            break
        text = b"[" + data[start : cut[0]] + b"]"
        chunks.append(build_chunk(events_decoder.decode(text), len(text), interns, keep_frames=keep_frames))
        start = cut[1]
    rest = data[start:]
    decoder = json.JSONDecoder(strict=False)
    events, used = decoder.raw_decode("[" + rest.decode("utf-8", "replace"))
    text = json.dumps(events).encode()
    chunks.append(build_chunk(events_decoder.decode(text), len(text), interns, keep_frames=keep_frames))
    top = {}
    if head is not None:
        tail = rest.decode("utf-8", "replace")[used - 1 :].strip().removeprefix(",").strip()
        top = json.loads(data[: head.start()].rstrip().rstrip(b",") + b"}", strict=False)
        top.update(json.loads("{" + tail, strict=False))
    facts = SourceFacts(name, len(packed), hashlib.sha256(packed).hexdigest(), bare, False)
    return finish(facts, top, chunks, interns.snapshot(), Issues())
