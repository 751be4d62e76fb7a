"""Names in a trace are hostile input: nothing of them may act in any output."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.render import safe


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("aten::mm", "aten::mm"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\nb\rc\td", "a\\nb\\rc\\td"),
        ("nul\x00bell\x07", "nul\\x00bell\\x07"),
        ("c1\x9b31m", "c1\\x9b31m"),
        ("rtl\u202eabc\u202c", "rtl\\u202eabc\\u202c"),
        ("iso\u2066x\u2069", "iso\\u2066x\\u2069"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("line\u2028sep", "line\\u2028sep"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("lone\ud800", "lone\\ud800"),
        ("no\xa0break", "no break"),
        ("é漢字µ", "é漢字µ"),
        ("e" + "\u0301" * 50, "e" + "\u0301" * 3),
    ],
)
def test_a_line_shows_what_it_would_have_done(raw: str, shown: str) -> None:
    assert safe.line(raw) == shown


@given(st.text(max_size=300), st.integers(10, 80))
def test_a_line_is_printable_and_short(raw: str, limit: int) -> None:
    shown = safe.line(raw, limit)
    assert len(shown) <= limit
    assert all(unicodedata.category(c)[0] not in "C" and unicodedata.category(c) not in ("Zl", "Zp") for c in shown)


def test_a_megabyte_becomes_an_ellipsis() -> None:
    shown = safe.name("head" + "x" * 5_000_000 + "tail")
    assert len(shown) == safe.NAME_LIMIT
    assert shown.startswith("headxx")
    assert shown.endswith("xxtail")
    assert safe.ELLIPSIS in shown


def test_a_sentence_keeps_its_words_and_cuts_a_long_one() -> None:
    shown = safe.sentence("the op " + "n" * 4000 + " waits\nhere")
    assert shown.startswith("the op nnn")
    assert shown.endswith(" waits\\nhere")
    assert len(shown) < 200


def test_a_block_keeps_line_breaks_alone() -> None:
    assert safe.block("if x:\r\n\ty\x1b[2J\n") == "if x:\n    y\\x1b[2J\n"


@pytest.mark.parametrize(
    "text", ["# h", "- item", "1. item", "> q", "a|b", "*b*", "_i_", "`c`", "<b>", "[l](u)", "![i](u)"]
)
def test_markdown_shows_markup_literally(text: str) -> None:
    from markdown_it import MarkdownIt

    html = MarkdownIt("commonmark").enable("table").render(safe.markdown(text)).strip()
    inner = html.removeprefix("<p>").removesuffix("</p>")
    assert html.startswith("<p>")
    assert "<" not in inner
    assert inner.replace("&lt;", "<").replace("&gt;", ">") == text


@pytest.mark.parametrize("text", ["a`b", "``", "`", "x``y`z", "plain", " "])
def test_a_code_span_holds_any_backticks(text: str) -> None:
    from markdown_it import MarkdownIt

    html = MarkdownIt("commonmark").render("x " + safe.markdown_code(text) + " y")
    assert f"<code>{text}</code>" in html or (not text.strip() and "<code>" in html)


@pytest.mark.parametrize("text", ["=cmd()", "+1", "-1", "@x"])
def test_a_spreadsheet_sees_no_formula(text: str) -> None:
    assert safe.csv_cell(text) == "'" + text


def test_ascii_terminals_get_ascii() -> None:
    assert safe.ascii_only("█░ 38 % · 5 µs …") == "#. 38 % - 5 us ~"
    assert safe.ascii_only("漢") == "?"
