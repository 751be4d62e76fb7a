"""The package hands out its names on first use, and says what it has."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest

import gapless
from gapless.cli import registry

from .harness import python


def test_reading_needs_no_torch() -> None:
    code = "import sys, gapless; gapless.load, gapless.report; print('torch' in sys.modules, 'polars' in sys.modules)"
    assert python(code) == "False True\n"


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("name", sorted(gapless._HOMES))
def test_every_public_name_can_be_had(name: str) -> None:
    assert python(f"import gapless; print(callable(gapless.{name}) or gapless.{name}.__name__)") in {
        "True\n",
        f"gapless.runtime.{name}\n",
    }


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(AttributeError, match="it has __version__, load, report"):
        gapless.nonsense  # noqa: B018
    assert "load" in dir(gapless)


def test_the_readme_names_every_verb_and_public_name() -> None:
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text()
    assert [verb for verb in registry.VERBS if f"`gapless {verb}" not in readme] == []
    assert [name for name in gapless._HOMES if f"gapless.{name}" not in readme] == []


def test_the_stub_names_the_same() -> None:
    stub = ast.parse((Path(gapless.__file__).parent / "__init__.pyi").read_text())
    imported = {alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert imported == set(gapless._HOMES)
