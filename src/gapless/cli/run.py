"""What does `gapless run` do? It records a window of an unmodified script and then reports on it."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence

from gapless.model.errors import UsageError

NAME = "run"
HELP = "record a good trace of an unmodified script or module, then report on it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's flags; everything after the script's name is the script's own."""
    parser.usage = "gapless run [flags] (script.py | -m module) [arguments of the script]"
    window = parser.add_argument_group("which steps")
    window.add_argument(
        "--step-on",
        default="auto",
        metavar="WHAT",
        help="what begins a step: optimizer, dataloader, forward, time, or module.path:function (default: found)",
    )
    window.add_argument("--steps", type=int, metavar="N", help="steps to record (default: 5, more if they are short)")
    window.add_argument(
        "--skip", type=int, metavar="N", help="steps to leave out first (default: until they are steady)"
    )
    window.add_argument("--max-events", type=int, default=1_000_000, metavar="N", help="stop the window at N events")
    window.add_argument(
        "--max-mb", type=float, default=200.0, metavar="MB", help="stop it at MB of JSON (default: 200)"
    )
    extra = parser.add_argument_group("what is recorded")
    extra.add_argument(
        "--stacks",
        nargs="?",
        const="always",
        default="window",
        choices=["always", "window", "never"],
        help="Python stacks in the timing window too, where they slow it down (default: in a second short window)",
    )
    extra.add_argument("--memory", action="store_true", help="record allocations")
    extra.add_argument("--sync-events", action="store_true", help="record what waits for which event (CUDA)")
    output = parser.add_argument_group("output")
    output.add_argument("-o", "--output", default="gapless-traces", metavar="DIR", help="folder for the traces")
    output.add_argument("--no-report", action="store_true", help="only record")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.add_argument("script", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Become the script: this process is replaced by one that runs it under the recorder."""
    from importlib.util import find_spec

    from gapless.runtime.recorder.options import Options, checked

    target = ["-m", *args.module] if args.module else args.script[args.script[:1] == ["--"] :]
    if not target or target == ["-m"]:
        raise UsageError("nothing to run; type `gapless run train.py` or `gapless run -m package.module`")
    if target[0].startswith("-") and target[0] != "-m":
        raise UsageError(f"{target[0]} is not a flag of `gapless run`; flags of the script go after its name")
    if find_spec("torch") is None:
        raise UsageError("torch is not installed for this Python, so nothing can be recorded; pip install torch")
    options = checked(
        Options(
            folder=args.output,
            steps=args.steps,
            skip=args.skip,
            max_events=args.max_events,
            max_mb=args.max_mb,
            stacks=args.stacks,
            memory=args.memory,
            sync_events=args.sync_events,
            step_on=args.step_on,
            report=not args.no_report,
        )
    )
    command = [sys.executable, *_interpreter_flags(), "-m", "gapless.runtime.recorder", options.to_json(), *target]
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name != "nt":
        os.execv(sys.executable, command)
    return subprocess.call(command)


def _interpreter_flags(words: Sequence[str] | None = None) -> list[str]:
    """The flags this Python was started with, such as -u, -O or -X: the script must see the same."""
    rest = list(sys.orig_argv[1:] if words is None else words)
    flags: list[str] = []
    while rest and rest[0].startswith("-") and rest[0] not in ("-m", "-c", "-"):
        flags.append(rest.pop(0))
        if flags[-1] in ("-X", "-W") and rest:
            flags.append(rest.pop(0))
    return flags
