"""What is a report in JSON? The dataclasses of `model.report`, field by field, in their order.

The same report gives the same bytes. Numbers that are not finite become null, text is one safe line (code keeps its
line breaks), output is ASCII. Nothing here knows a particular schema: any dataclass of the model can be written.
"""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass
from typing import Any

from gapless.render import safe

_MULTILINE = frozenset({"fix"})


def to_dict(value: object) -> dict[str, Any]:
    """A dataclass of the model as plain dicts, lists, strings and numbers; `schema` comes first."""
    plain = _plain(value, "")
    if not isinstance(plain, dict):
        raise TypeError(f"{type(value).__name__} is not a report: hand over a dataclass of gapless.model")
    if "schema" in plain:
        plain = {"schema": plain["schema"], **plain}
    return plain


def render(report: object) -> str:
    """The report as JSON text that ends in a line break."""
    return dumps(to_dict(report))


def dumps(value: object) -> str:
    """Plain values as indented ASCII JSON without NaN."""
    return json.dumps(_plain(value, ""), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _plain(value: object, key: str) -> object:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return safe.block(value) if key in _MULTILINE else safe.line(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name), f.name) for f in fields(value)}
    if isinstance(value, dict):
        return {safe.line(k): _plain(v, str(k)) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v, key) for v in value]
    return safe.line(value)
