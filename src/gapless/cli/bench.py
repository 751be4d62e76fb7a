"""What does `gapless bench` do? It times functions or statements honestly, or compares several of them."""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gapless.model.errors import CannotJudgeError, GaplessError, GateBreachedError, UsageError

if TYPE_CHECKING:
    from gapless.runtime.timing import Comparison, Measurement, Options

NAME = "bench"
HELP = "time a function or statement on CPU and GPU, or compare several"

_EXAMPLES = """\
gapless bench train:step                             time step() of train.py
gapless bench -s "import torch; x = torch.randn(4096, 4096, device='cuda')" "x @ x"
gapless bench ops:old ops:new                        compare, interleaved; the first is the baseline"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's flags."""
    parser.add_argument("target", nargs="+", metavar="TARGET", help="module:function, or with -s a statement")
    parser.add_argument("-s", "--setup", action="append", metavar="CODE", help="run first; TARGET is then a statement")
    group = parser.add_argument_group("measurement")
    group.add_argument("--l2", choices=["both", "warm", "cold"], default="both", help="state of the L2 cache")
    group.add_argument("--budget", type=float, default=2.0, metavar="S", help="seconds for each quantity (default: 2)")
    group.add_argument("--headline", default="auto", metavar="ID", help="quantity to quote, such as t_gpu or t_lat")
    group.add_argument("--no-graph", action="store_true", help="do not try a CUDA graph")
    group.add_argument("--no-kernels", action="store_true", help="no profiler pass at the end")
    group.add_argument("--grad-to-none", action="store_true", help="clear gradients before each call")
    group.add_argument("--max-us", type=float, metavar="US", help="exit code 1 if the headline is above this")
    output = parser.add_argument_group("output")
    output.add_argument("--format", choices=["text", "json"], default="text", help="json keeps every sample")
    output.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of the terminal")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLES


def run(args: argparse.Namespace) -> int:
    """Time one target, or compare several."""
    if args.max_us is not None and len(args.target) > 1:
        raise UsageError("--max-us is for one target, several are compared with each other; drop the flag or a target")
    try:
        from gapless.runtime.timing import Options
    except ImportError as error:
        why = "torch is not installed for this Python" if error.name == "torch" else f"torch cannot be used ({error})"
        raise UsageError(f"{why}, so nothing can be timed; pip install torch") from error
    options = Options(
        l2=args.l2,
        headline=args.headline,
        budget_s=args.budget,
        graph=not args.no_graph,
        kernels=not args.no_kernels,
        grad_to_none=args.grad_to_none,
        name=args.target[0],
    )
    sys.path.insert(0, str(Path.cwd()))
    functions = statements(args.setup, args.target) if args.setup else {t: imported(t) for t in args.target}
    result = _timed(functions, options)
    from gapless.cli import output

    output.write(result.to_json() + "\n" if args.format == "json" else f"{result}\n", args.output)
    if args.max_us is not None:
        _gate(result, args.max_us)
    return 0


def imported(target: str) -> Callable[[], object]:
    """The function that `module:function` names; it must be callable without arguments."""
    module_name, colon, path = target.partition(":")
    if not colon or not module_name or not path:
        raise UsageError(f"{target!r} is not module:function; write one, or give -s SETUP and a statement")
    try:
        found: object = importlib.import_module(module_name)
    except ImportError as error:
        raise UsageError(
            f"{module_name}: cannot be imported ({error}); run it from the folder that holds that module"
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise UsageError(f"{module_name} has no {path!r}; check the name after the colon")
        found = getattr(found, part)
    if not callable(found):
        raise UsageError(f"{target} is {type(found).__name__}, which cannot be called; name a function")
    try:
        inspect.signature(found).bind()
    except TypeError as error:
        raise UsageError(
            f"{target} cannot be called without arguments ({error}); wrap it: gapless bench -s 'from {module_name} "
            f"import {path.split('.')[0]}' '{path}(...)'"
        ) from error
    except ValueError:
        return found  # builtins without a signature: calling will tell
    return found


def statements(setup: list[str], code: list[str]) -> dict[str, Callable[[], object]]:
    """A function for each statement, all sharing the names that the setup made."""
    names: dict[str, object] = {"__name__": "__bench__"}
    for index, text in enumerate(setup):
        tree = _parsed(text, f"setup {index + 1}")
        try:
            exec(compile(tree, f"<setup {index + 1}>", "exec"), names)
        except Exception as error:
            raise UsageError(
                f"setup {index + 1} raised {type(error).__name__}: {error}; it must run by itself"
            ) from error
    return {text: _function(text, names) for text in code}


def _function(text: str, names: dict[str, object]) -> Callable[[], object]:
    body = _parsed(text, "the statement").body
    if not body:
        raise UsageError("the statement is empty; give code such as 'x @ x'")
    last = body[-1]
    if isinstance(last, ast.Expr):
        # The value is returned, so that results can be checked from call to call.
        body[-1] = ast.copy_location(ast.Return(last.value), last)
    shell = ast.parse("def stmt(): pass")
    definition = shell.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.body = body
    scope: dict[str, Callable[[], object]] = {}
    exec(compile(ast.fix_missing_locations(shell), "<statement>", "exec"), names, scope)
    return scope["stmt"]


def _parsed(text: str, what: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{what} is not Python ({error}): {text[:60]!r}; quote it for the shell") from error


def _timed(functions: dict[str, Callable[[], object]], options: Options) -> Measurement | Comparison:
    from gapless.runtime.timing import compare, measure

    try:
        if len(functions) == 1:
            return measure(next(iter(functions.values())), options=options)
        return compare(functions, options=options)
    except GaplessError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        if frames and Path(__file__).parent.parent in Path(frames[-1].filename).parents:
            raise
        said = (str(error).splitlines() or [""])[0]
        raise UsageError(
            f"{', '.join(functions)} raised {type(error).__name__}: {said}; it must run before it can be timed"
        ) from error


def _gate(result: Measurement | Comparison, max_us: float) -> None:
    us = getattr(result, "us", None)
    if us is None:
        raise CannotJudgeError("the headline is unknown, so --max-us cannot be judged; see the reasons above")
    if us > max_us:
        raise GateBreachedError(f"{us:.4g} us is above --max-us {max_us:g}")
