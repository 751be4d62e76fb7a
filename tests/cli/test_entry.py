"""The frame of the command line: help at once, one-line errors, exit codes, no noise on a closed pipe."""

from __future__ import annotations

import importlib
import signal
import subprocess
import sys
import time

import pytest

from gapless import __version__
from gapless.cli import entry, registry
from gapless.model.errors import CannotJudgeError, GateBreachedError

from .harness import environment, gapless, one_line, python

HEAVY = ("polars", "rich", "msgspec", "numpy", "torch", "isal", "hypothesis")


@pytest.mark.parametrize(
    "words", [["--help"], ["report", "--help"], ["query", "--tables"], ["--version"], ["nonsense"]]
)
def test_light_commands_load_nothing_heavy(words: list[str]) -> None:
    code = (
        "import sys, io; from gapless.cli import main\n"
        "sys.stdout = io.StringIO()\n"
        f"try: main({words!r})\nexcept SystemExit: pass\n"
        f"sys.__stdout__.write(','.join(m for m in {HEAVY!r} if m in sys.modules))"
    )
    assert python(code) == ""


def test_importing_the_package_loads_nothing() -> None:
    heavy = (*HEAVY, "argparse", "gapless.api", "gapless.model.report")
    assert python(f"import sys, gapless; print([m for m in {heavy!r} if m in sys.modules])") == "[]\n"


def test_help_shows_every_verb_and_version() -> None:
    shown = gapless("--help")
    assert shown.returncode == 0
    for verb in registry.VERBS:
        assert f"    {verb}" in shown.stdout
    assert gapless("--version").stdout == f"gapless {__version__}\n"
    assert gapless().stdout == shown.stdout


@pytest.mark.parametrize("verb", registry.VERBS)
def test_every_verb_has_the_registry_shape(verb: str) -> None:
    module = importlib.import_module(f"gapless.cli.{verb}")
    assert verb == module.NAME
    assert registry.VERBS[verb] == module.HELP
    assert module.__doc__.split("?")[0].startswith("What does `gapless")
    shown = gapless(verb, "--help")
    assert (shown.returncode, shown.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["repot"], "did you mean `gapless report`?"),
        (["trace.json.gz"], "type `gapless report` before the file"),
        (["zzz"], "the verbs are report"),
        (["report"], "arguments are required: TRACE (see `gapless report --help`)"),
        (["report", "x", "--step", "two"], "invalid int value: 'two'"),
        (
            ["report", "x", "--fromat", "json"],
            "'--fromat' is not an option of `gapless report`; did you mean --format?",
        ),
        (["report", "x", "--zzz"], "see `gapless report --help`"),
        (["query", "x", "select 1", "more"], "'more' is a word too many for `gapless query`"),
        (["--zzz"], "'--zzz' is not an option of `gapless`"),
        (["completions"], "{bash,fish,zsh}"),
        (["report", "no/such/file.json"], "no/such/file.json: no such file"),
        (["report", "x", "--step-marker", "("], "not a regular expression"),
        (["report", "a\x1b]31m\nb"], "a\\x1b]31m\\nb: no such file"),
    ],
)
def test_a_mistake_gets_one_line(words: list[str], says: str) -> None:
    line = one_line(gapless(*words))
    assert says in line
    assert "\x1b" not in line


def test_a_traceback_only_on_demand() -> None:
    shown = gapless("report", "no/such/file.json", "--debug")
    assert shown.returncode == 2
    assert "Traceback" in shown.stderr
    assert shown.stderr.splitlines()[-1].startswith("gapless: no/such/file.json")
    assert "Traceback" in gapless("--debug", "report", "no/such/file.json").stderr


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (GateBreachedError("slower by 7 %"), 1, "gapless: slower by 7 %"),
        (CannotJudgeError("no steps"), 2, "gapless: no steps"),
        (KeyboardInterrupt(), 130, ""),
        (MemoryError(), 2, "gapless: out of memory"),
        (PermissionError(13, "Permission denied", "x.json"), 2, "gapless: x.json: Permission denied"),
        (ZeroDivisionError("a\nb"), 2, "gapless: internal error: ZeroDivisionError: a\\nb; run again with --debug"),
    ],
)
def test_exit_codes(
    error: BaseException, code: int, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: object) -> int:
        raise error

    monkeypatch.setattr("gapless.cli.completions.run", run)
    assert entry.main(["completions", "bash"]) == code
    assert capsys.readouterr().err.startswith(says)


def test_a_verb_must_return_an_exit_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("gapless.cli.completions.run", lambda _: None)
    assert entry.main(["completions", "bash"]) == 2
    assert "returned None" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and signals of POSIX")
def test_a_closed_pipe_is_no_error() -> None:
    code = (
        "from gapless.cli import output, completions, main\n"
        "completions.run = lambda a: output.write('x' * 10**6) or 0\n"
    )
    code += "import sys; sys.exit(main(['completions', 'bash']))"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and signals of POSIX")
def test_control_c_ends_quietly() -> None:
    code = "from gapless.cli import completions, main\nimport sys, time\n"
    code += "completions.run = lambda a: print('go', flush=True) or time.sleep(60)\n"
    code += "sys.exit(main(['completions', 'bash']))"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert process.stdout.readline() == b"go\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert process.stderr.read() == b""


def test_an_ascii_terminal_gets_ascii() -> None:
    code = "from gapless.cli import output; output.write('█ 5 µs · x…\\n')"
    assert python(code, PYTHONIOENCODING="ascii") == "# 5 us - x~\n"
