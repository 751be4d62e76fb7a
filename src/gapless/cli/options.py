"""Which flags do several verbs share, and what do they mean?"""

from __future__ import annotations

import argparse
import re

from gapless.model.errors import UsageError


def add_cache(parser: argparse.ArgumentParser) -> None:
    """Where the tables of a trace are kept between two reads."""
    group = parser.add_argument_group("cache")
    group.add_argument("--no-cache", action="store_true", help="read the file itself and keep nothing")
    group.add_argument(
        "--cache-dir", metavar="DIR", help="folder of the cache (default: GAPLESS_CACHE_DIR, else the user's cache)"
    )


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Which part of the trace is looked at."""
    group = parser.add_argument_group("which part")
    group.add_argument("--step", type=int, metavar="N", help="only step N (the number in ProfilerStep#N)")
    group.add_argument("--device", type=int, metavar="N", help="only GPU N")
    group.add_argument("--rank", type=int, metavar="N", help="this file is rank N (or: only rank N of several files)")
    group.add_argument("--step-marker", type=regex, metavar="REGEX", help="annotations whose names match are the steps")
    add_calibration(group)
    group.add_argument(
        "--stacks",
        metavar="FILE",
        help="a window of the same program with stacks, for file and line (default: x.stack.json.gz beside x.json.gz; "
        "none: no such window)",
    )


def add_calibration(group: argparse._ArgumentGroup) -> None:
    """Where the recorder's costs come from, for traces that do not carry them."""
    group.add_argument(
        "--calibration",
        metavar="FILE",
        help="what `gapless calibrate` measured where the trace was recorded (default: kept here for a GPU of this name; "
        "none: the built-in figures)",
    )


def add_output(parser: argparse.ArgumentParser, formats: list[str]) -> None:
    """What is written, and where to."""
    group = parser.add_argument_group("output")
    group.add_argument("--format", choices=formats, help=f"default: by the name after -o, else {formats[0]}")
    group.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of the terminal")
    add_color(parser)


def add_color(parser: argparse.ArgumentParser) -> None:
    """Whether text is coloured."""
    parser.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help="colour the text (default: on a terminal, unless NO_COLOR is set)",
    )


def regex(text: str) -> str:
    """A regular expression that compiles."""
    try:
        re.compile(text)
    except re.error as error:
        raise UsageError(f"--step-marker {text}: not a regular expression ({error}); try a plain name") from None
    return text
