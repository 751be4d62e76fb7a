"""`gapless view --perfetto` hands the trace to a viewer's window; the test plays the viewer's part."""

from __future__ import annotations

import sys

import pytest
from tests.cli.harness import BEFORE
from tests.web.browser import play, require

pytestmark = pytest.mark.browser


def test_the_viewer_gets_the_trace_after_it_answered() -> None:
    require()
    seen = play("handover", sys.executable, "-m", "gapless", "view", BEFORE, "--perfetto", "--no-cache")
    assert seen["got"]["head"] == [0x1F, 0x8B]
    assert seen["got"]["bytes"] > 10_000
    assert seen["got"]["title"] == BEFORE.name
    assert seen["url"].startswith(seen["got"]["from"] + "/")
    assert seen["pings"] >= 3
    assert seen["complaints"] == []
    assert seen["exit"] == 0
