"""gapless: where a PyTorch program waits, why, and what fixing each wait will bring.

    t = gapless.load("trace.json.gz")      # a Trace: t.kernels, t.ops, t.syncs, t.gaps ... are lazy frames
    gapless.report(t)                      # shows itself in a notebook; .report, .to_dict()
    gapless.diff(before, after)            # two Traces: what a change really changed; .diff, .to_dict()
    gapless.measure(fn)                    # with torch: honest GPU timing; also compare, profile, watch_syncs, preview_syncs, streams

Importing the package loads nothing else: each name is fetched when it is first used. `__init__.pyi` has their types.
"""

from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "load": "gapless.api",
    "report": "gapless.api",
    "diff": "gapless.api",
    "profile": "gapless.runtime.recorder.inline",
    "trainer_callback": "gapless.runtime.recorder.integrations",
    "lightning_callback": "gapless.runtime.recorder.integrations",
    "measure": "gapless.runtime.timing",
    "compare": "gapless.runtime.timing",
    "watch_syncs": "gapless.runtime.syncs",
    "preview_syncs": "gapless.runtime.syncs",
    "streams": "gapless.runtime",
}
"""Public name -> the module it is fetched from on first use; those in `gapless.runtime` need torch."""

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name not in _HOMES:
        raise AttributeError(f"module 'gapless' has no attribute {name!r}; it has {', '.join(__all__)}")
    import importlib

    home = importlib.import_module(_HOMES[name])
    value = getattr(home, name, None) or importlib.import_module(f"{_HOMES[name]}.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
