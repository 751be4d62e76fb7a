"""What does `gapless report TRACE...` do? It reads one trace a rank and says where the time went."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from gapless.cli import formats, options, output
from gapless.cli.sources import Source, expand
from gapless.model.errors import GaplessError, NotATraceError, UsageError

if TYPE_CHECKING:
    from gapless.api import ReportView

NAME = "report"
HELP = "say where the time of a trace went, what waits for what, and what to fix first"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's flags."""
    parser.add_argument(
        "trace",
        nargs="+",
        metavar="TRACE",
        help="a trace, or the ranks of one run: files, a folder, a glob; - is stdin",
    )
    parser.add_argument("--full", action="store_true", help="everything, not only the first screen")
    options.add_output(parser, list(formats.FORMATS))
    options.add_selection(parser)
    options.add_cache(parser)


def run(args: argparse.Namespace) -> int:
    """Report on every trace; a file of a folder that is no trace is named and left out."""
    form = formats.choose(args.format, args.output)
    if not formats.FORMATS[form].for_people and args.output is None and sys.stdout.isatty():
        raise UsageError(f"--format {form} would flood the terminal; name a file with -o FILE")
    views, failed = [], 0
    sources = expand(args.trace)
    for source in sources:
        try:
            view = report_on(source, args)
        except GaplessError as error:
            if len(sources) == 1:
                raise
            output.say(f"gapless: {error}")
            failed += source.named or not isinstance(error, NotATraceError)
            continue
        if args.rank is None or len(sources) == 1 or view.report.trace.get("rank") == args.rank:
            views.append(view)
    if not views:
        raise UsageError(_nothing(args, len(sources)))
    look = formats.Look(full=args.full, width=output.width(), color=args.output is None and output.color(args))
    output.write(formats.FORMATS[form].write(views, look), args.output)
    return 2 if failed else 0


def report_on(source: Source, args: argparse.Namespace) -> ReportView:
    """Read one trace, showing progress, and report on the part that was asked for."""
    from gapless.cli.memory import kept
    from gapless.cli.reading import calibration_for, load

    with kept():
        trace = load(source.path, args)
        from gapless import api

        return api.report(
            trace,
            options=api.ReportOptions(
                step_marker=args.step_marker,
                step=args.step,
                device=args.device,
                rank=args.rank,
                calibration=calibration_for(trace, args),
            ),
        )


def _nothing(args: argparse.Namespace, files: int) -> str:
    if args.rank is not None and files > 1:
        return f"--rank {args.rank}: none of the {files} files is of that rank; leave --rank out to see which there are"
    return f"none of the {files} files could be read, so there is nothing to report; see the lines above"
