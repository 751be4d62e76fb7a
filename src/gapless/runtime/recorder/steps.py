"""Where does a step begin? Listens to everything that repeats, chooses the best of it, and passes its beats on.

Preference: an optimizer's step, else batches of a DataLoader, else calls of a top-level module, else slices of time.
A better source that speaks up before the window has opened replaces a worse one.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from gapless.runtime.recorder import device
from gapless.runtime.recorder.guard import call_on_main_thread
from gapless.runtime.recorder.sources import ForwardSource, FunctionSource, LoaderSource, OptimizerSource, Source

PRIORITY = {"time": 0, "forward": 1, "dataloader": 2, "optimizer": 3, "function": 4, "manual": 5}
NEEDED = {"optimizer": 2, "dataloader": 3, "forward": 4}
"""Events of one key before a source is chosen by itself."""
PATIENCE = 64
"""The same for loaders and modules while an optimizer exists that has not stepped yet."""
SILENCE_S = 60.0
"""Time after which slices of time are taken, where nothing was heard at all."""
SLICE_S = 0.5

WORDS = {
    "optimizer": "each {}",
    "dataloader": "each {}",
    "forward": "each {}",
    "function": "each {}",
    "manual": "each p.step()",
    "time": "each 0.5 s of time",
}


class StepFinder:
    """Calls `beat()` at each step boundary of the chosen source, before that `chose(kind, definition, past_ns)`.

    `past_ns` are the times (`time.perf_counter_ns`) of the boundaries heard before the source was chosen.
    """

    def __init__(self, want: str, beat: Callable[[], None], chose: Callable[[str, str, list[int]], None]) -> None:
        self.kind: str | None = None
        self.definition = ""
        self._want = want
        self._beat = beat
        self._chose = chose
        self._pid = os.getpid()
        self._locked = False
        self._heard_ns: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        self._key: tuple[str, int] | None = None
        self._thread: int | None = None
        self._stop = threading.Event()
        self._sliced = threading.Event()
        self._sources: dict[str, Source] = {}
        self._optimizers = OptimizerSource(lambda label, key: self._heard("optimizer", label, key))
        if want in ("auto", "optimizer"):
            self._sources["optimizer"] = self._optimizers
        if want in ("auto", "dataloader"):
            self._sources["dataloader"] = LoaderSource(lambda label, key: self._heard("dataloader", label, key))
        if want in ("auto", "forward"):
            self._sources["forward"] = ForwardSource(lambda label, key: self._heard("forward", label, key))
        self._function: FunctionSource | None = None
        if ":" in want:
            self._function = FunctionSource(lambda label, key: self._heard("function", label, key), want)
            self._sources["function"] = self._function

    def install(self) -> None:
        """Begin to listen."""
        for source in self._sources.values():
            source.install()
        if self._want in ("auto", "time"):
            threading.Thread(target=self._slices, name="gapless-slices", daemon=True).start()

    def remove(self) -> None:
        """Stop listening and take every hook away."""
        self._stop.set()
        for source in self._sources.values():
            source.remove()
        self._sources = {}

    def lock(self) -> None:
        """The window opens: whatever is chosen now stays."""
        self._locked = True
        for kind in [k for k in self._sources if k != self.kind]:
            self._sources.pop(kind).remove()

    def manual(self) -> None:
        """The program itself says that a step begins."""
        if self.kind != "manual":
            if self._locked:
                return
            self._choose("manual", "p.step()", 0)
            self.lock()
        self._beat_here()

    def unheard(self) -> str:
        """Why no step was found, for a script that has ended, and what to pass instead."""
        if self._function is not None:
            if self._function.exists():
                return (
                    f"{self._want} exists but was never called through that name; --step-on auto finds a step by itself"
                )
            return f"{self._want} was never defined in this process; check the module and the name in --step-on"
        heard = Counter(kind for (kind, _), times in self._heard_ns.items() for _ in times)
        if heard:
            counted = ", ".join(f"{count} x {kind}" for kind, count in heard.most_common(3))
            best = max(heard, key=PRIORITY.__getitem__)
            why = (
                f"too few repetitions to choose a step ({counted}); --step-on {best} --skip 0 records from the first on"
            )
        else:
            why = (
                "nothing that repeats was seen (no optimizer, DataLoader or module call); --step-on module.path:function "
                "names a step, and --step-on time records slices of half a second"
            )
        return why if self._want == "auto" else f"no {self._want} was heard: {why}"

    def _heard(self, kind: str, label: str, key: int) -> None:
        if os.getpid() != self._pid or self._stop.is_set():
            return
        if self._key == (kind, key):
            self._beat_here()
            return
        if self._locked or (self._thread is not None and threading.get_ident() != self._thread):
            return
        past = self._heard_ns[kind, key]
        better = self.kind is None or PRIORITY[kind] > PRIORITY[self.kind]
        if better and len(past) + 1 >= self._needed(kind):
            self._choose(kind, label, key, past)
            self._beat_here()
        past.append(time.perf_counter_ns())

    def _needed(self, kind: str) -> int:
        if self._want != "auto":
            return 1
        if kind in ("dataloader", "forward") and self._optimizers.constructed:
            return PATIENCE
        return NEEDED[kind]

    def _choose(self, kind: str, label: str, key: int, past_ns: Sequence[int] = ()) -> None:
        self.kind, self._key = kind, (kind, key)
        self._thread = threading.get_ident()
        self.definition = WORDS[kind].format(label)
        if kind in self._sources:
            self._sources[kind].narrow(key)
        if kind != "forward" and "forward" in self._sources:
            self._sources.pop("forward").remove()
        self._chose(kind, self.definition, list(past_ns))

    def _beat_here(self) -> None:
        if threading.get_ident() == self._thread and os.getpid() == self._pid:
            self._beat()

    def _slices(self) -> None:
        """Where nothing repeats: a beat each half second on the main thread."""
        began = time.monotonic()
        while not self._stop.wait(SLICE_S):
            if self._heard_ns or (self.kind is not None and self.kind != "time"):
                if self._want == "auto":
                    return
                continue
            silent = time.monotonic() - began > SILENCE_S and device.in_use() is not None
            if (self._want == "time" or silent) and call_on_main_thread(self._slice):
                # One that waits for a busy main thread must not be followed by the next at once: that slice would be empty.
                while not self._sliced.wait(SLICE_S):
                    if self._stop.is_set():
                        return
                self._sliced.clear()

    def _slice(self) -> None:
        try:
            if self.kind is None:
                self._choose("time", "", 0)
            if self.kind == "time" and not self._stop.is_set():
                self._beat_here()
        finally:
            self._sliced.set()
