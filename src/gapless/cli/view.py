"""What does `gapless view TRACE` do? It opens the report page, or the trace in Perfetto, in the browser."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from gapless.cli import formats, options, output, report
from gapless.cli.export import perfetto_bytes
from gapless.cli.sources import expand
from gapless.cli.viewer import VIEWER, TraceServer
from gapless.model.errors import UsageError

if TYPE_CHECKING:
    from gapless.api import ReportView

NAME = "view"
HELP = "open the report page of a trace in the browser, or the trace in Perfetto"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's flags."""
    parser.add_argument("trace", metavar="TRACE", help="one trace; - is stdin")
    parser.add_argument("--full", action="store_true", help="draw every event, however large the page")
    parser.add_argument("--perfetto", action="store_true", help="hand the trace to the Perfetto viewer instead")
    parser.add_argument("--viewer", metavar="URL", default=VIEWER, help=f"address of the viewer (default: {VIEWER})")
    parser.add_argument("--no-open", action="store_true", help="only say where it is, open nothing")
    options.add_selection(parser)
    options.add_cache(parser)


def run(args: argparse.Namespace) -> int:
    """Open the page; with --perfetto serve until the viewer has the trace or Ctrl-C."""
    sources = expand([args.trace])
    if len(sources) != 1:
        raise UsageError(f"{args.trace}: {len(sources)} traces, but one page shows one; name a single trace")
    view = report.report_on(sources[0], args)
    title = "stdin" if sources[0].path == "-" else PurePath(sources[0].path).name
    return _perfetto(view, title, args) if args.perfetto else _page(view, title, args)


def _page(view: ReportView, title: str, args: argparse.Namespace) -> int:
    text = formats.FORMATS["html"].write([view], formats.Look(full=args.full))
    handle, name = tempfile.mkstemp(prefix=f"gapless-{PurePath(title).name.split('.')[0][:40]}-", suffix=".html")
    with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as stream:
        stream.write(text)
    output.write(f"{name}\n")
    if not args.no_open:
        _open(Path(name).as_uri())
    return 0


def _perfetto(view: ReportView, title: str, args: argparse.Namespace) -> int:
    server = TraceServer(title, perfetto_bytes(view, compress=True), args.viewer)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    output.write(f"{server.url}\n")
    sys.stdout.flush()
    output.say("open this address and press the button; Ctrl-C ends")
    if not args.no_open:
        _open(server.url)
    try:
        server.handed_over.wait()
    finally:
        server.stop()
    return 0


def _open(url: str) -> None:
    import webbrowser

    if not webbrowser.open(url):
        output.say("no browser could be started here; open the address yourself")
