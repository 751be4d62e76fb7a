"""What does `gapless syncs` do? It runs an unmodified script and says which lines wait for the GPU, and why."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from gapless.cli import output
from gapless.model.errors import GateBreachedError, UsageError

NAME = "syncs"
HELP = "run a script and say which of its lines wait for the GPU, how long, why, and what to write instead"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's flags; everything after the script's name is the script's own."""
    parser.usage = "gapless syncs [flags] (script.py | -m module) [arguments of the script]"
    what = parser.add_argument_group("what is watched")
    what.add_argument("--warmup", type=int, default=2, metavar="N", help="steps to leave out first (default: 2)")
    what.add_argument("--layers", default="ABCD", help="A torch functions, B ops, C trace hooks, D debug mode (ABCD)")
    what.add_argument("--deps", action="store_true", help="lines of installed packages count as the user's")
    what.add_argument("--no-races", action="store_true", help="do not look for reads and writes that race with copies")
    what.add_argument("--trace", action="store_true", help="run the script a second time under the profiler")
    what.add_argument("--trace-steps", type=int, default=3, metavar="N", help="steps of that second run (default: 3)")
    gate = parser.add_argument_group("what is allowed")
    gate.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="WHERE",
        help="train.py:88, train.py, package.module.*, kind:stream or fix:readback; may be repeated",
    )
    gate.add_argument("--budget", type=int, metavar="N", help="exit with 1 if a step has more than N hidden waits")
    gate.add_argument(
        "--on", choices=["report", "warn", "raise"], default="report", help="what happens over the budget, and when"
    )
    shown = parser.add_argument_group("output")
    shown.add_argument("--top", type=int, default=10, metavar="N", help="places to show (default: 10)")
    shown.add_argument("-o", "--output", metavar="FILE", help="write the report as JSON to FILE")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.add_argument("script", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Watch the script in a process of its own, print what was seen, and return the script's exit code."""
    from importlib.util import find_spec

    target = ["-m", *args.module] if args.module else args.script[args.script[:1] == ["--"] :]
    if not target or target == ["-m"]:
        raise UsageError("nothing to run; type `gapless syncs train.py` or `gapless syncs -m package.module`")
    if target[0].startswith("-") and target[0] != "-m":
        raise UsageError(f"{target[0]} is not a flag of `gapless syncs`; flags of the script go after its name")
    if target[0] != "-m" and not Path(target[0]).exists():
        raise UsageError(f"{target[0]}: no such file, so there is nothing to watch; give the script's path")
    if find_spec("torch") is None:
        raise UsageError("torch is not installed for this Python, so nothing can be watched; pip install torch")
    with tempfile.TemporaryDirectory(prefix="gapless-syncs-") as folder:
        return _passes(args, target, Path(folder))


def _passes(args: argparse.Namespace, target: list[str], folder: Path) -> int:
    # The fields of runtime.syncs.script.ScriptOptions; importing it would load torch here, only to pass them on.
    options = {
        "result": str(folder / "watch.json"),
        "allow": args.allow,
        "budget": args.budget,
        "on": args.on,
        "warmup": args.warmup,
        "layers": args.layers,
        "races": not args.no_races,
        "deps": args.deps,
        "top": args.top,
    }
    code, watched = _run(options, target)
    if watched is None:
        if code == 0:
            output.say("the script ended this process itself, so what was seen is lost")
        return code
    _show(watched["text"])
    if args.trace:
        stepped = watched["report"]["step_source"] != "no step seen: the whole watch is one"
        trace_steps = args.trace_steps if stepped else 0
        second = {
            "result": str(folder / "trace.json"),
            "mode": "trace",
            "warmup": args.warmup,
            "trace_steps": trace_steps,
        }
        _, traced = _run(second, target)
        if traced is not None:
            _show(traced["text"])
            watched["report"]["trace"] = traced["rows"]
    if args.output:
        output.write(json.dumps(watched["report"], indent=1) + "\n", args.output)
    over = watched["report"]["over_budget"]
    if code == 0 and over:
        raise GateBreachedError(
            f"{len(over)} steps have more hidden waits than the budget of {watched['report']['budget']} allows; "
            "fix the places above or allow them with --allow"
        )
    return code


def _run(options: dict[str, Any], target: list[str]) -> tuple[int, dict[str, Any] | None]:
    command = [sys.executable, "-m", "gapless.runtime.syncs.script", json.dumps(options), *target]
    sys.stdout.flush()
    code = subprocess.run(command, check=False).returncode
    result = Path(options["result"])
    return (code if code >= 0 else 128 - code), json.loads(result.read_text("utf-8")) if result.exists() else None


def _show(text: str) -> None:
    """On stderr: the standard output is the script's."""
    from gapless.render import safe

    try:
        print(f"\n{text}", file=sys.stderr)
    except UnicodeEncodeError:
        print(safe.ascii_only(f"\n{text}"), file=sys.stderr)
