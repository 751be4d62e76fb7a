"""Which issues does a well-formed file give: events set aside, unknown kinds, missing durations, overlong names?"""

from __future__ import annotations

from collections.abc import Sequence

from gapless.ingest.columns import Chunk, Refused
from gapless.ingest.issues import Issues
from gapless.ingest.series import NAME_LIMIT

_REASONS = {
    "negative-duration": "events with a negative duration; set aside, they change no total",
    "absurd-duration": "events with a duration that cannot be; set aside, they change no total",
    "overruns-window": "events that end long after the recording did; set aside, they change no total",
    "bad-time": "events with a start that cannot be; set aside, they change no total",
    "no-time": "events without a start; set aside, they change no total",
}


def note_refused(refused: Sequence[Refused], issues: Issues) -> None:
    """One issue a reason."""
    for item in refused:
        written = f"{item.category} {item.name}: ts {item.start_text or 'missing'}, dur {item.dur_text or 'missing'}"
        issues.add(item.reason, "loss", 1, _REASONS[item.reason], written)


def note_oddities(chunks: Sequence[Chunk], names: Sequence[str], issues: Issues) -> None:
    """Issues that concern single events or names, none of which changes a number."""
    unknown: dict[str, int] = {}
    for chunk in chunks:
        for kind, count in chunk.unknown.items():
            unknown[kind] = unknown.get(kind, 0) + count
        what = "spans without a duration; counted with duration 0"
        issues.add("no-duration", "note", chunk.no_duration, what, chunk.no_duration_example)
    most = sorted(unknown, key=lambda kind: (-unknown[kind], kind))[:5]
    what = "events of kinds that are not known here (phase and category); counted, not read"
    issues.add("unknown-kind", "note", sum(unknown.values()), what, ", ".join(kind.strip() for kind in most))
    for name in names:
        if len(name) > NAME_LIMIT:
            issues.add("long-name", "note", 1, f"names longer than {NAME_LIMIT} characters; cut for display", name)
