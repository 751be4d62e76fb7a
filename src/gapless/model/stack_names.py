"""What is the window with stacks called that lies beside a trace of the same program?"""

from __future__ import annotations

SUFFIXES = (".json.gz", ".json")


def stack_names(name: str) -> list[str]:
    """The names it may have: `x.stack.json.gz` and `x.stack.json` for `x.json.gz` and `x.json`, written ones first.

    None for a name that is such a window's itself, or no trace's.
    """
    for suffix in SUFFIXES:
        if name.endswith(suffix) and not name.endswith(".stack" + suffix):
            return [f"{name.removesuffix(suffix)}.stack{ending}" for ending in SUFFIXES]
    return []
