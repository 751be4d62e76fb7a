"""Files are complete or absent; colour only where it helps; progress only on a terminal."""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import pytest

from gapless.cli import formats, output, progress
from gapless.model.errors import UsageError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("asked", "tty", "env", "expected"),
    [
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("auto", True, {"NO_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),
        ("auto", True, {"TERM": "dumb"}, False),
        ("always", False, {"NO_COLOR": "1"}, True),
        ("never", True, {}, False),
    ],
)
def test_colour(asked: str, tty: bool, env: dict[str, str], expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    stream = Terminal() if tty else io.StringIO()
    assert output.color(argparse.Namespace(color=asked), stream) is expected


def test_a_file_is_replaced_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    output.write("new", str(target))
    assert target.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]
    caught = capsys.readouterr()
    assert (caught.out, caught.err) == ("", f"wrote {target}\n")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        output.write("new", str(target))
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        output.write("x", str(tmp_path / "no" / "out.txt"))


def test_binary_stays_off_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", Terminal())
    with pytest.raises(UsageError, match="-o FILE"):
        output.write_bytes(b"PAR1")


@pytest.mark.parametrize(
    ("asked", "target", "form"),
    [
        (None, None, "text"),
        (None, "-", "text"),
        (None, "r.json", "json"),
        (None, "r.MD", "markdown"),
        ("json", "r.txt", "json"),
        (None, "r.txt", "text"),
    ],
)
def test_the_name_of_the_file_means_a_format(asked: str | None, target: str | None, form: str) -> None:
    assert formats.choose(asked, target) == form


def test_a_name_that_means_nothing_is_said() -> None:
    with pytest.raises(UsageError, match=r"'\.xlsx'"):
        formats.choose(None, "r.xlsx")


@pytest.mark.parametrize(("tty", "elapsed", "seen"), [(True, 0.4, False), (False, 9.0, False)])
def test_no_bar_for_a_blink_or_a_pipe(tty: bool, elapsed: float, seen: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal() if tty else io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    shown = progress.ReadProgress("x")
    shown._started -= elapsed
    shown(1, 2)
    assert bool(stream.getvalue()) is seen


def test_a_long_read_on_a_terminal_shows_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    with progress.ReadProgress("big\x1b[31m.json") as shown:
        shown._started -= 1
        shown(1_000_000, 4_000_000)
    text = stream.getvalue()
    assert "4.0 MB" in text
    assert "big\\x1b[31m.json" in text
