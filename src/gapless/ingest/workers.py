"""How do several processes decode one file? The parent unpacks and cuts; chunks go to forked workers through a few
buffers in shared memory. Where no buffer is free the parent decodes the chunk itself, so that every process is busy and
text never piles up.

Workers import nothing, never touch polars, and send columns back when all is done. Forking is for a process with one
Python thread and without torch (a CUDA context does not survive it); elsewhere this process does it all.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import select
import signal
import struct
import sys
import threading
import warnings
from dataclasses import dataclass
from mmap import mmap
from typing import IO, Any

from gapless.ingest.columns import Chunk
from gapless.ingest.decode import UnreadableChunkError, decode_chunk
from gapless.ingest.groups import TEXT_COLUMNS
from gapless.ingest.interns import Interns, Translation

Text = bytes | bytearray | memoryview
Result = Chunk | bytes
"""Columns of a chunk, or its text where it is no well-formed list of known events."""

_TASK = struct.Struct("<QQQ")  # number of the chunk, buffer, length

MAX_WORKERS = 3
"""More processes than this wait for the one that unpacks."""

BUFFERS = 40
"""Buffers for each worker: enough to keep it busy while the parent, all text unpacked, imports the rest of gapless."""


class WorkerDiedError(Exception):
    """A worker ended without results: the file has to be read again without workers."""


def can_fork() -> bool:
    """Whether this process may fork, and has a core to spare for it."""
    return (
        sys.platform == "linux"
        and "torch" not in sys.modules
        and threading.active_count() == 1
        and len(os.sched_getaffinity(0)) > 1
    )


def decode(text: Text, interns: Interns, keep_frames: bool, *, salvaged: bool = False) -> Result:
    """Columns of the events in `text`, a JSON list; or its inside, copied. Salvaged text may be all unknown."""
    try:
        chunk = decode_chunk(text, interns, keep_frames=keep_frames)
    except UnreadableChunkError:
        return bytes(text[1:-1])
    return chunk if chunk.known or salvaged else bytes(text[1:-1])


@dataclass(slots=True)
class _Worker:
    pid: int
    output: IO[bytes]


class Pool:
    """Decodes chunks, numbered in the order they come, here and in workers."""

    def __init__(self, *, keep_frames: bool) -> None:
        self.interns = Interns()
        self._keep_frames = keep_frames
        self._results: dict[int, Result] = {}
        self._count = 0
        self._workers: list[_Worker] = []
        self._memory: mmap | None = None
        self._buffer_bytes = 0
        self._idle: list[int] = []
        self._tasks = (-1, -1)
        self._done = (-1, -1)

    @property
    def started(self) -> bool:
        """Whether there are workers."""
        return bool(self._workers)

    def start(self, buffer_bytes: int) -> None:
        """Fork workers with buffers for texts of at most `buffer_bytes`."""
        workers = min(len(os.sched_getaffinity(0)) - 1, MAX_WORKERS)
        self._buffer_bytes = buffer_bytes
        self._idle = list(range(BUFFERS * workers))
        self._memory = mmap(-1, buffer_bytes * len(self._idle))
        self._tasks, self._done = os.pipe(), os.pipe()
        for _ in range(workers):
            output = os.fdopen(os.memfd_create("gapless"), "w+b", buffering=1 << 20)
            with warnings.catch_warnings():
                # Threads of native libraries make Python warn; a worker uses none of these libraries.
                warnings.simplefilter("ignore", DeprecationWarning)
                try:
                    pid = os.fork()
                except OSError:
                    output.close()
                    break
            if pid == 0:
                self._work(output)
            self._workers.append(_Worker(pid, output))

    def submit(self, text: Text) -> None:
        """Have the JSON list `text` decoded; it may be reused at once."""
        number = self._count
        self._count += 1
        buffer = self._free_buffer() if len(text) <= self._buffer_bytes else None
        if buffer is None or self._memory is None:
            self._results[number] = decode(text, self.interns, self._keep_frames)
            return
        begin = buffer * self._buffer_bytes
        self._memory[begin : begin + len(text)] = bytes(text) if isinstance(text, memoryview) else text
        os.write(self._tasks[1], _TASK.pack(number, buffer, len(text)))

    def _free_buffer(self) -> int | None:
        if not self._workers:
            return None
        if not self._idle and select.select([self._done[0]], [], [], 0)[0]:
            self._idle += os.read(self._done[0], 4096)
        return self._idle.pop() if self._idle else None

    def no_more(self) -> None:
        """Tell workers that all chunks were submitted, so that they end while the parent does other things."""
        if self._tasks[1] >= 0:
            os.close(self._tasks[1])
            self._tasks = (self._tasks[0], -1)

    def finish(self) -> list[Result]:
        """Results of all chunks in order; raises WorkerDiedError."""
        self.no_more()
        if self._memory is not None:
            with memoryview(self._memory) as memory:
                while record := os.read(self._tasks[0], _TASK.size):
                    number, text = self._task(memory, record)
                    self._results[number] = decode(text, self.interns, self._keep_frames)
                    text.release()
        for worker in self._workers:
            self._collect(worker)
        self._workers.clear()
        self.close()
        if len(self._results) != self._count:
            raise WorkerDiedError
        return [self._results.pop(number) for number in range(self._count)]

    def close(self) -> None:
        """Stop what still runs."""
        for worker in self._workers:
            with contextlib.suppress(OSError):
                os.kill(worker.pid, signal.SIGKILL)
                os.waitpid(worker.pid, 0)
            worker.output.close()
        self._workers.clear()
        for descriptor in (*self._tasks, *self._done):
            if descriptor >= 0:
                os.close(descriptor)
        self._tasks = self._done = (-1, -1)
        if self._memory is not None:
            self._memory.close()
            self._memory = None

    def _task(self, memory: memoryview, record: bytes) -> tuple[int, memoryview]:
        """Number and text of a chunk that was submitted."""
        number, buffer, length = _TASK.unpack(record)
        begin = buffer * self._buffer_bytes
        return number, memory[begin : begin + length]

    def _work(self, output: IO[bytes]) -> None:
        """The life of a worker: one pickle a chunk, at last its dictionaries."""
        status = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            gc.disable()
            os.close(self._tasks[1])
            os.close(self._done[0])
            interns = Interns()
            assert self._memory is not None
            with memoryview(self._memory) as memory:
                while record := os.read(self._tasks[0], _TASK.size):
                    number, text = self._task(memory, record)
                    result = decode(text, interns, self._keep_frames)
                    text.release()
                    os.write(self._done[1], bytes((_TASK.unpack(record)[1],)))
                    pickle.dump((number, result), output, protocol=5)
                pickle.dump(interns.snapshot(), output, protocol=5)
            output.flush()
            status = 0
        finally:
            os._exit(status)

    def _collect(self, worker: _Worker) -> None:
        _, status = os.waitpid(worker.pid, 0)
        if status == 0:
            size = worker.output.seek(0, os.SEEK_END)
            worker.output.seek(0)
            items: list[Any] = []
            while worker.output.tell() < size:
                items.append(pickle.load(worker.output))
            translation = self.interns.absorb(items.pop())
            for number, result in items:
                if isinstance(result, Chunk):
                    _renumber(result, translation)
                self._results[number] = result
        worker.output.close()


def _renumber(chunk: Chunk, translation: Translation) -> None:
    """Replace a worker's codes by ours."""
    for part in chunk.parts:
        part.name = translation.names[part.name]
        part.lane = translation.lanes[part.lane]
        for column in TEXT_COLUMNS.intersection(part.args):
            part.args[column] = translation.texts[part.args[column]]
