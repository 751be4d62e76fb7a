"""How do several processes decode one file? The parent unpacks into a shared temporary file and cuts it into chunks,
forked workers take chunks from a pipe, and so does the parent once it has unpacked everything.

Workers only read that file, decode, and send columns back; they import nothing and never touch polars. A worker that
dies costs time, not data: the parent decodes what is missing. Forking is for a process with one Python thread and
without torch (a CUDA context does not survive it); elsewhere everything happens in this process.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import struct
import sys
import threading
import warnings
from dataclasses import dataclass
from typing import Any

from gapless.ingest.columns import Chunk
from gapless.ingest.decode import UnreadableChunkError, decode_chunk
from gapless.ingest.groups import TEXT_COLUMNS
from gapless.ingest.interns import Interns, Translation
from gapless.ingest.text import Text

_TASK = struct.Struct("<QQQ")

MAX_WORKERS = 3
"""More processes than this wait for the one that unpacks."""

FORK_BYTES = 16 << 20
"""Texts shorter than this are not worth a process."""


def can_fork() -> bool:
    """Whether this process may fork, and has a core to spare for it."""
    return (
        sys.platform == "linux"
        and "torch" not in sys.modules
        and threading.active_count() == 1
        and len(os.sched_getaffinity(0)) > 1
    )


@dataclass(slots=True)
class _Worker:
    pid: int
    output: Text


class Pool:
    """Decodes chunks here and, for long texts, in forked workers; `results` is complete after `finish`."""

    def __init__(self, text: Text, *, keep_frames: bool, fork: bool) -> None:
        self.interns = Interns()
        self.results: dict[int, Chunk | None] = {}
        self._text = text
        self._keep_frames = keep_frames
        self._may_fork = fork
        self._waiting: list[tuple[int, int, int]] = []
        self._tasks: list[tuple[int, int, int]] = []
        self._workers: list[_Worker] = []
        self._pipe: tuple[int, int] | None = None

    def submit(self, start: int, end: int) -> None:
        """Ask for the chunk between two places of the text; chunks are numbered in order of submission."""
        task = (len(self._tasks), start, end)
        self._tasks.append(task)
        if self._pipe is not None:
            self._send(task)
        elif self._may_fork:
            self._waiting.append(task)
            if end >= FORK_BYTES:
                self._start()
        else:
            self._decode(task)

    def finish(self) -> list[tuple[int, int, Chunk | None]]:
        """Start, end and columns of every chunk in order; None where the text is not well-formed."""
        for task in self._waiting:
            self._decode(task)
        self._waiting.clear()
        if self._pipe is not None:
            os.close(self._pipe[1])
            while record := os.read(self._pipe[0], _TASK.size):
                self._decode(_TASK.unpack(record))
            for worker in self._workers:
                self._collect(worker)
            os.close(self._pipe[0])
            self._pipe = None
            self._workers.clear()
        for task in self._tasks:
            if task[0] not in self.results:  # its worker died
                self._decode(task)
        return [(start, end, self.results.pop(number)) for number, start, end in self._tasks]

    def close(self) -> None:
        """Stop what still runs; does nothing after `finish`."""
        if self._pipe is None:
            return
        for descriptor in self._pipe:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        for worker in self._workers:
            with contextlib.suppress(OSError):
                os.kill(worker.pid, signal.SIGKILL)
                os.waitpid(worker.pid, 0)
            worker.output.close()
        self._pipe = None
        self._workers.clear()

    def _decode(self, task: tuple[int, int, int]) -> None:
        number, start, end = task
        self.results[number] = _decode(self._text, start, end, self.interns, self._keep_frames)

    def _send(self, task: tuple[int, int, int]) -> None:
        assert self._pipe is not None
        while not select.select([], [self._pipe[1]], [], 0)[1]:
            self._decode(_TASK.unpack(os.read(self._pipe[0], _TASK.size)))
        os.write(self._pipe[1], _TASK.pack(*task))

    def _start(self) -> None:
        self._pipe = os.pipe()
        for _ in range(min(len(os.sched_getaffinity(0)) - 1, MAX_WORKERS)):
            output = Text()
            with warnings.catch_warnings():
                # Threads of native libraries make Python warn; the child uses none of those libraries.
                warnings.simplefilter("ignore", DeprecationWarning)
                try:
                    pid = os.fork()
                except OSError:
                    output.close()
                    break
            if pid == 0:
                self._work(output)
            self._workers.append(_Worker(pid, output))
        for task in self._waiting:
            self._send(task)
        self._waiting.clear()

    def _work(self, output: Text) -> None:
        """The life of a worker: one pickle a chunk, at last its dictionaries."""
        status = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            assert self._pipe is not None
            os.close(self._pipe[1])
            interns = Interns()
            while record := os.read(self._pipe[0], _TASK.size):
                number, start, end = _TASK.unpack(record)
                chunk = _decode(self._text, start, end, interns, self._keep_frames)
                output.append(pickle.dumps((number, chunk), protocol=5))
            output.append(pickle.dumps(interns.snapshot(), protocol=5))
            status = 0
        finally:
            os._exit(status)

    def _collect(self, worker: _Worker) -> None:
        _, status = os.waitpid(worker.pid, 0)
        if status == 0:
            with os.fdopen(os.dup(worker.output.fd), "rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(0)
                items: list[Any] = []
                while file.tell() < size:
                    items.append(pickle.load(file))
            translation = self.interns.absorb(items.pop())
            for number, chunk in items:
                if chunk is not None:
                    _renumber(chunk, translation)
                self.results[number] = chunk
        worker.output.close()


def _decode(text: Text, start: int, end: int, interns: Interns, keep_frames: bool) -> Chunk | None:
    try:
        return decode_chunk(text.read_list(start, end), interns, keep_frames=keep_frames)
    except UnreadableChunkError:
        return None


def _renumber(chunk: Chunk, translation: Translation) -> None:
    """Replace a worker's codes by ours."""
    for part in chunk.parts:
        part.name = translation.names[part.name]
        part.lane = translation.lanes[part.lane]
        for column in TEXT_COLUMNS.intersection(part.args):
            part.args[column] = translation.texts[part.args[column]]
