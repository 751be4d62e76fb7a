"""Small traces from programs, times in whole nanoseconds: what a profiler would have written for them.

A program is a list of instructions (plain tuples, so that a failing one prints and shrinks well); `run` plays it on a
host with three threads and two devices and gives the events as dicts with `start` and `dur` in ns. `to_json` writes
them with the microseconds a recorder would write, exactly.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import gapless

Event = dict[str, Any]
Instruction = tuple[Any, ...]

MAIN, AUTOGRAD, LOADER = 11, 12, 13
KERNELS = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32_cublas",
)
COPIES = (
    ("Memcpy DtoH (Device -> Pageable)", True),
    ("Memcpy HtoD (Pageable -> Device)", True),
    ("Memcpy HtoD (Pinned -> Device)", False),
    ("Memcpy DtoD (Device -> Device)", False),
)
SYNCS = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "hipMemcpyWithStream")
EMPTY = b"", b""


@dataclass
class Machine:
    """The host's clock and threads, and when each stream of each device is free."""

    now: int = 1_000_000
    thread: int = MAIN
    events: list[Event] = field(default_factory=list)
    free: dict[tuple[int, int], int] = field(default_factory=dict)
    ids: int = 0

    def number(self) -> int:
        self.ids += 1
        return self.ids

    def span(self, cat: str, name: str, start: int, end: int, **args: Any) -> None:
        """One host event on the current thread."""
        where = {"pid": 10, "tid": self.thread}
        self.events.append({"ph": "X", "cat": cat, "name": name, **where, "start": start, "dur": end - start,
                            "args": args})  # fmt: skip

    def activity(self, cat: str, name: str, device: int, stream: int, start: int, dur: int, **args: Any) -> None:
        """One piece of GPU work."""
        args |= {"device": device, "stream": stream}
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": device, "tid": stream, "start": start,
                            "dur": dur, "args": args})  # fmt: skip

    def on_gpu(self, cat: str, name: str, device: int, stream: int, dur: int, **args: Any) -> int:
        """Queue work now; returns its end."""
        start = max(self.now + 2000, self.free.get((device, stream), 0))
        self.free[device, stream] = start + dur
        self.activity(cat, name, device, stream, start, dur, **args)
        return start + dur

    def call(self, name: str, dur: int, **args: Any) -> None:
        start = self.now
        self.now += dur
        self.span("cuda_runtime", name, start, self.now, **args)

    def play(self, program: Sequence[Instruction]) -> None:
        """Run a list of instructions."""
        for kind, *rest in program:
            getattr(self, f"do_{kind}")(*rest)

    def inside(self, cat: str, name: str, body: Sequence[Instruction], **args: Any) -> None:
        start, number = self.now, self.number()
        self.play(body)
        key = "Python id" if cat == "python_function" else "External id"
        self.span(cat, name, start, self.now, **{key: number}, **args)

    def do_think(self, dur: int) -> None:
        self.now += dur

    def do_op(self, name: str, before: int, body: Sequence[Instruction]) -> None:
        start, number = self.now, self.number()
        self.now += before
        self.play(body)
        self.now += before
        self.span("cpu_op", name, start, self.now, **{"External id": number, "Sequence number": number})

    def do_frame(self, name: str, body: Sequence[Instruction]) -> None:
        self.inside("python_function", name, body)

    def do_mark(self, name: str, body: Sequence[Instruction]) -> None:
        self.inside("user_annotation", name, body)

    def do_launch(self, kernel: int, device: int, stream: int, call: int, dur: int) -> None:
        link = self.number()
        self.call("cudaLaunchKernel", call, correlation=link)
        self.on_gpu("kernel", KERNELS[kernel], device, stream, dur, correlation=link)

    def do_graph(self, device: int, stream: int, durs: Sequence[int]) -> None:
        link = self.number()
        self.call("cudaGraphLaunch", 4000, correlation=link)
        for node, dur in enumerate(durs):
            where = stream + node % 2
            self.on_gpu("kernel", KERNELS[0], device, where, dur, correlation=link, **{"graph node id": node + 1})

    def do_copy(self, kind: int, device: int, stream: int, size: int, dur: int) -> None:
        name, pageable = COPIES[kind]
        link, start = self.number(), self.now
        self.now += 2000
        end = self.on_gpu("gpu_memcpy", name, device, stream, dur, correlation=link, bytes=size)
        if pageable:
            self.now = max(self.now, end) + 1000
        self.span("cuda_runtime", "cudaMemcpyAsync", start, self.now, correlation=link)

    def do_memset(self, device: int, stream: int, dur: int) -> None:
        link = self.number()
        self.call("cudaMemsetAsync", 2000, correlation=link)
        self.on_gpu("gpu_memset", "Memset (Device)", device, stream, dur, correlation=link, bytes=4)

    def do_sync(self, kind: int, back: int) -> None:
        """Blocks until everything queued has run."""
        start, link = self.now, self.number()
        self.now = max(self.now, *self.free.values(), 0) + back
        self.span("cuda_runtime", SYNCS[kind], start, self.now, correlation=link)
        if kind == 1 and self.free:
            device, stream = min(self.free)
            self.events.append({"ph": "X", "cat": "cuda_sync", "name": "Stream Sync", "pid": device, "tid": stream,
                                "start": start, "dur": self.now - start,
                                "args": {"stream": stream, "device": device, "correlation": link}})  # fmt: skip

    def do_call(self, name: str, dur: int) -> None:
        self.call(name, dur, correlation=self.number())

    def do_lost(self, count: int) -> None:
        """Launches whose work the file lacks."""
        for _ in range(count):
            self.call("cudaLaunchKernel", 4000, correlation=self.number())

    def do_orphan(self, device: int, stream: int, dur: int) -> None:
        """GPU work without a launch."""
        self.on_gpu("kernel", KERNELS[0], device, stream, dur, correlation=self.number())

    def do_backward(self, body: Sequence[Instruction]) -> None:
        """The autograd thread works while the main thread waits for it."""
        was, self.thread = self.thread, AUTOGRAD
        start = self.now
        self.now += 1000
        self.play(body)
        self.span("cpu_op", "autograd::engine::evaluate_function: AddBackward0", start, self.now,
                  **{"External id": self.number(), "Sequence number": 1, "Fwd thread id": 1})  # fmt: skip
        self.thread = was

    def do_loader(self, dur: int) -> None:
        """Another thread works at the same time."""
        was, self.thread = self.thread, LOADER
        self.span("cpu_op", "aten::stack", self.now, self.now + dur, **{"External id": self.number()})
        self.thread = was

    def do_overhead(self, name: str, dur: int) -> None:
        self.events.append({"ph": "X", "cat": "overhead", "name": name, "pid": -1, "tid": 0, "start": self.now,
                            "dur": dur, "args": {}})  # fmt: skip

    def do_raw(self, cat: str, name: str, lane: int, at: int, dur: int, link: int) -> None:
        """Any event anywhere: it may cross others, tie with them, precede its launch or last no time."""
        host = cat in ("cpu_op", "cuda_runtime", "python_function", "user_annotation", "cuda_driver")
        args = (
            {"correlation": link, "External id": link} if host else {"correlation": link, "device": 0, "stream": lane}
        )
        where = {"pid": 10, "tid": (MAIN, AUTOGRAD, LOADER)[lane % 3]} if host else {"pid": 0, "tid": lane}
        self.events.append({"ph": "X", "cat": cat, "name": name, **where, "start": self.now + at, "dur": dur,
                            "args": args})  # fmt: skip


def run(steps: Sequence[Sequence[Instruction]], *, markers: bool = True, pause: int = 20_000) -> list[Event]:
    """The events of a program's steps, a `ProfilerStep#N` round each if `markers`."""
    machine = Machine()
    for number, body in enumerate(steps):
        if markers:
            machine.do_mark(f"ProfilerStep#{number}", body)
        else:
            machine.play(body)
        machine.now += pause
    return machine.events


def microseconds(ns: int) -> str:
    """A time as a recorder writes it: microseconds with three decimals."""
    sign = "-" if ns < 0 else ""
    return f"{sign}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"


def _one(event: Event, keys: Callable[[list[str]], list[str]], indent: int | None) -> str:
    texts = {key: json.dumps(value, indent=indent) for key, value in event.items() if key not in ("start", "dur")}
    if "start" in event:
        texts["ts"] = microseconds(event["start"])
    if "dur" in event:
        texts["dur"] = microseconds(event["dur"])
    return "{" + ", ".join(f"{json.dumps(key)}: {texts[key]}" for key in keys(list(texts))) + "}"


def to_json(
    events: Sequence[Event], *, keys: Callable[[list[str]], list[str]] = list, indent: int | None = None, **top: Any
) -> bytes:
    """The file's text. `keys` orders the keys of each event; `indent` spreads it over lines."""
    separator = ",\n" if indent is None else " ,\n\n   "
    listed = separator.join(_one(event, keys, indent) for event in events)
    head = "".join(f"{json.dumps(key)}: {json.dumps(value)}, " for key, value in {"schemaVersion": 1, **top}.items())
    return ("{" + head + '"traceEvents": [\n' + listed + "\n]}").encode()


def from_json(text: bytes) -> tuple[list[Event], dict[str, Any]]:
    """A recorded file's events with `start` and `dur` in ns, and its other keys."""
    from decimal import Decimal

    whole = json.loads(text, parse_float=Decimal)
    events = []
    for event in whole.pop("traceEvents"):
        times = {
            new: int(Decimal(event.pop(old)) * 1000) for old, new in (("ts", "start"), ("dur", "dur")) if old in event
        }
        events.append(_plain({**event, **times}))
    return events, _plain(whole)


def _plain(value: Any) -> Any:
    """Decimals back to numbers."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value if value is None or isinstance(value, (str, bool, int)) else float(value)


def shifted(events: Sequence[Event], by: int) -> list[Event]:
    """All times later by so many ns."""
    return [{**event, "start": event["start"] + by} if "start" in event else event for event in events]


def scaled(events: Sequence[Event], factor: int) -> list[Event]:
    """All times so many times as long."""
    return [{**event, **{key: event[key] * factor for key in ("start", "dur") if key in event}} for event in events]


def load(text: bytes) -> gapless.Trace:
    """The trace in a text, read as an open file."""
    return gapless.load(io.BytesIO(text))


def report(text: bytes) -> dict[str, Any]:
    """The whole report of a text, without what names the file itself."""
    whole = gapless.report(load(text)).to_dict()
    for key in ("path", "bytes", "sha256"):
        del whole["trace"][key]
    return whole


def busy(whole: dict[str, Any]) -> dict[int, dict[str, int]]:
    """Busy nanoseconds of each device by state."""
    states = ("compute", "communication", "copy")
    return {a["device"]: {p["state"]: p["ns"] for p in a["parts"] if p["state"] in states} for a in whole["accounting"]}
