"""How is a script or module run unmodified under the recorder, so that nobody can tell from outside?

This process is the script's: its `__main__`, `sys.argv`, `sys.path[0]`, standard output, exit code, signals and
exceptions are what `python script.py` gives. Our own lines go to standard error.
"""

from __future__ import annotations

import importlib.util
import io
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import TYPE_CHECKING

from gapless.runtime.recorder import names
from gapless.runtime.recorder.options import Options
from gapless.runtime.recorder.torchload import WhenTorchLoads

if TYPE_CHECKING:
    from gapless.runtime.recorder.recorder import Recorder

_HERE = str(Path(__file__).resolve().parent)


class _Run:
    """One script under one recorder."""

    def __init__(self, options: Options, base: str) -> None:
        self.options = options
        self.base = base
        self.recorder: Recorder | None = None
        self.began = self.failed = False
        self._pid = os.getpid()
        self._rank = names.rank(os.environ)

    def say(self, line: str) -> None:
        """A line about progress: one rank speaks for all."""
        if self._rank == 0:
            self.problem(line)

    def problem(self, line: str) -> None:
        """A line about trouble: each rank speaks for itself."""
        prefix = "gapless" if names.world_size(os.environ) == 1 else f"gapless [rank {self._rank}]"
        try:
            sys.stderr.write(f"{prefix}: {line}\n")
            sys.stderr.flush()
        except (OSError, ValueError, AttributeError):
            return

    def torch_loaded(self) -> None:
        """torch is there: hook it."""
        try:
            from gapless.runtime.recorder.recorder import Recorder

            self.recorder = Recorder(self.options, base=self.base, say=self.say, problem=self.problem)
            self.recorder.start()
        except Exception as error:
            self.problem(f"no recording, the script runs on: {type(error).__name__}: {' '.join(str(error).split())}")

    def ended(self, reason: str) -> None:
        """Close the recording and say what it left."""
        if os.getpid() != self._pid:
            return
        if self.recorder is None and not self.began:
            return
        if self.recorder is None:
            self.say("the script never imported torch in this process; nothing was recorded")
            return
        self.recorder.stop(reason)
        paths = self.recorder.outcome.paths()
        if not paths:
            self.problem(f"no trace was written: {self.recorder.why_empty()}")
            return
        for path in paths:
            self.say(f"wrote {path}")
        self._report(paths[0])
        self.say(f"next: gapless report {paths[0]}   |   gapless diff BEFORE AFTER   |   gapless calibrate")

    def _report(self, path: Path) -> None:
        if not self.options.report or self._rank != 0 or self.failed:
            return
        sys.stdout.flush()
        try:
            error_stream: int | None = sys.stderr.fileno()
        except (OSError, ValueError, AttributeError, io.UnsupportedOperation):
            error_stream = None
        try:
            subprocess.run([sys.executable, "-m", "gapless", "report", str(path)], stdout=error_stream, check=False)
        except (OSError, subprocess.SubprocessError) as error:
            self.problem(f"the report could not be printed: {error}")


def main(arguments: Sequence[str]) -> int:
    """Run `OPTIONS-JSON (script | -m module) ARGS...` and return 0, or let the script's own end pass through."""
    options, (target, *rest) = Options.from_json(arguments[0]), arguments[1:]
    is_module = target == "-m"
    if is_module:
        target, *rest = rest
    run = _Run(options, names.stem(target.rpartition(".")[2] if is_module else target))
    waiting = WhenTorchLoads(run.torch_loaded)
    _hide_our_frames()
    waiting.install()
    reason = "the script ended"
    try:
        code, module = _load_module(target, rest) if is_module else _load_script(target, rest)
        sys.modules["__main__"] = module
        run.began = True
        exec(code, module.__dict__)
    except SystemExit as error:
        run.failed = error.code not in (None, 0)
        raise
    except BaseException as error:
        run.failed, reason = True, f"the script raised {type(error).__name__}"
        raise
    finally:
        waiting.remove()
        run.ended(reason)
    return 0


def _load_script(target: str, rest: list[str]) -> tuple[CodeType, ModuleType]:
    """The script's code and its `__main__`, with `sys.argv` and `sys.path[0]` as Python sets them."""
    path = Path(target)
    if path.is_dir():
        path = path / "__main__.py"
    sys.argv[:] = [target, *rest]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = str(Path(target).resolve()) if Path(target).is_dir() else str(path.resolve().parent)
    try:
        source = path.read_bytes()
    except OSError as error:
        sys.stderr.write(f"gapless: can't open file {target!r}: {error.strerror}; give the script's path\n")
        raise SystemExit(2) from None
    module = ModuleType("__main__")
    # Python itself runs a script by its absolute path (since 3.9): tracebacks and `__file__` show it.
    file = str(path.absolute())
    module.__dict__.update(__file__=file, __builtins__=__builtins__)
    module.__spec__ = None
    return compile(source, file, "exec", dont_inherit=True), module


def _load_module(target: str, rest: list[str]) -> tuple[CodeType, ModuleType]:
    """The same for `-m target`."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = str(Path.cwd())
    sys.argv[:] = ["-m", *rest]
    spec = _find(target)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = _find(f"{target}.__main__")
    get_code: Callable[[str], CodeType | None] | None = getattr(spec.loader, "get_code", None) if spec else None
    code = get_code(spec.name) if spec is not None and get_code is not None else None
    if spec is None or code is None:
        sys.stderr.write(f"gapless: no module named {target} can be run from here; check the name and the folder\n")
        raise SystemExit(2)
    sys.argv[0] = spec.origin or target
    module = ModuleType("__main__")
    module.__dict__.update(
        __file__=spec.origin,
        __cached__=spec.cached,
        __loader__=spec.loader,
        __package__=spec.parent,
        __builtins__=__builtins__,
    )
    module.__spec__ = spec
    return code, module


def _find(name: str) -> importlib.machinery.ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None


def _hide_our_frames() -> None:
    """Let the interpreter's own traceback of an uncaught exception begin at the script's first frame."""
    shown = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        first = trace
        while first is not None and not _is_script(first):
            first = first.tb_next
        shown(kind, error.with_traceback(first), first)

    def _is_script(entry: TracebackType) -> bool:
        file = entry.tb_frame.f_code.co_filename
        return not file.startswith((_HERE, "<frozen runpy"))

    sys.excepthook = hook
