"""Every `gapless.<name>` and `gapless <verb>` that README and docs mention exists."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path

import pytest

import gapless
from gapless.cli import registry

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NAME = re.compile(r"(?<![\w./@-])gapless((?:\.[A-Za-z_]\w*)+)(?!\w*[/*])")
MODULE_OR_SCHEMA = re.compile(r"gapless\.\w+/\d|gapless\.(?:json|md|toml|html)\b")
VERB = re.compile(r"^(?:    |\$ )?gapless ([a-z]+)\b|`gapless ([a-z]+)\b", re.M)


def resolved(dotted: str) -> bool:
    """Whether attributes, or submodules, lead from the package to this name."""
    value: object = gapless
    path = "gapless"
    for part in dotted.strip(".").split("."):
        path += f".{part}"
        if not hasattr(value, part):
            try:
                value = importlib.import_module(path)
            except ImportError:
                return False
        else:
            value = getattr(value, part)
    return True


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_name_that_a_page_uses_exists(page: Path) -> None:
    text = MODULE_OR_SCHEMA.sub("", page.read_text("utf-8"))
    assert sorted({name for name in NAME.findall(text) if not resolved(name)}) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_verb_that_a_page_uses_exists(page: Path) -> None:
    verbs = {one or other for one, other in VERB.findall(page.read_text("utf-8"))}
    assert sorted(verbs - set(registry.VERBS)) == []


def test_a_name_that_does_not_exist_would_be_noticed() -> None:
    assert not resolved(".nonsense")
    assert not resolved(".streams.nonsense")
    assert resolved(".streams.prefetch")
    assert NAME.findall("`gapless.preview_syncs(f)` and gapless.load(x)") == [".preview_syncs", ".load"]
