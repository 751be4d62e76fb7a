"""What must hold for any bytes at all: a report whose accounts are exact, every table and every rendering, or one clear
line, in time."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import gapless
from gapless.analyses.timeline import timeline
from gapless.cli.formats import FORMATS, Look
from gapless.model.errors import GaplessError
from gapless.render import json_
from gapless.render.perfetto import export

LIMIT_S = 60
"""Cases take well below a second; what is not done by then hangs."""
SHORT, LONG = Look(), Look(full=True, width=200)
SHOWN = (("text", SHORT), ("text", LONG), ("markdown", SHORT), ("markdown", LONG), ("json", SHORT), ("html", SHORT))


class HangsError(Exception):
    """A case did not end in time."""


@contextmanager
def in_time(seconds: int = LIMIT_S) -> Iterator[None]:
    """Raise HangsError where the body takes longer."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise HangsError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def printable(text: str) -> bool:
    return all(c.isprintable() or c == "\n" for c in text)


def check(data: bytes) -> str:
    """`report` or `line`: what the bytes gave. Anything else is a failure."""
    with in_time():
        try:
            view = gapless.report(gapless.load(io.BytesIO(data)))
        except GaplessError as error:
            assert printable(str(error))
            assert "\n" not in str(error)
            assert 20 < len(str(error)) < 1000
            return "line"
        whole = view.to_dict()
        for account in [*whole["accounting"], *whole["host"]]:
            assert sum(part["ns"] for part in account["parts"]) == account["wall_ns"]
            assert all(part["ns"] > 0 for part in account["parts"])
        for name, look in SHOWN:
            shown = FORMATS[name].write([view], look)
            assert printable(shown), name
            shown.encode()
            if name == "json":
                json.loads(shown, parse_constant=_no_constant)
        assert printable(str(view))
        view._repr_html_().encode()
        for frame in view.trace.frames_by_name().values():
            frame.collect()
        timed = timeline(view.trace.study(), view.report.findings, full=True)
        json.loads("".join(export(timed, view.report)), parse_constant=_no_constant)
    return "report"


def check_pair(before: bytes, after: bytes) -> str:
    """`diff` or `line`: what comparing the two gave."""
    with in_time():
        try:
            view = gapless.diff(gapless.load(io.BytesIO(before)), gapless.load(io.BytesIO(after)))
        except GaplessError as error:
            assert printable(str(error))
            assert "\n" not in str(error)
            return "line"
        json.loads(json_.dumps(view.to_dict()), parse_constant=_no_constant)
        assert printable(str(view))
        assert printable(view._repr_html_())
    return "diff"


def _no_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")
