"""How does a command line become an exit code? 0 done, 1 a gate was breached, 2 could not run or judge, 130 Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from gapless.cli import registry
from gapless.model.errors import GaplessError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; errors are one line on stderr, a traceback only with `--debug`."""
    words = list(sys.argv[1:] if argv is None else argv)
    code = _guarded(words)
    if argv is None and registry.asked_verb(words) == "report" and sys.getprofile() is None:
        _leave(code)
    return code


def _leave(code: int) -> NoReturn:
    """End the process at once: Python would first free a report's tables one by one, a tenth of the whole time."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _guarded(words: list[str]) -> int:
    try:
        return _flushed(_run(words))
    except GaplessError as error:
        return _failed(words, str(error), error.exit_code)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _silence_stdout()
        return 0
    except MemoryError:
        return _failed(words, "out of memory: the trace is too large for this machine; record fewer steps", 2)
    except OSError as error:
        what = f"{error.filename}: " if error.filename else ""
        return _failed(words, f"{what}{error.strerror or error}", 2)
    except Exception as error:
        kind = type(error).__name__
        return _failed(words, f"internal error: {kind}: {error}; run again with --debug and report what it prints", 2)


def _run(words: list[str]) -> int:
    asked = registry.asked_verb(words)
    if asked is not None and asked not in registry.VERBS:
        raise registry.unknown(asked)
    parser = registry.build(words)
    args, unknown = parser.parse_known_args(words)
    if unknown:
        raise registry.unknown_flag(unknown[0], parser)
    if args.verb is None:
        parser.print_help()
        return 0
    result = registry.load(args.verb).run(args)
    if not isinstance(result, int):
        raise TypeError(f"the verb {args.verb} returned {result!r} instead of an exit code")
    return result


def _flushed(code: int) -> int:
    sys.stdout.flush()
    return code


def _failed(words: list[str], message: str, code: int) -> int:
    if "--debug" in words:
        import traceback

        traceback.print_exc()
    from gapless.render import safe

    line = f"gapless: {safe.sentence(message)}"
    try:
        print(line, file=sys.stderr)
    except UnicodeEncodeError:
        print(safe.ascii_only(line), file=sys.stderr)
    return code


def _silence_stdout() -> None:
    """Let the interpreter's last flush of a closed pipe go nowhere instead of complaining."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
