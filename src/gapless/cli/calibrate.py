"""What does `gapless calibrate` do? It measures what the profiler costs on this machine and keeps the result."""

from __future__ import annotations

import argparse

from gapless.model.errors import CannotJudgeError, UsageError

NAME = "calibrate"
HELP = "measure what recording costs on this machine, so that predictions subtract the right amount"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's flags."""
    parser.add_argument("--format", choices=["text", "json"], default="text", help="how the result is printed")
    parser.add_argument("--seconds", type=float, default=8.0, metavar="S", help="time to spend (default: 8)")


def run(args: argparse.Namespace) -> int:
    """Measure, store and print."""
    import json
    import os
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise UsageError("torch is not installed for this Python, so nothing can be measured; pip install torch")
    if args.seconds <= 0:
        raise UsageError(f"--seconds {args.seconds:g}: no time to measure in; give 5 or more")

    from gapless.model import calibration
    from gapless.runtime.recorder.calibrate import measure

    try:
        found = measure(args.seconds)
    except RuntimeError as error:
        raise CannotJudgeError(f"the profiler could not run here ({error}); is another tool using it?") from error
    path = calibration.store(calibration.folder(os.environ), found)
    if args.format == "json":
        print(json.dumps(found.to_json(), indent=1))
        return 0
    print(f"What recording adds on {found.machine}, torch {found.torch} (spread of the rounds {found.spread:.0%}):")
    rows = [
        ("an op", found.op_ns, "with shapes", found.op_shapes_ns),
        ("a launch, beyond its op", found.call_ns, "", 0.0),
        ("a synchronisation", found.sync_ns, "with stacks", found.sync_stack_ns),
        ("a node of a CUDA graph", found.graph_node_ns, "", 0.0),
        ("a Python call, with stacks", found.frame_ns, "", 0.0),
    ]
    on_gpu = "launch" in found.loops
    for what, cost, more, extra in rows:
        if on_gpu or what in ("an op", "a Python call, with stacks"):
            tail = f"   + {extra / 1e3:.2f} us {more}" if more else ""
            print(f"  {what:<28} {cost / 1e3:7.2f} us{tail}")
    print(f"Stored in {path}; reports on traces of this GPU use it, `gapless run` writes it into them.")
    return 0
