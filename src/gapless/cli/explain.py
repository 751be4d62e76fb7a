"""What does `gapless explain CODE` do? It prints the page of a check; without a code, the list of checks."""

from __future__ import annotations

import argparse

from gapless.cli import options, output
from gapless.model.errors import UsageError

NAME = "explain"
HELP = "print the page of a check: what it finds, why it matters, how to fix it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's flags."""
    parser.add_argument("code", nargs="?", metavar="CODE", help="the code of a check, as a report shows it")
    options.add_color(parser)


def run(args: argparse.Namespace) -> int:
    """Print one page, or the list."""
    from gapless.rules.registry import pages

    known = pages()
    if args.code is None:
        wide = max(map(len, known), default=0)
        output.write("".join(f"{code:<{wide}}  {_title(code, page)}\n" for code, page in sorted(known.items())))
        return 0
    page = known.get(args.code.lower())
    if page is None:
        raise UsageError(_unknown(args.code, list(known)))
    output.write(_drawn(page) if output.color(args) else page.rstrip("\n") + "\n")
    return 0


def _title(code: str, page: str) -> str:
    lines = (line.strip("# ").strip() for line in page.splitlines())
    return next((line for line in lines if line), "").removeprefix(f"{code}: ")


def _unknown(code: str, known: list[str]) -> str:
    import difflib

    close = difflib.get_close_matches(code.lower(), known, n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else "`gapless explain` lists them"
    return f"'{code}' is not the code of a check; {hint}"


def _drawn(page: str) -> str:
    from io import StringIO

    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(file=StringIO(), width=min(output.width(), 100), force_terminal=True)
    with console.capture() as captured:
        console.print(Markdown(page))
    return captured.get()
