"""Where can a step's boundary be heard: optimizers, data loaders, top-level modules, a named function?

Each source is installed, calls `heard(label, key)` at every event, and is removed again. `key` tells apart several
optimizers, data sets or modules. None of them changes what the hooked code does or returns.
"""

from __future__ import annotations

import functools
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data import dataloader

Heard = Callable[[str, int], None]


class Source(Protocol):
    """One way to hear steps."""

    def install(self) -> None:
        """Begin to listen."""

    def narrow(self, key: int) -> None:
        """One of several was chosen: listen to it at the least cost."""

    def remove(self) -> None:
        """Stop listening and put everything back that nobody replaced meanwhile."""


class OptimizerSource:
    """Hears the end of each `torch.optim` optimizer step.

    torch's own hook fires inside the range `Optimizer.step#...`; once one optimizer is chosen its `step` is wrapped, so
    that the boundary lies outside of that range. Where something else replaces `step`, the hook takes over again.
    """

    def __init__(self, heard: Heard) -> None:
        self.constructed = False
        self._heard = heard
        self._handle: Any = None
        self._alive = False
        self._init: Any = None
        self._patched_init: Any = None
        self._optimizer: weakref.ref[torch.optim.Optimizer] | None = None
        self._wanted: int | None = None
        self._previous: Any = None
        self._step: Any = None
        self._hook_waits = False

    def install(self) -> None:
        """Begin to listen."""
        self._alive = True
        self._handle = register_optimizer_step_post_hook(self._hook)
        optimizers: Any = torch.optim.Optimizer
        original = self._init = optimizers.__init__

        @functools.wraps(original)
        def noticed(optimizer: torch.optim.Optimizer, *args: object, **kwargs: object) -> None:
            self.constructed = True
            original(optimizer, *args, **kwargs)

        self._patched_init = noticed
        optimizers.__init__ = noticed

    def narrow(self, key: int) -> None:
        """Listen to the chosen one alone, at the least cost."""
        self._wanted = key

    def remove(self) -> None:
        """Stop listening and put everything back."""
        self._alive = False
        optimizers: Any = torch.optim.Optimizer
        if optimizers.__init__ is self._patched_init:
            optimizers.__init__ = self._init
        if self._handle is not None and not _dynamo_has_compiled():
            # Where torch.compile has compiled something, taking the hook away could invalidate a compiled optimizer:
            # there it stays, and does nothing.
            self._handle.remove()
        self._unwrap()

    def _hook(self, optimizer: torch.optim.Optimizer, _args: object, _kwargs: object) -> None:
        if torch.compiler.is_compiling() or not self._alive:
            return
        if id(optimizer) != self._wanted:
            self._heard(f"{type(optimizer).__name__}.step()", id(optimizer))
        elif self._step is None:
            self._wrap(optimizer)
            self._heard(f"{type(optimizer).__name__}.step()", id(optimizer))
        elif self._hook_waits:
            self._heard(f"{type(optimizer).__name__}.step()", id(optimizer))
        else:
            self._hook_waits = True

    def _wrap(self, optimizer: torch.optim.Optimizer) -> None:
        bound: Any = optimizer.step
        if not isinstance(bound, types.MethodType):
            return
        function = bound.__func__

        @functools.wraps(function)
        def step(this: torch.optim.Optimizer, *args: object, **kwargs: object) -> object:
            result = function(this, *args, **kwargs)
            if self._hook_waits and this is optimizer_ref():
                self._hook_waits = False
                self._heard(f"{type(this).__name__}.step()", id(this))
            return result

        optimizer_ref = self._optimizer = weakref.ref(optimizer)
        self._previous = optimizer.__dict__.get("step")
        self._step = types.MethodType(step, optimizer)
        optimizer.__dict__["step"] = self._step

    def _unwrap(self) -> None:
        optimizer = self._optimizer() if self._optimizer is not None else None
        if optimizer is not None and optimizer.__dict__.get("step") is self._step:
            if self._previous is None:
                del optimizer.__dict__["step"]
            else:
                optimizer.__dict__["step"] = self._previous
        self._step = self._previous = self._optimizer = None


class LoaderSource:
    """Hears each batch that is asked of a `DataLoader`, before it is fetched."""

    def __init__(self, heard: Heard) -> None:
        self._heard = heard
        self._original: Any = None
        self._placed: Any = None

    def install(self) -> None:
        """Begin to listen."""
        base: Any = dataloader._BaseDataLoaderIter
        original = self._original = base.__next__

        @functools.wraps(original)
        def fetch(iterator: object) -> object:
            if self._original is not None:
                dataset = getattr(iterator, "_dataset", None)
                self._heard(f"batch of a DataLoader over {type(dataset).__name__}", id(dataset))
            return original(iterator)

        self._placed = base.__next__ = fetch

    def narrow(self, key: int) -> None:
        """All loaders are heard by one patch; the caller compares keys."""

    def remove(self) -> None:
        """Stop listening and put everything back."""
        base: Any = dataloader._BaseDataLoaderIter
        if base.__next__ is self._placed:
            base.__next__ = self._original
        self._original = None


class ForwardSource:
    """Hears each call of a module that no other module's call contains.

    While it looks, `Module.__call__` is wrapped; once a module is chosen, only that module's class is.
    """

    def __init__(self, heard: Heard) -> None:
        self._heard = heard
        self._inside = threading.local()
        self._seen: weakref.WeakValueDictionary[int, nn.Module] = weakref.WeakValueDictionary()
        self._original: Any = None
        self._placed: Any = None
        self._class: type[nn.Module] | None = None
        self._class_had: Any = None
        self._class_placed: Any = None

    def install(self) -> None:
        """Begin to listen."""
        original: Any = nn.Module.__call__
        inside = self._inside

        @functools.wraps(original)
        def call(module: nn.Module, *args: object, **kwargs: object) -> object:
            if torch.compiler.is_compiling() or self._original is None or getattr(inside, "now", False):
                return original(module, *args, **kwargs)
            if _within_a_module():
                return original(module, *args, **kwargs)
            inside.now = True
            try:
                self._seen[id(module)] = module
                self._heard(f"call of {type(module).__name__}", id(module))
                return original(module, *args, **kwargs)
            finally:
                inside.now = False

        self._original, self._placed = original, call
        nn.Module.__call__ = call  # type: ignore[method-assign]

    def narrow(self, key: int) -> None:
        """Listen to the chosen one alone, at the least cost."""
        module = self._seen.get(key)
        if module is None or self._class is not None:
            return
        owner = type(module)
        original: Any = self._original if owner.__call__ is self._placed else owner.__call__
        chosen = weakref.ref(module)

        @functools.wraps(original)
        def call(this: nn.Module, *args: object, **kwargs: object) -> object:
            if this is chosen() and self._class is not None:
                self._heard(f"call of {type(this).__name__}", id(this))
            return original(this, *args, **kwargs)

        self._remove_search()
        self._class, self._class_had, self._class_placed = owner, owner.__dict__.get("__call__"), call
        owner.__call__ = call  # type: ignore[method-assign]

    def remove(self) -> None:
        """Stop listening and put everything back."""
        self._remove_search()
        owner, self._class = self._class, None
        if owner is not None and owner.__dict__.get("__call__") is self._class_placed:
            if self._class_had is None:
                del owner.__call__
            else:
                owner.__call__ = self._class_had  # type: ignore[method-assign]

    def _remove_search(self) -> None:
        if self._original is not None and nn.Module.__call__ is self._placed:
            nn.Module.__call__ = self._original  # type: ignore[method-assign]
        self._original = None


class FunctionSource:
    """Hears each call of `module.path:function` (or `:Class.method`), as soon as that name exists."""

    def __init__(self, heard: Heard, target: str) -> None:
        self._heard = heard
        self._module, _, self._path = target.partition(":")
        self._stop = threading.Event()
        self._place: tuple[Any, str, Any, Any] | None = None

    def install(self) -> None:
        """Begin to listen."""
        if not self._try():
            threading.Thread(target=self._look, name="gapless-step-on", daemon=True).start()

    def exists(self) -> bool:
        """Whether the name stands for something that can be called, hooked or not."""
        return self._place is not None or self._lookup() is not None

    def narrow(self, key: int) -> None:
        """There is one function."""

    def remove(self) -> None:
        """Stop listening and put everything back."""
        self._stop.set()
        if self._place is not None:
            owner, name, original, placed = self._place
            if owner.__dict__.get(name) is placed:
                setattr(owner, name, original)

    def _look(self) -> None:
        while not self._stop.wait(0.02):
            if self._try():
                return

    def _lookup(self) -> tuple[Any, str, Any] | None:
        """What holds the function, its name there and the function itself; None while there is none."""
        *parents, name = self._path.split(".")
        owner: Any = sys.modules.get(self._module)
        for parent in parents:
            owner = getattr(owner, parent, None)
        original = owner.__dict__.get(name) if owner is not None and hasattr(owner, "__dict__") else None
        usable = callable(original) or isinstance(original, classmethod)
        return (owner, name, original) if usable else None

    def _try(self) -> bool:
        found = self._lookup()
        if found is None:
            return False
        owner, name, original = found
        rewrap = type(original) if isinstance(original, (staticmethod, classmethod)) else None
        function = original.__func__ if rewrap is not None else original

        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> object:
            if not torch.compiler.is_compiling() and not self._stop.is_set():
                self._heard(f"call of {self._module}:{self._path}", 0)
            return function(*args, **kwargs)

        placed = call if rewrap is None else rewrap(call)
        self._place = (owner, name, original, placed)
        setattr(owner, name, placed)
        return True


def _within_a_module() -> bool:
    """Whether a module's call is on this thread's Python stack."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name in ("_call_impl", "_wrapped_call_impl"):
            return True
        frame = frame.f_back
    return False


def _dynamo_has_compiled() -> bool:
    utils: Any = sys.modules.get("torch._dynamo.utils")
    return utils is not None and utils.counters["frames"]["total"] > 0
