"""Markdown: the same content, and no name can become markup."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt

from gapless.render import markdown

from . import factories, snapshots


def test_snapshot() -> None:
    snapshots.check("report.full.md", markdown.render(factories.report(), full=True))
    snapshots.check("healthy.md", markdown.render(factories.healthy()))


def test_hostile_names_are_text() -> None:
    html = (
        MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown.render(factories.hostile(), full=True))
    )
    assert "<script" not in html
    assert "<a " not in html
    assert re.search(r"&lt;script&gt;", html)
    assert not any(c in html for c in "\x1b\u202e\x07")
    tags = set(re.findall(r"<(\w+)", html))
    assert tags <= {
        "p",
        "strong",
        "em",
        "h2",
        "h3",
        "h4",
        "ul",
        "ol",
        "li",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "code",
        "pre",
        "br",
    }


def test_tables_keep_their_columns() -> None:
    for line in markdown.render(factories.hostile(), full=True).splitlines():
        if line.startswith("| "):
            assert len(re.findall(r"(?<!\\)\|", line)) >= 3
    html = MarkdownIt("commonmark").enable("table").render(markdown.render(factories.report(), full=True))
    for table in re.findall(r"<table>.*?</table>", html, re.DOTALL):
        rows = [len(re.findall(r"<t[hd]", row)) for row in re.findall(r"<tr>.*?</tr>", table, re.DOTALL)]
        assert len(set(rows)) == 1
