"""How is an unmodified script watched? In this process: pass 1 with the watch, or pass 2 under the profiler.

`python -m gapless.runtime.syncs.script OPTIONS-JSON (script.py | -m module) ARGS...`; the result goes to the file that
the options name. Output, exit code and exceptions are the script's own.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from gapless.runtime.syncs.gate import Action
from gapless.runtime.syncs.steps import OptimizerSteps
from gapless.runtime.syncs.trace_pass import TracePass, TraceRow
from gapless.runtime.syncs.watch import SyncWatch


@dataclass(frozen=True, slots=True)
class ScriptOptions:
    """What the command line asks of the process that runs the script."""

    result: str
    mode: Literal["watch", "trace"] = "watch"
    allow: list[str] = field(default_factory=list)
    budget: int | None = None
    on: Action = "report"
    warmup: int = 2
    layers: str = "ABCD"
    races: bool = True
    deps: bool = False
    top: int = 10
    trace_steps: int = 3


def main(arguments: Sequence[str]) -> None:
    """Runs the script as asked; SystemExit and exceptions of the script pass through."""
    options = ScriptOptions(**json.loads(arguments[0]))
    start = _target(list(arguments[1:]))
    if options.mode == "trace":
        _traced(options, start)
    else:
        _watched(options, start)


def _watched(options: ScriptOptions, start: Callable[[], object]) -> None:
    # The environment's switch is for watches in the script; this one was asked for on the command line.
    watch = SyncWatch(
        allow=options.allow, budget=options.budget, on=options.on, warmup=options.warmup, layers=options.layers,
        races=options.races, deps=options.deps, environ={},
    )  # fmt: skip
    try:
        with watch:
            start()
    finally:
        report = watch.report()
        _write(options, {"text": report.text(options.top), "report": report.to_dict()})


def _traced(options: ScriptOptions, start: Callable[[], object]) -> None:
    window = TracePass()
    found: list[TraceRow] = []
    counted = 0

    def on_step() -> None:
        nonlocal counted
        counted += 1
        if counted == options.warmup:
            window.start()
        elif counted == options.warmup + options.trace_steps and window.running:
            found.extend(window.stop())

    # A program that never steps is recorded whole.
    whole = options.trace_steps == 0
    steps = OptimizerSteps(on_step)
    if whole or options.warmup == 0:
        window.start()
    if not whole:
        steps.start()
    try:
        start()
    finally:
        steps.stop()
        if window.running:
            found.extend(window.stop())
        recorded = min(max(counted - options.warmup, 0), options.trace_steps)
        what = "the whole run" if whole else f"{recorded} steps"
        lines = [f"profiler, second run ({what}):", *(f"    {row.text()}" for row in found)]
        if not found:
            lines.append("    no waiting call and no pageable copy")
        _write(options, {"text": "\n".join(lines), "rows": [asdict(row) for row in found], "steps": recorded})


def _target(words: list[str]) -> Callable[[], object]:
    if words[:1] == ["-m"]:
        sys.argv[:] = words[1:]
        sys.path[0] = str(Path.cwd())
        return lambda: runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    sys.argv[:] = words
    path = Path(words[0])
    sys.path[0] = str(path.resolve() if path.is_dir() else path.resolve().parent)
    return lambda: runpy.run_path(words[0], run_name="__main__")


def _write(options: ScriptOptions, data: dict[str, object]) -> None:
    with suppress(OSError):
        Path(options.result).write_text(json.dumps(data), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
