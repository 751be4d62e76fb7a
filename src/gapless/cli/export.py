"""What does `gapless export --perfetto OUT TRACE` do? It writes the recording with gapless's lanes for other viewers."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from gapless.cli import options, output, report
from gapless.cli.sources import expand
from gapless.model.errors import UsageError

if TYPE_CHECKING:
    from gapless.api import ReportView

NAME = "export"
HELP = "write a trace with what gapless found, for Perfetto or Chrome's viewer"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's flags."""
    parser.add_argument("trace", metavar="TRACE", help="one trace; - is stdin")
    parser.add_argument(
        "--perfetto",
        metavar="OUT",
        required=True,
        help="the file to write (.json, or .json.gz to compress); - is stdout",
    )
    options.add_selection(parser)
    options.add_cache(parser)


def run(args: argparse.Namespace) -> int:
    """Write the file; nothing is left half written."""
    sources = expand([args.trace])
    if len(sources) != 1:
        raise UsageError(f"{args.trace}: {len(sources)} traces, but one file holds one; name a single trace")
    if not (args.perfetto == "-" or args.perfetto.endswith((".json", ".gz"))):
        raise UsageError(
            f"--perfetto {args.perfetto}: viewers tell the format by the name; end it in .json or .json.gz"
        )
    data = perfetto_bytes(report.report_on(sources[0], args), compress=args.perfetto.endswith(".gz"))
    output.write_bytes(data, args.perfetto)
    return 0


def perfetto_bytes(view: ReportView, *, compress: bool) -> bytes:
    """The whole recording with gapless's lanes."""
    from isal import igzip

    from gapless.analyses.timeline import timeline
    from gapless.render.perfetto import export

    study = view.trace.study(view.options.study())
    drawn = timeline(study, view.report.findings, full=True)
    data = "".join(export(drawn, view.report, view.trace.meta.origin_ns)).encode("utf-8", "replace")
    return igzip.compress(data, compresslevel=2) if compress else data
