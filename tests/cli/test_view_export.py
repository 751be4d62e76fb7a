"""`gapless view` and `gapless export`: what is written where, and that nobody else can read what is served."""

from __future__ import annotations

import gzip
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.harness import BEFORE, gapless

from gapless.cli.viewer import TraceServer


def test_view_writes_a_page_and_says_where(tmp_path: Path) -> None:
    done = gapless("view", "--no-open", "--no-cache", BEFORE, TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    page = Path(done.stdout.strip())
    assert page.parent == tmp_path
    assert page.read_text("utf-8").startswith("<!doctype html>")


def test_report_writes_a_page_for_a_name_that_ends_in_html(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = gapless("report", "--no-cache", BEFORE, "-o", page)
    assert done.returncode == 0
    assert "Content-Security-Policy" in page.read_text("utf-8")


@pytest.mark.parametrize("name", ["out.json", "out.json.gz"])
def test_export_writes_what_viewers_read(tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    done = gapless("export", "--no-cache", BEFORE, "--perfetto", out)
    assert (done.returncode, done.stdout) == (0, "")
    data = out.read_bytes()
    loaded = json.loads(gzip.decompress(data) if name.endswith(".gz") else data)
    assert loaded["displayTimeUnit"] == "ns"
    assert any(e.get("cat") == "gapless" for e in loaded["traceEvents"])


def test_export_refuses_a_name_that_viewers_would_not_understand(tmp_path: Path) -> None:
    done = gapless("export", BEFORE, "--perfetto", tmp_path / "out.txt")
    assert done.returncode == 2
    assert "end it in .json or .json.gz" in done.stderr
    assert not (tmp_path / "out.txt").exists()


@pytest.mark.parametrize("verb", [("view", "--no-open"), ("export", "--perfetto", "x.json")])
def test_several_traces_are_refused(verb: tuple[str, ...]) -> None:
    done = gapless(*verb, BEFORE.parent)
    assert done.returncode == 2
    assert "name a single trace" in done.stderr


@pytest.fixture
def server() -> Iterator[TraceServer]:
    serving = TraceServer("</script><b>x", b"bytes of a trace", "https://viewer.example")
    thread = threading.Thread(target=serving.serve, daemon=True)
    thread.start()
    yield serving
    serving.stop()
    thread.join(5)


def get(url: str, method: str = "GET", **headers: str) -> tuple[int, bytes]:
    request = urllib.request.Request(url, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, b""


def test_the_server_hands_out_page_and_trace_to_who_has_the_address(server: TraceServer) -> None:
    assert server.url.startswith("http://127.0.0.1:")
    status, page = get(server.url)
    assert status == 200
    assert b"PING" in page
    assert page.lower().count(b"</script") == 1
    assert get(server.url + "trace") == (200, b"bytes of a trace")
    assert not server.handed_over.is_set()
    assert get(server.url + "done", "POST")[0] == 200
    assert server.handed_over.is_set()


def test_the_server_refuses_others(server: TraceServer) -> None:
    base = server.url.rsplit("/", 2)[0]
    assert get(f"{base}/")[0] == 404
    assert get(f"{base}/wrong-token/trace")[0] == 404
    assert get(f"{base}/wrong-token/done", "POST")[0] == 404
    assert get(server.url + "trace", Host="evil.example")[0] == 403
    assert get(server.url + "../../etc/passwd")[0] == 404
