"""How is a value read that is not of the type its key should have? Only what fits is taken, nothing fails.

Slow, and used only where the strict bulk decoders refuse.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Any

import msgspec
from msgspec import Raw

from gapless.ingest.events import S

JSON_PROBLEMS = (ValueError, RecursionError, ArithmeticError)
"""What reading text as JSON can raise with the standard library."""

PROBLEMS = (msgspec.MsgspecError, TypeError, *JSON_PROBLEMS)
"""What reading text as JSON can raise with msgspec or the standard library."""

_DIGITS_LIMIT = 400
"""Numbers with more digits are infinite for every purpose here, and slow to convert."""

_HUGE = Decimal("1e300")


def _integer(digits: str) -> int | Decimal:
    return (
        int(digits) if len(digits) <= _DIGITS_LIMIT else _HUGE.copy_sign(Decimal(digits[:2] if digits[0] == "-" else 1))
    )


_loose = json.JSONDecoder(strict=False, parse_int=_integer, parse_float=Decimal, parse_constant=float)


def loads(text: str) -> Any:  # noqa: ANN401 - JSON can be anything
    """JSON with control characters in strings, NaN, Infinity and numbers of any length; decimals stay exact."""
    return _loose.decode(text)


def plain(value: Any) -> Any:  # noqa: ANN401 - JSON can be anything
    """The value with numbers and text that any JSON reader takes."""
    if isinstance(value, dict):
        return {plain(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Decimal):
        value = float(value) if value.copy_abs() <= _HUGE else None
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        value = float(value) if abs(value) < _HUGE else None
    if isinstance(value, float) and value - value != 0:
        return None
    return value


def event_text(values: Mapping[str, Any]) -> bytes:
    """Well-formed JSON of one event from any JSON object: fields of a wrong type are converted or left out."""
    event: dict[str, Any] = {}
    for key in ("ph", "cat", "name"):
        value = values.get(key)
        if isinstance(value, (str, int, float, Decimal)):
            event[key] = plain(str(value))
    for key in ("pid", "tid"):
        value = plain(values.get(key))
        if isinstance(value, (str, int, float)):
            event[key] = value
    for key in ("ts", "dur"):
        number = _number(values.get(key))
        if number is not None:
            event[key] = Raw(f"{number:f}".encode() if abs(number.adjusted()) < 30 else b"%r" % float(number))
    args = values.get("args")
    if isinstance(args, dict):
        event["args"] = plain(args)
    return msgspec.json.encode(event)


def _number(value: object) -> Decimal | None:
    """An exact number from a number or its text, within the range of a double; None if it is neither."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
        return None
    with contextlib.suppress(ArithmeticError, ValueError):
        number = Decimal(value)
        if not number.is_nan():
            return min(max(number, -_HUGE), _HUGE)
    return None


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
            with contextlib.suppress(*PROBLEMS):
                if kind is Raw:
                    kept[name] = Raw(msgspec.json.encode(value))
                elif kind is bool:
                    kept[name] = value if isinstance(value, bool) else True
                else:
                    kept[name] = msgspec.convert(value, kind, strict=False)
    return struct(**kept)


def decode_args(decoder: msgspec.json.Decoder[list[S]], struct: type[S], texts: list[Raw]) -> list[S]:
    """The `args` of many events: in bulk if all fit, else one by one."""
    try:
        return decoder.decode(b"[" + b",".join(texts) + b"]")
    except PROBLEMS:
        return [_decode_one(struct, text) for text in texts]


def _decode_one(struct: type[S], text: Raw) -> S:
    try:
        return msgspec.json.decode(text, type=struct)
    except PROBLEMS:
        try:
            return struct_from(struct, plain(loads(bytes(text).decode("utf-8", "replace"))))
        except PROBLEMS:
            return struct()
