"""How do we learn that the script has imported torch, without importing it first?

torch reads environment variables while it is imported, and scripts set them before: so the recorder waits.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType


class _Loader(importlib.abc.Loader):
    """Runs the real loader, puts it back where it was, and then calls."""

    def __init__(self, real: importlib.abc.Loader, loaded: Callable[[], None]) -> None:
        self._real = real
        self._loaded = loaded

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        self._real.exec_module(module)
        self._loaded()


class WhenTorchLoads(importlib.abc.MetaPathFinder):
    """A finder that steps in for the top-level name `torch` once."""

    def __init__(self, loaded: Callable[[], None]) -> None:
        self._loaded = loaded

    def install(self) -> None:
        """Begin to wait; where torch is there already, call at once."""
        if "torch" in sys.modules:
            self._loaded()
        else:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Wait no longer."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec that the other finders give, with a loader that tells us."""
        if fullname != "torch":
            return None
        self.remove()
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec: importlib.machinery.ModuleSpec | None = find(fullname, path, target) if find is not None else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, self._loaded)
                return spec
        return None
