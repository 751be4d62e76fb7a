"""How does a report become one page that shows who waits for whom? See `page` for the page, `compact` for notebooks, `diff` for two traces."""

from __future__ import annotations

from gapless.render.html.compact import compact_html
from gapless.render.html.page import render_html

__all__ = ["compact_html", "render_html"]
