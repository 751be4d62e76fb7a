"""What does `gapless demo` do? It reports on a bundled pair of traces, a program with a fault and fixed, and compares them."""

from __future__ import annotations

import argparse
from importlib.resources import as_file, files

from gapless.cli import diff, diff_formats, formats, options, output, report
from gapless.cli.sources import Source

NAME = "demo"
HELP = "report on, and compare, a pair of small traces that ship with gapless"

PAIR = (
    ("layer_sync.before.json.gz", "Before: a model that calls torch.cuda.synchronize() after every layer."),
    ("layer_sync.after.json.gz", "After: the same model without these calls."),
)
"""Recorded on an NVIDIA H200 with the same script; measured without the profiler, the fix made it 1.45 times faster.
Beside each lies a window with stacks, which slow the host down: only file and line come from there."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's flags."""
    parser.add_argument("--full", action="store_true", help="everything, not only the first screen")
    options.add_color(parser)
    parser.set_defaults(
        step=None,
        device=None,
        rank=None,
        calibration="none",
        stacks=None,
        step_marker=None,
        no_cache=True,
        cache_dir=None,
        output=None,
        compile_seconds=None,
    )


def run(args: argparse.Namespace) -> int:
    """Report on both traces, the faulty one first, then compare them."""
    look = formats.Look(full=args.full, width=output.width(), color=output.color(args))
    for i, (name, what) in enumerate(PAIR):
        with as_file(files("gapless") / "samples") as folder:
            view = report.report_on(Source(str(folder / name)), args)
            output.write(("\n" if i else "") + f"{what}\n\n" + formats.FORMATS["text"].write([view], look))
    with as_file(files("gapless") / "samples") as folder:
        before, after = (str(folder / name) for name, _ in PAIR)
        compared = diff.compare(before, after, args)
    output.write("\nCompared:\n\n" + diff_formats.FORMATS["text"].write(compared, look))
    return 0
