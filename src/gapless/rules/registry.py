"""Which rules are there? Each module of `gapless.rules` with a CODE, in the order in which ties are listed."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

import gapless.rules as package
from gapless.rules.context import Context
from gapless.rules.outcome import Outcome

_NOT_RULES = {"context", "judge", "outcome", "registry", "verdict"}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its code, the kind of finding, its check and its page (the module's docstring, Markdown)."""

    code: str
    kind: str
    check: Callable[[Context], Outcome]
    page: str


def rules() -> list[Rule]:
    """All rules, by code."""
    found = []
    for module in pkgutil.iter_modules(package.__path__):
        if module.name in _NOT_RULES or module.name.startswith("_"):
            continue
        loaded = importlib.import_module(f"gapless.rules.{module.name}")
        found.append(Rule(loaded.CODE, loaded.KIND, loaded.check, (loaded.__doc__ or "").strip() + "\n"))
    return sorted(found, key=lambda rule: rule.code)


def pages() -> dict[str, str]:
    """Rule code -> its documentation page."""
    return {rule.code: rule.page for rule in rules()}


def __getattr__(name: str) -> dict[str, str]:
    if name == "PAGES":
        return pages()
    raise AttributeError(name)
