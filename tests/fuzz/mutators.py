"""How can a trace be damaged? Bytes, any field of any event, and values that contradict each other."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

PIECES = (b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\x00", b"\xff", b"nan", b"-", b"1e999", b"null",
          b'", "pid": ', b"\n", b"}, {", b'"ph": "X"', b"\xed\xa0\x80", b'\\ud800')  # fmt: skip
VALUES = (None, True, -1, 0, 2**63, 2**64, 10**40, -1e300, 1e300, 0.5, "", "x", "nan", "12", [], [1], {},
          {"a": [{"name": 1}]}, "\ud800", "A" * 70_000, [[[[1]]]], "cpu_op", "X", "M")  # fmt: skip

Event = dict[str, Any]
Whole = dict[str, Any]


def mutated_bytes(data: bytes, rng: random.Random) -> bytes:
    """The text with some bytes changed, cut, inserted or repeated."""
    mutant = bytearray(data)
    for _ in range(rng.choice((1, 1, 3, 30))):
        at = rng.randrange(len(mutant))
        action = rng.randrange(4)
        if action == 0:
            mutant[at] = rng.randrange(256)
        elif action == 1:
            del mutant[at : at + rng.choice((1, 5, 500))]
        elif action == 2:
            mutant[at:at] = rng.choice(PIECES)
        else:
            other = rng.randrange(len(mutant))
            mutant[at:at] = mutant[other : other + rng.choice((3, 300))]
    return bytes(mutant)


def mutated_field(value: object, rng: random.Random) -> object:
    """The value with something inside replaced, removed or renamed."""
    if isinstance(value, dict) and value:
        key = rng.choice(list(value))
        changed = dict(value)
        action = rng.randrange(5)
        if action == 0:
            del changed[key]
        elif action == 1:
            changed[rng.choice(("ph", "cat", "ts", "dur", "args", "pid", "tid", "name", "x" * 300))] = changed.pop(key)
        elif action == 2:
            changed[key] = rng.choice(VALUES)
        else:
            changed[key] = mutated_field(value[key], rng)
        return changed
    if isinstance(value, list) and value:
        changed_list = list(value)
        i = rng.randrange(len(value))
        changed_list[i] = mutated_field(value[i], rng) if rng.random() < 0.8 else rng.choice(VALUES)
        return changed_list
    return rng.choice(VALUES)


def _some(events: list[Event], rng: random.Random) -> list[Event]:
    """One event, a tenth, or all: those that a mutation changes."""
    share = rng.choice((0.0, 0.02, 0.1, 0.5, 1.0))
    return [event for event in events if rng.random() < share] or [rng.choice(events)]


def _times(events: list[Event], rng: random.Random) -> None:
    """Times that are negative, huge, not numbers, zero, equal, out of order or off by a little."""
    key = rng.choice(("ts", "dur", "dur"))
    value = rng.choice((0, -1, -0.001, 1e-9, 10**13, 2**53, 1e15, 1e300, float("nan"), float("inf"), "12", "x", None))
    how = rng.randrange(6)
    middle = events[len(events) // 2].get("ts", 0)
    for event in _some(events, rng):
        old = event.get(key)
        if how == 0:
            event[key] = value
        elif how == 1:
            event.pop(key, None)
        elif how == 2 and isinstance(old, (int, float)):
            event[key] = old + rng.choice((-0.001, 0.001, -3, 50, 1e6))
        elif how == 3 and isinstance(old, (int, float)):
            event[key] = old * rng.choice((0, 0.5, 10, 1e4, -1))
        elif how == 4:
            event["ts"] = middle
        else:
            event["ts"] = rng.choice(events).get("ts", 0)


def _ids(events: list[Event], rng: random.Random) -> None:
    """Ids swapped, shared by all, or pointing in circles."""
    keys = ("correlation", "External id", "Python id", "Python parent id", "Sequence number", "Fwd thread id", "stream",
            "device", "graph id", "graph node id", "Ev Idx")  # fmt: skip
    key = rng.choice(keys)
    having = [event for event in events if isinstance(event.get("args"), dict) and key in event["args"]]
    one = rng.choice((0, -1, 1, 7, 2**31, 2**63 - 1, 2**64, "7", None))
    how = rng.randrange(3)
    for event in _some(having, rng) if having else []:
        args = event["args"]
        if how == 0:
            args[key] = one
        elif how == 1:
            args[key] = rng.choice(having)["args"][key]
        elif "Python id" in args:
            args["Python parent id"] = rng.choice((args["Python id"], rng.choice(having)["args"].get("Python id", 0)))


def _names(events: list[Event], rng: random.Random) -> None:
    """Names that are huge, hostile or those of other events."""
    hostile = ("\x1b[31m\x07\u202e", "</script><img src=x onerror=alert(1)>", "B" * 1_000_000, "", "ProfilerStep#1",
               "ProfilerStep#x", "cudaDeviceSynchronize", "cudaGraphLaunch", "cudaStreamBeginCapture",
               "autograd::engine::evaluate_function: \x00", "Optimizer.step#\n", "nccl:all_reduce", "Command Buffer Full",
               "Torch-Compiled Region: 0/0", "nn.Module: \u2028_0", "a(" * 5000, "<" * 3000,
               "Memcpy DtoH (Device -> Pageable)")  # fmt: skip
    name, how = rng.choice(hostile), rng.randrange(3)
    for event in _some(events, rng)[: 5 if len(name) > 10_000 else None]:
        event["name"] = name if how else str(rng.choice(events).get("name"))


def _places(events: list[Event], rng: random.Random) -> None:
    """Everything on one thread, threads swapped, categories changed."""
    how, key = rng.randrange(3), rng.choice(("tid", "pid"))
    value = rng.choice((0, 1, -5, "x", "stream 7", None, 2**40, 1.5, [1]))
    categories = ("cpu_op", "kernel", "cuda_runtime", "cuda_driver", "gpu_memcpy", "user_annotation", "cuda_sync",
                  "python_function", "overhead", "Trace", "gpu_user_annotation", "")  # fmt: skip
    category = rng.choice(categories)
    for event in _some(events, rng):
        if how == 0:
            event[key] = value
        elif how == 1:
            event[key] = rng.choice(events).get(key)
        else:
            event["cat"] = category


def _amount(events: list[Event], rng: random.Random) -> None:
    """Events missing, doubled, or all of one kind gone."""
    how = rng.randrange(4)
    if how == 0:
        gone = rng.choice(events).get("cat")
        events[:] = [event for event in events if event.get("cat") != gone] or events
    elif how == 1:
        chosen = set(map(id, _some(events, rng)))
        events[:] = [event for event in events if id(event) not in chosen] or events[:1]
    elif how == 2:
        events += [{**event, "args": dict(event.get("args") or {})} for event in _some(events, rng)]
    else:
        kept = rng.choice(events).get("cat")
        events[:] = [event for event in events if event.get("cat") == kept]


def _arguments(events: list[Event], rng: random.Random) -> None:
    """Shapes, sizes, grids and whatever else the rules compute with."""
    having = [event for event in events if isinstance(event.get("args"), dict) and event["args"]]
    if not having:
        return
    key = rng.choice(list(rng.choice(having)["args"]))
    values = (
        *VALUES,
        [[2**40, 2**40]],
        [[-1, 4]],
        [[]],
        ["float", "c10::BFloat16"],
        [0, 0, 0],
        [2**31] * 3,
        "[1, 2",
        1e-9,
    )
    value = rng.choice(values)
    for event in _some(having, rng)[: 5 if isinstance(value, str) and len(value) > 10_000 else None]:
        event["args"][key] = value


def _swapped(events: list[Event], rng: random.Random) -> None:
    """Host and GPU clocks apart: kernels before their launches, or long after."""
    by = rng.choice((-1e6, -100.0, -3.0, 1000.0, 1e7))
    for event in events:
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and isinstance(event.get("ts"), (int, float)):
            event["ts"] += by


CONTRADICTIONS: tuple[Callable[[list[Event], random.Random], None], ...] = (
    _times, _times, _ids, _names, _places, _amount, _arguments, _swapped,
)  # fmt: skip

RECORDER = {
    "version": 1, "step": {"on": "forward", "definition": "x"},
    "baseline": {"before_ms": [1.5, 1.6], "after_ms": [1.4], "steps": 3}, "environment": {"CUDA_LAUNCH_BLOCKING": "1"},
    "counters": {"alloc": 3}, "gc": [{"start_ns": 5, "dur_ns": 1000, "generation": 2}],
}  # fmt: skip
"""What our own recorder adds to a file."""


def contradicted(whole: Whole, rng: random.Random) -> Whole:
    """A trace with one to four contradictions; sometimes its other keys are damaged as well."""
    events = [{**event, "args": dict(event["args"])} if isinstance(event.get("args"), dict) else dict(event)
              for event in whole["traceEvents"]]  # fmt: skip
    for _ in range(rng.choice((1, 1, 2, 4))):
        if events:
            rng.choice(CONTRADICTIONS)(events, rng)
    top = {key: value for key, value in whole.items() if key != "traceEvents"}
    if rng.random() < 0.3:
        top["gapless"] = RECORDER
        for _ in range(rng.randrange(3)):
            top = mutated_field(top, rng)  # type: ignore[assignment]
    return {**top, "traceEvents": events}
