"""A simulated GPU with its own clock: host cost, queue, streams, L2 and blockers, without any waiting in the tests."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from gapless.runtime.timing.backend import Capabilities, KernelTime, Run, SyncSite, UnavailableError

GAP_US = 0.8
MARK_US = 0.5
LAUNCH_LATENCY_US = 4.0
QUEUE = 1022


@dataclass
class Item:
    kind: str
    submit_us: float
    warm_us: float = 0.0
    cold_us: float = 0.0
    start_us: float | None = None
    end_us: float | None = None
    gate: bool = False
    in_graph: bool = False


@dataclass
class FakeGpu:
    """Times in microseconds; `host_us` is the only clock."""

    noise: float = 0.002
    host_us: float = 1000.0
    seed: int = 7
    streams: dict[str, list[Item]] = field(default_factory=lambda: {"main": []})
    stream_end: dict[str, float] = field(default_factory=dict)
    cold: bool = False
    flag_holds: int = 0
    timeouts: int = 0
    capturing: list[Item] | None = None
    watched: list[str] | None = None
    recorded: list[Item] | None = None
    timeout_us: float = 100_000.0
    mhz: float = 1980.0

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.ends: deque[float] = deque()

    def _jitter(self) -> float:
        return 1 + self.rng.gauss(0, self.noise) if self.noise else 1.0

    def resolve(self, stream: str) -> None:
        """Fix start and end of everything that does not wait behind a closed gate."""
        items = self.streams[stream]
        now = self.stream_end.get(stream, 0.0)
        while items:
            item = items[0]
            item.start_us = max(now, item.submit_us + LAUNCH_LATENCY_US)
            if item.gate:
                return
            if item.kind == "kernel":
                item.start_us += GAP_US
                duration = (item.cold_us if self.cold else item.warm_us) * self._jitter()
                self.cold = False
                if self.recorded is not None:
                    self.recorded.append(item)
            elif item.kind == "flush":
                duration, self.cold = 60.0, True
            else:
                duration = item.warm_us
            item.end_us = now = item.start_us + duration
            if not item.in_graph:
                self.ends.append(now)
            items.pop(0)
        self.stream_end[stream] = now

    def host_work(self, us: float) -> None:
        self.host_us += us * self._jitter()

    def _submit(self, item: Item, stream: str = "main") -> Item:
        if self.capturing is not None:
            self.capturing.append(item)
            return item
        self.resolve(stream)
        while self.ends and self.ends[0] <= self.host_us:
            self.ends.popleft()
        unresolved = sum(not i.in_graph for i in self.streams[stream])
        if unresolved >= QUEUE:
            self.synchronize()
        elif len(self.ends) + unresolved >= QUEUE:
            self.host_us = self.ends.popleft()
        self.streams.setdefault(stream, []).append(item)
        return item

    def launch(self, gpu_us: float, host_us: float = 4.0, cold_us: float | None = None, stream: str = "main") -> None:
        self.host_work(host_us)
        self.streams.setdefault(stream, [])
        self._submit(Item("kernel", self.host_us, gpu_us, cold_us if cold_us is not None else gpu_us), stream)

    def synchronize(self, seen: str = "") -> None:
        if self.capturing is not None and seen:
            raise UnavailableError("capture failed: operation not permitted")
        if seen and self.watched is not None:
            self.watched.append(seen)
        for stream in list(self.streams):
            self.resolve(stream)
            if self.streams[stream]:
                gate = self.streams[stream][0]
                assert gate.gate and gate.start_us is not None
                self.timeouts += 1
                gate.gate, gate.warm_us = False, self.timeout_us
                self.resolve(stream)
            self.host_us = max(self.host_us, self.stream_end.get(stream, 0.0))
        self.host_us += 3.0


class FakeMark:
    def __init__(self, gpu: FakeGpu) -> None:
        self.gpu = gpu
        self.item: Item | None = None

    def record(self) -> None:
        self.gpu.host_us += 1.0
        self.item = self.gpu._submit(Item("mark", self.gpu.host_us, MARK_US))

    def wait(self) -> None:
        assert self.item is not None
        self.gpu.resolve("main")
        assert self.item.end_us is not None, "waits for a mark behind a closed gate"
        self.gpu.host_us = max(self.gpu.host_us, self.item.end_us)

    def us_until(self, end: FakeMark) -> float:
        assert self.item is not None and end.item is not None
        assert self.item.end_us is not None and end.item.end_us is not None
        return end.item.end_us - self.item.end_us


class FakeHold:
    def __init__(self, gpu: FakeGpu, item: Item) -> None:
        self.gpu = gpu
        self.item = item

    def holding(self) -> bool:
        self.gpu.resolve("main")
        return self.item.gate or (self.item.end_us or 0.0) > self.gpu.host_us

    def release(self) -> None:
        if self.item.gate:
            self.gpu.host_us += 10.0
            self.gpu.resolve("main")
            assert self.item.start_us is not None
            self.item.gate = False
            self.item.warm_us = max(0.0, self.gpu.host_us - self.item.start_us)


@dataclass
class FakeCaptured:
    gpu: FakeGpu
    items: list[Item]
    calls: int
    kernel_nodes: int | None
    output: object = None

    def replay(self) -> None:
        self.gpu.host_us += 6.0
        for item in self.items:
            # One launch puts the whole graph on the device: it does not fill the queue.
            self.gpu.streams["main"].append(
                Item(item.kind, self.gpu.host_us, item.warm_us, item.cold_us, in_graph=True)
            )


class FakeBackend:
    name = "simulated"

    def __init__(self, gpu: FakeGpu, *, blocker: str = "flag", detector: bool = True, lost_nodes: int = 0) -> None:
        self.gpu = gpu
        self.detector = detector
        self.lost_nodes = lost_nodes
        self.caps = Capabilities("device", blocker, True, True, detector, 50 << 20, {})

    def now_ns(self) -> int:
        return int(self.gpu.host_us * 1e3)

    def synchronize(self) -> None:
        self.gpu.synchronize()

    def mark(self) -> FakeMark:
        return FakeMark(self.gpu)

    def hold(self, expected_us: float, *, self_ending: bool) -> FakeHold:
        self.gpu.host_us += 5.0
        if self_ending or self.caps.blocker == "sleep":
            return FakeHold(self.gpu, self.gpu._submit(Item("sleep", self.gpu.host_us, 1.5 * expected_us + 100)))
        self.gpu.flag_holds += 1
        return FakeHold(self.gpu, self.gpu._submit(Item("hold", self.gpu.host_us, gate=True)))

    def flush_l2(self) -> None:
        self.gpu.host_us += 8.0
        self.gpu._submit(Item("flush", self.gpu.host_us))

    def meter(self) -> Callable[[], float | None]:
        return lambda: self.gpu.mhz

    def clock_mhz(self) -> float | None:
        return self.gpu.mhz

    def counters(self) -> dict[str, int]:
        return {"num_device_alloc": 0, "frames_compiled": 0}

    def find_syncs(self, run: Run) -> tuple[SyncSite, ...]:
        if not self.detector:
            raise UnavailableError("no detector")
        self.gpu.watched = []
        run()
        found, self.gpu.watched = self.gpu.watched, None
        return tuple(SyncSite("operation", "user.py", 7, found.count(kind), False) for kind in dict.fromkeys(found))

    def capture(self, runs: list[Run]) -> FakeCaptured:
        self.gpu.capturing = []
        try:
            for run in runs:
                run()
        finally:
            items, self.gpu.capturing = self.gpu.capturing, None
        return FakeCaptured(self.gpu, items, len(runs), len(items) - self.lost_nodes)

    def close(self) -> None:
        pass

    def one_kernel(self) -> Run:
        return lambda: self.gpu.launch(1.2)

    def kernel_times(self, run: Run, calls: int, *, held: bool) -> list[KernelTime]:
        self.gpu.synchronize()
        self.gpu.recorded = []
        hold = self.hold(100.0, self_ending=False) if held else None
        for _ in range(calls):
            run()
        if hold is not None:
            hold.release()
        self.gpu.synchronize()
        done, self.gpu.recorded = self.gpu.recorded, None
        assert all(i.start_us is not None and i.end_us is not None for i in done)
        return [KernelTime("k", int(i.start_us * 1e3), int((i.end_us - i.start_us) * 1e3)) for i in done]
