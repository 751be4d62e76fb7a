"""What does `gapless diff BEFORE AFTER` do? It says what a change really changed, and whether the step became faster."""

from __future__ import annotations

import argparse
import sys
from pathlib import PurePath
from typing import TYPE_CHECKING

from gapless.cli import diff_formats, formats, options, output
from gapless.cli.sources import expand
from gapless.model.errors import CannotJudgeError, GateBreachedError, UsageError

if TYPE_CHECKING:
    from gapless.api import DiffView

NAME = "diff"
HELP = "compare two traces: what a change, or torch.compile, really changed, and whether it is faster"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's flags."""
    parser.add_argument("before", metavar="BEFORE", help="the trace before the change; - is stdin")
    parser.add_argument("after", metavar="AFTER", help="the trace after it")
    parser.add_argument("--full", action="store_true", help="every difference, not only the first screen")
    gates = parser.add_argument_group("gates")
    gates.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="GATE",
        help="exit with 1 if breached: slower, slower=5%%, launches, syncs=+2, kernels=10%% ...; may be repeated or comma-separated",
    )
    which = parser.add_argument_group("which part")
    which.add_argument(
        "--step-marker", type=options.regex, metavar="REGEX", help="annotations whose names match are the steps"
    )
    which.add_argument("--device", type=int, metavar="N", help="only GPU N of both")
    which.add_argument(
        "--compile-seconds",
        type=_seconds,
        metavar="S",
        help="what compiling the after side took, to say when it pays off",
    )
    options.add_calibration(which)
    options.add_output(parser, list(diff_formats.FORMATS))
    options.add_cache(parser)


def run(args: argparse.Namespace) -> int:
    """Compare, write the comparison, then judge the gates."""
    from gapless.comparison.gates import parse

    gates = [parse(text) for words in args.fail_on for text in words.split(",") if text.strip()]
    form = _choose(args.format, args.output)
    if not diff_formats.FORMATS[form].for_people and args.output is None and sys.stdout.isatty():
        raise UsageError(f"--format {form} would flood the terminal; name a file with -o FILE")
    view = compare(args.before, args.after, args)
    look = formats.Look(full=args.full, width=output.width(), color=args.output is None and output.color(args))
    output.write(diff_formats.FORMATS[form].write(view, look), args.output)
    if view.diff.comparable.status == "no":
        raise CannotJudgeError(f"nothing can be compared: {view.diff.comparable.reasons[0]}; record both sides alike")
    from gapless.comparison.gates import judge_gates

    judged = judge_gates(view.diff, gates)
    for one in judged:
        if one.breached or one.unknown:
            output.say(f"{'breached' if one.breached else 'not judged'}: {one.sentence}")
    unknown = [one.gate.text for one in judged if one.unknown]
    breached = [one.gate.text for one in judged if one.breached]
    if breached:
        raise GateBreachedError(f"--fail-on {', '.join(breached)}: breached")
    if unknown:
        raise CannotJudgeError(
            f"--fail-on {', '.join(unknown)}: cannot be judged on these two traces, so it does not pass"
        )
    return 0


def compare(before: str, after: str, args: argparse.Namespace) -> DiffView:
    """Read both traces, showing progress, and compare them."""
    from gapless.cli.reading import calibration_for, load

    paths = [_one(before, "BEFORE"), _one(after, "AFTER")]
    if paths == ["-", "-"]:
        raise UsageError("both traces cannot come from stdin; name at least one file")
    traces = [load(path, args) for path in paths]
    from gapless import api

    before_costs, after_costs = (calibration_for(trace, args) for trace in traces)
    chosen = api.DiffOptions(
        step_marker=args.step_marker,
        device=args.device,
        compile_seconds=args.compile_seconds,
        calibrations=(before_costs, after_costs),
    )
    return api.diff(*traces, options=chosen)


def _one(word: str, side: str) -> str:
    """The one trace that a word names."""
    sources = expand([word])
    if len(sources) > 1:
        shown = ", ".join(PurePath(source.path).name for source in sources[:3])
        raise UsageError(
            f"{word}: {side} must be one trace, but this names {len(sources)} ({shown}, ...); name the rank's file"
        )
    return sources[0].path


def _choose(asked: str | None, target: str | None) -> str:
    """The format asked for, else the one that the output file's name means, else text."""
    if asked is not None or target is None or target == "-":
        return asked or "text"
    suffix = PurePath(target).suffix.lower()
    found = next((name for name, form in diff_formats.FORMATS.items() if suffix in form.suffixes), None)
    if found is None:
        known = ", ".join(s for f in diff_formats.FORMATS.values() for s in f.suffixes)
        raise UsageError(
            f"{target}: no format goes with the name '{suffix}'; end it in one of {known}, or pass --format"
        )
    return found


def _seconds(text: str) -> float:
    """Seconds, not negative."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise UsageError(f"--compile-seconds {text}: not a number of seconds; write e.g. --compile-seconds 12.5")
    return value
