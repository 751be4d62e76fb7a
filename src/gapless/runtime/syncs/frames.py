"""Which line of the user's code is running on this thread, and through which of torch's functions and modules?"""

from __future__ import annotations

import functools
import linecache
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Literal

import torch

import gapless

Owner = Literal["user", "package", "stdlib", "torch", "own"]

_TORCH = str(Path(torch.__file__).parent)
_OWN = str(Path(gapless.__file__).parent)
_STDLIB = tuple({sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib")})
_MODE_METHODS = frozenset({"__torch_function__", "__torch_dispatch__", "fire_callbacks"})
_OPS = str(Path(_TORCH) / "_ops.py")
_MODULE_CALL = str(Path(_TORCH) / "nn" / "modules" / "module.py")


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the source; without a file, a node of autograd's backward pass.

    `code` and `offset` find the exact expression when somebody asks for it.
    """

    file: str
    line: int
    function: str
    module: str
    code: CodeType | None = field(default=None, compare=False, repr=False)
    offset: int = field(default=-1, compare=False, repr=False)

    def expression(self) -> str:
        """The expression that was running (`loss.item()`), else its whole line, else the function's name."""
        if not self.file:
            return self.function
        line = linecache.getline(self.file, self.line)
        if self.code is not None and self.offset >= 0:
            positions = list(self.code.co_positions())
            if self.offset // 2 < len(positions):
                first, last, begin, end = positions[self.offset // 2]
                if first == last == self.line and begin is not None and end is not None:
                    return line.encode()[begin:end].decode(errors="replace").strip()
        return line.strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else "backward pass"


@dataclass(frozen=True, slots=True)
class Location:
    """Where a thread is. site: innermost frame of the user. via: innermost frame of a package, if deeper than `site`.

    entries: torch's Python functions inside both, outermost first. module_path: the running `nn.Module`, '' if none.
    """

    site: Site
    via: Site | None
    entries: tuple[str, ...]
    module_path: str


@functools.lru_cache(maxsize=4096)
def owner_of(file: str) -> Owner:
    """Whose code a file is: the user's, an installed package's, Python's, torch's or ours."""
    if file.startswith((_TORCH, "<eval_with_key>")) or "torchinductor_" in file:
        return "torch"
    if file.startswith(_OWN):
        return "own"
    if "site-packages" in file or "dist-packages" in file:
        return "package"
    if file.startswith(("<frozen", *_STDLIB)):
        return "stdlib"
    return "user"


def locate(frame: FrameType | None, *, deps: bool = False) -> Location:
    """Where the thread of `frame` is; with `deps` installed packages count as the user's code."""
    site: Site | None = None
    via: Site | None = None
    entries: list[str] = []
    modules: list[object] = []
    while frame is not None:
        code = frame.f_code
        # A mode or hook stands between the user's line and the op, whoever wrote it.
        owner: Owner = (
            "own" if code.co_name in _MODE_METHODS or code.co_filename == _OPS else owner_of(code.co_filename)
        )
        if owner == "torch":
            if site is None and via is None:
                entries.append(code.co_qualname)
                entries.append(f"{frame.f_globals.get('__name__', '')}.{code.co_qualname}")
            if code.co_name == "_call_impl" and code.co_filename == _MODULE_CALL:
                modules.append(frame.f_locals.get("self"))
        elif site is None and (owner == "user" or (deps and owner == "package")):
            site = _site(frame)
        elif via is None and site is None and owner == "package":
            via = _site(frame)
        frame = frame.f_back
    if site is None:
        site, via = via or _autograd_site(), None
    return Location(site, via, tuple(reversed(entries)), module_path(modules))


def module_path(innermost_first: list[object]) -> str:
    """Name of the innermost running module, as its outermost one knows it: `Net.layers.3`."""
    modules = [module for module in innermost_first if isinstance(module, torch.nn.Module)]
    if not modules:
        return ""
    root = modules[-1]
    for module in modules:
        for name, candidate in root.named_modules(remove_duplicate=True):
            if candidate is module:
                return f"{type(root).__name__}.{name}" if name else type(root).__name__
    return type(root).__name__


def _site(frame: FrameType) -> Site:
    code = frame.f_code
    module = frame.f_globals.get("__name__", "")
    return Site(code.co_filename, frame.f_lineno, code.co_qualname, str(module), code, frame.f_lasti)


def _autograd_site() -> Site:
    """Autograd's own threads have no Python frame: the running node (`IndexBackward0`) stands for the line."""
    current = getattr(torch._C, "_current_autograd_node", None)
    node = current() if current is not None else None
    return Site("", 0, node.name() if node is not None else "", "torch.autograd")
