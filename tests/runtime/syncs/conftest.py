"""A simulated GPU on the `meta` device: its ops take no time, its reads wait for what was queued, as CUDA's do."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from gapless.runtime.gputrace import Dispatcher  # noqa: E402
from gapless.runtime.syncs.watch import SyncWatch  # noqa: E402

aten = torch.ops.aten
GPU = torch.device("meta")


class Queue:
    """One stream without a clock: busy from a launch until somebody waits."""

    def __init__(self):
        self.busy = False
        self.drains = 0

    def launch(self):
        self.busy = True

    def idle(self):
        return not self.busy

    def wait(self):
        self.drains += self.busy
        self.busy = False


class SimulatedDriver:
    """Answers for the queue as the GPU's driver does."""

    def __init__(self, queue):
        self.queue = queue
        self.waits = []

    def done(self, kind, handle):
        return None if kind == "device" else self.queue.idle()

    def wait(self, kind, handle):
        self.waits.append(kind)
        self.queue.wait()
        return True


class SimulatedMark:
    def __init__(self, queue):
        self.queue, self.passed, self.drains = queue, queue.idle(), queue.drains

    def done(self):
        return self.passed or self.queue.drains > self.drains


class SimulatedBackend:
    """Tensors on `meta` are the GPU's; a CPU tensor is pinned if it was registered so."""

    name = "meta"

    def __init__(self, queue):
        self.queue = queue
        self.pinned_storages = set()

    def pin(self, tensor):
        self.pinned_storages.add(tensor.untyped_storage().data_ptr())
        return tensor

    def on_gpu(self, tensor):
        return tensor.device.type == "meta"

    def pinned(self, tensor):
        return tensor.device.type == "cpu" and tensor.untyped_storage().data_ptr() in self.pinned_storages

    def idle(self, tensor):
        return self.queue.idle()

    def mark(self, tensor):
        return SimulatedMark(self.queue)


class SimulatedGpu(TorchDispatchMode):
    """Stands below the watch's op layer and does what CUDA would do."""

    @classmethod
    def ignore_compile_internals(cls):
        return True

    def __init__(self):
        super().__init__()
        self.queue = Queue()
        self.driver = SimulatedDriver(self.queue)
        self.trace = Dispatcher(self.driver)
        self.backend = SimulatedBackend(self.queue)
        self.value = 1.0

    def watch(self, **options):
        return SyncWatch(backend=self.backend, trace=self.trace, **options)

    def synchronize(self):
        self.trace.fire("device")
        self.queue.wait()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        first = args[0] if args else None
        on_gpu = isinstance(first, torch.Tensor) and first.is_meta
        if func is aten._local_scalar_dense.default and on_gpu:
            self.trace.fire("stream", 7)
            return bool(self.value) if first.dtype is torch.bool else self.value
        if func is aten.nonzero.default and on_gpu:
            self.trace.fire("stream", 7)
            return torch.empty(3, first.dim(), dtype=torch.long, device=GPU)
        if func is aten.index.Tensor and on_gpu:
            self.trace.fire("stream", 7)
            return torch.empty(3, device=GPU)
        if func is aten._to_copy.default and on_gpu and kwargs.get("device") == torch.device("cpu"):
            result = torch.zeros(first.shape, dtype=first.dtype)
            if kwargs.get("non_blocking"):
                return self.backend.pin(result)
            self.trace.fire("stream", 7)
            return result
        if func is aten._to_copy.default and kwargs.get("device") == GPU and not on_gpu:
            if not self.backend.pinned(first):
                if kwargs.get("non_blocking"):
                    self.queue.wait()
                else:
                    self.trace.fire("stream", 7)
            return torch.empty(first.shape, dtype=first.dtype, device=GPU)
        if func is aten.copy_.default and isinstance(args[1], torch.Tensor) and args[1].is_meta and not on_gpu:
            non_blocking = args[2] if len(args) > 2 else kwargs.get("non_blocking", False)
            if not non_blocking:
                self.trace.fire("stream", 7)
            elif not self.backend.pinned(first):
                self.queue.wait()
            return first
        return func(*args, **kwargs)


@pytest.fixture
def gpu():
    with SimulatedGpu() as simulated:
        yield simulated
