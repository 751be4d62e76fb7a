"""gapless: where a PyTorch program waits, why, and what fixing each wait will bring.

    t = gapless.load("trace.json.gz")      # a Trace: t.kernels, t.ops, t.syncs, t.gaps ... are lazy frames
    gapless.report(t)                      # shows itself in a notebook; .report, .to_dict()

Importing the package loads nothing else: each name is fetched when it is first used.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from gapless.api import load as load
    from gapless.api import report as report

_HOMES = {
    "load": "gapless.api",
    "report": "gapless.api",
}
"""Public name -> the module it is fetched from on first use."""

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name not in _HOMES:
        raise AttributeError(f"module 'gapless' has no attribute {name!r}; it has {', '.join(__all__)}")
    import importlib

    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
