"""How is markup made so that no text from a trace can become markup? Elements escape every plain string they get."""

from __future__ import annotations

import html
from collections.abc import Mapping

from gapless.render import safe


class Html(str):
    """Text that is markup already: made by `el`, or a literal of this package."""

    __slots__ = ()


Child = Html | str | None
_VOID = {"br", "hr", "img", "input", "line", "rect", "path", "circle", "polyline", "polygon", "meta"}


def el(tag: str, attributes: Mapping[str, str | int | float | bool | None] | None = None, *children: Child) -> Html:
    """An element; plain text in children and all attribute values are made safe and escaped. None is left out."""
    parts = [f"<{tag}"]
    for name, value in (attributes or {}).items():
        if value is None or value is False:
            continue
        parts.append(f" {name}" if value is True else f' {name}="{html.escape(safe.line(value), quote=True)}"')
    if tag in _VOID:
        # The slash matters inside `svg`, where these elements would swallow what follows.
        return Html("".join(parts) + "/>")
    parts.append(">")
    parts += [
        child if isinstance(child, Html) else html.escape(safe.line(child, safe.BLOCK_LIMIT))
        for child in children
        if child
    ]
    parts.append(f"</{tag}>")
    return Html("".join(parts))


def join(*parts: Child) -> Html:
    """Several children without an element around them."""
    return Html("".join(p if isinstance(p, Html) else html.escape(safe.line(p, safe.BLOCK_LIMIT)) for p in parts if p))


def lines(text: str) -> Html:
    """Text of several lines, for `pre`."""
    return Html(html.escape(safe.block(text)))
