"""What do the keys before and after the event list hold? A broken one is skipped, the others are kept."""

from __future__ import annotations

import json
import re
from typing import Any

from gapless.ingest.issues import Issues
from gapless.ingest.lenient import JSON_PROBLEMS, loads, plain

_KEY = re.compile(r'[\s,{]*"((?:[^"\\]|\\.){0,200})"\s*:\s*')
_NEXT = re.compile(r',\s*"(?:[^"\\]|\\.){1,200}"\s*:')

_ATTEMPTS = 10_000
"""Keys tried one by one in a broken file."""

_decoder = json.JSONDecoder(strict=False)


def parse(text: bytes, issues: Issues, *, closed: bool) -> dict[str, Any]:
    """The keys in `text`: an object's beginning up to its event list, or (`closed`) the rest of it, with or without
    the opening brace."""
    source = text.decode("utf-8", "replace").strip().strip(",").strip()
    if not source:
        return {}
    body = source if source.startswith("{") else "{" + source
    if not closed:
        body += "}"
    try:
        values = plain(loads(body))
    except JSON_PROBLEMS:
        return _one_by_one(source, issues)
    return values if isinstance(values, dict) else {}


def _one_by_one(source: str, issues: Issues) -> dict[str, Any]:
    found: dict[str, Any] = {}
    at = 0
    for _ in range(_ATTEMPTS):
        key = _KEY.match(source, at)
        if key is None:
            break
        try:
            value, at = _decoder.raw_decode(source, key.end())
            found[key.group(1)] = plain(value)
        except JSON_PROBLEMS:
            issues.add(
                "broken-metadata",
                "note",
                1,
                "top-level keys that are no JSON; skipped, times are not affected",
                key.group(1),
            )
            following = _NEXT.search(source, key.end())
            if following is None:
                break
            at = following.start()
    return found
