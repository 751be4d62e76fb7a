"""Many of one thing take no more steps than so many: twice the threads, steps or overhead rows, about twice the work.

Counted in passes over lines of time (`split_by`), which every analysis of hosts and devices is made of; a product of
threads and threads, or of rows and threads, shows as four times as many.
"""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

import gapless
from gapless.tables import segments

Event = dict[str, Any]


def host(cat: str, name: str, tid: int, at: int, dur: int, **args: int) -> Event:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": at, "dur": dur, "args": args}


def kernel(number: int, at: int, stream: int = 7) -> Event:
    args = {"device": 0, "stream": stream, "correlation": number}
    return {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": stream, "ts": at, "dur": 5, "args": args}


def launch(number: int, at: int) -> Event:
    return host("cuda_runtime", "cudaLaunchKernel", 1, at, 2, correlation=number)


SHAPES = {
    "autograd threads": lambda n: [host("cpu_op", "autograd::engine::evaluate_function: X", i, i, 3) for i in range(n)],
    "threads": lambda n: [host("cpu_op", "aten::mul", i, i, 3) for i in range(n)],
    "overheads": lambda n: [host("cpu_op", "aten::mul", i, 10 * i, 8) for i in range(n)]
    + [host("overhead", "Command Buffer Full", -1, 10 * i, 5) for i in range(n)],
    "streams": lambda n: [e for i in range(1, n) for e in (launch(i, 10 * i), kernel(i, 10 * i + 4, i))],
    "steps": lambda n: [e for i in range(1, n) for e in (host("user_annotation", f"ProfilerStep#{i}", 1, 10 * i, 10),
                                                         launch(i, 10 * i), kernel(i, 10 * i + 4))],
}  # fmt: skip


def passes(shape: str, count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often a line is passed over while such a file is reported on."""
    made, original = [0], segments.split_by

    def counting(*args: Any) -> Any:
        made[0] += 1
        return original(*args)

    with monkeypatch.context() as patch:
        patch.setattr(segments, "split_by", counting)
        text = json.dumps({"schemaVersion": 1, "traceEvents": SHAPES[shape](count)}).encode()
        assert gapless.report(gapless.load(io.BytesIO(text))).to_dict()["host"]
    return made[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_twice_as_many_take_about_twice_as_long(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert passes(shape, 200, monkeypatch) < 2.5 * passes(shape, 100, monkeypatch) + 20
