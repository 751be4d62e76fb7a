"""The page as text: complete, silent towards the network, exact, and closed to names that are markup."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from tests.render import factories
from tests.render.html.timelines import small
from tests.render.html.unpack import of_page

from gapless.model.report import Report
from gapless.model.timeline import column
from gapless.render.html import compact_html, render_html

ALLOWED = {"script": {"type", "id"}, "a": {"class", "href", "id", "aria-label"}}
VOID = {"br", "hr", "img", "input", "meta", "rect", "line", "path", "circle", "polyline"}


class Outline(HTMLParser):
    """Elements, attributes and nesting of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def outline(page: str) -> Outline:
    parsed = Outline()
    parsed.feed(page)
    assert not parsed.open
    return parsed


REPORTS = {
    "usual": factories.report,
    "healthy": factories.healthy,
    "bare": factories.bare,
    "hostile": factories.hostile,
}


@pytest.mark.parametrize("name", REPORTS)
def test_any_report_gives_a_well_formed_page_that_loads_nothing(name: str) -> None:
    page = render_html(REPORTS[name](), small())
    parsed = outline(page)
    assert [tag for tag, _ in parsed.tags if tag in {"link", "iframe", "img", "object", "embed", "base", "form"}] == []
    for tag, attributes in parsed.tags:
        assert not any(key.startswith("on") for key in attributes), tag
        for key in ("src", "action", "formaction", "xlink:href"):
            assert key not in attributes
        assert (attributes.get("href") or "#").startswith("#")
    scripts = [a.get("type") for tag, a in parsed.tags if tag == "script"]
    assert scripts == ["text/plain", "application/json", None]
    assert len(page.encode()) < 600_000


@pytest.mark.parametrize("name", REPORTS)
def test_any_report_gives_a_notebook_fragment_without_script(name: str) -> None:
    parsed = outline(compact_html(REPORTS[name]()))
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in parsed.tags}
    assert not any(key.startswith("on") for _, attributes in parsed.tags for key in attributes)


def test_the_policy_allows_the_one_script_and_no_connection() -> None:
    page = render_html(factories.report(), small())
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1))
    script = re.search(r"<script>(.*?)</script>", page, re.S).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "connect-src 'none'" in policy
    assert "unsafe-eval" not in policy


def test_bars_carry_the_accounts_exactly_and_add_to_a_hundred_percent() -> None:
    report = factories.report()
    page = render_html(report)
    parsed = outline(page)
    walls = [int(a["data-wall-ns"]) for _, a in parsed.tags if "data-wall-ns" in a]
    assert walls == [a.wall_ns for a in (*report.accounting, *report.host)]
    parts = [int(a["data-ns"]) for _, a in parsed.tags if "data-ns" in a]
    assert sum(parts) == sum(walls)
    gpu = page[page.index('data-kind="device"') : page.index('data-kind="host"')]
    shares = re.findall(r"<b>(\d+\.\d) %</b>", gpu)
    assert round(sum(map(float, shares)), 1) == 100.0


def test_findings_stand_in_the_reports_order_with_fix_doubt_and_gain() -> None:
    report = factories.report()
    page = render_html(report, small())
    codes = [a["data-finding"] for _, a in outline(page).tags if "data-finding" in a]
    assert codes == [f.code for f in report.findings]
    assert "A call that times something on purpose has to stay." in page
    assert "1.45x" in page
    assert "1.35x to 1.55x" in page
    assert 'data-goto-finding="0"' in page
    assert 'data-goto-finding="1"' not in page


def test_a_check_that_could_not_look_is_never_silent() -> None:
    page = render_html(factories.report())
    assert "1 cannot tell" in page
    assert "no shapes were recorded" in page
    assert "record with record_shapes=True" in page


def test_a_timeline_that_is_too_big_is_left_out_and_the_page_says_so() -> None:
    base = small()
    noise = [int.from_bytes(hashlib.sha256(str(i).encode()).digest()[:6]) for i in range(600_000)]
    rows = sorted(noise)
    big = replace(
        base,
        queue=replace(base.queue, lane=column([0] * len(rows)), time_ns=column(rows), depth=column(noise)),
    )
    page = render_html(factories.report(), big)
    assert len(page) < 3_000_000
    assert "--full" in page
    assert 'id="timeline-data"' not in page
    assert 'id="timeline-data"' in render_html(factories.report(), big, full=True)


def test_the_page_carries_the_timeline_it_was_given() -> None:
    header, columns = of_page(render_html(factories.report(), small()))
    assert columns["boxes"]["dur_ns"] == [4000, 800, 3000, 500]
    assert header["notes"] == ["events of 1 of 9 steps are drawn"]


def test_what_was_left_out_stands_in_the_footer() -> None:
    page = render_html(factories.report(), small())
    assert "events of 1 of 9 steps are drawn" in page[page.index("<footer>") :]


def test_a_report_without_a_timeline_has_no_empty_frame() -> None:
    report: Report = factories.bare()
    assert 'data-timeline="' not in render_html(report)
