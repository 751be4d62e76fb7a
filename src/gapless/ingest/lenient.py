"""How is a value read that is not of the type its key should have? Only what fits is taken, nothing fails.

Slow, and used only where the strict bulk decoders refuse.
"""

from __future__ import annotations

import contextlib
import json
from decimal import Decimal
from functools import cache
from typing import Any

import msgspec
from msgspec import Raw

from gapless.ingest.events import Event, S

_PROBLEMS = (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError)


@cache
def _fields(struct: type[msgspec.Struct]) -> tuple[tuple[str, str, Any], ...]:
    return tuple((f.name, f.encode_name, f.type) for f in msgspec.structs.fields(struct))


def struct_from(struct: type[S], values: object) -> S:
    """A struct with every field that can be converted; the rest keeps its default."""
    kept: dict[str, Any] = {}
    if isinstance(values, dict):
        for name, key, kind in _fields(struct):
            if key not in values:
                continue
            value = values[key]
            with contextlib.suppress(*_PROBLEMS):
                if kind is Raw:
                    kept[name] = Raw(json.dumps(value).encode())
                elif kind is bool:
                    kept[name] = value if isinstance(value, bool) else True
                else:
                    kept[name] = msgspec.convert(value, kind, strict=False)
    return struct(**kept)


def event_from(values: dict[str, Any]) -> Event:
    """An event from any JSON object; a `ts` or `dur` that is no number becomes NaN."""
    return struct_from(Event, {**values, "ts": number(values.get("ts")), "dur": number(values.get("dur"))})


def number(value: object) -> float:
    """A float from a number or its text; NaN if it is neither."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
        return float("nan")
    try:
        return float(value)
    except (ValueError, OverflowError):
        return float("nan")


def decode_args(decoder: msgspec.json.Decoder[list[S]], struct: type[S], texts: list[Raw]) -> list[S]:
    """The `args` of many events: in bulk if all fit, else one by one."""
    try:
        return decoder.decode(b"[" + b",".join(texts) + b"]")
    except _PROBLEMS:
        return [_decode_one(struct, text) for text in texts]


def _decode_one(struct: type[S], text: Raw) -> S:
    try:
        return msgspec.json.decode(text, type=struct)
    except _PROBLEMS:
        try:
            return struct_from(struct, json.loads(bytes(text), strict=False))
        except _PROBLEMS:
            return struct()
