"""Which verbs exist, and which one was asked for? Known without importing any of them."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import NoReturn

from gapless import __version__
from gapless.model.errors import UsageError

VERBS: dict[str, str] = {
    "report": "say where the time of a trace went, what waits for what, and what to fix first",
    "diff": "compare two traces: what a change, or torch.compile, really changed, and whether it is faster",
    "info": "say what a trace file holds and what it can and cannot answer",
    "view": "open the report page of a trace in the browser, or the trace in Perfetto",
    "export": "write a trace with what gapless found, for Perfetto or Chrome's viewer",
    "query": "run SQL over the tables of a trace",
    "explain": "print the page of a check: what it finds, why it matters, how to fix it",
    "demo": "report on, and compare, a pair of small traces that ship with gapless",
    "run": "record a good trace of an unmodified script or module, then report on it",
    "bench": "time a function or statement on CPU and GPU, or compare several",
    "syncs": "run a script and say which of its lines wait for the GPU, how long, why, and what to write instead",
    "calibrate": "measure what recording costs on this machine, so that predictions subtract the right amount",
    "completions": "print the completion file of a shell",
}
"""Word -> its line in `gapless --help`; module `gapless.cli.<word>` is imported only when the word is typed."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line that ends with what to do next."""

    asked: argparse.ArgumentParser | None = None
    """The parser of the verb that this command line asks for."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing usage: `cli.entry` writes the one line."""
        raise UsageError(f"{message[:1].lower()}{message[1:]} (see `{self.prog} --help`)")


def build(argv: Sequence[str] = (), *, every_verb: bool = False) -> Parser:
    """The parser for this command line: only the verb in `argv` has its flags, or all of them on demand."""
    parser = Parser(
        prog="gapless",
        description="Where a PyTorch program waits, why, and what fixing each wait will bring.",
        epilog="Start with: gapless report trace.json.gz (or gapless demo). Help on a verb: gapless VERB --help.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"gapless {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs", required=False)
    asked = asked_verb(argv)
    for verb, text in VERBS.items():
        sub = verbs.add_parser(verb, help=text, description=_sentence(text), allow_abbrev=False)
        if every_verb or verb == asked:
            load(verb).add_arguments(sub)
            parser.asked = sub if verb == asked else parser.asked
            sub.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    return parser


def asked_verb(argv: Sequence[str]) -> str | None:
    """The verb of this command line: its first word that is not a flag."""
    return next((word for word in argv if not word.startswith("-")), None)


def load(verb: str) -> ModuleType:
    """The module of a verb."""
    return importlib.import_module(f"gapless.cli.{verb}")


def unknown(word: str) -> UsageError:
    """The error for a word that is no verb, with the likeliest meaning."""
    import difflib

    close = difflib.get_close_matches(word, VERBS, n=1)
    if close:
        hint = f"did you mean `gapless {close[0]}`?"
    elif word.endswith((".json", ".gz")):
        hint = "to read a trace, type `gapless report` before the file"
    else:
        hint = f"the verbs are {', '.join(VERBS)}"
    return UsageError(f"'{word}' is not a verb of gapless; {hint}")


def unknown_flag(word: str, parser: Parser) -> UsageError:
    """The error for a word that the verb does not take, with the likeliest meaning."""
    import difflib

    verb = parser.asked or parser
    known = [option for action in verb._actions for option in action.option_strings if option.startswith("--")]
    close = difflib.get_close_matches(word.partition("=")[0], known, n=1) if word.startswith("-") else []
    hint = f"did you mean {close[0]}?" if close else f"see `{verb.prog} --help`"
    what = "not an option of" if word.startswith("-") else "a word too many for"
    return UsageError(f"'{word}' is {what} `{verb.prog}`; {hint}")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
