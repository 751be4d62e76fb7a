"""The committed bundle belongs to the committed source, and stays small."""

from __future__ import annotations

import gzip
import hashlib
from importlib.resources import files
from pathlib import Path

import pytest

ASSETS = files("gapless.render").joinpath("assets")
SOURCE = Path(__file__).resolve().parents[3] / "web" / "src"
MOST_SCRIPT_BYTES = 60_000


def test_the_bundle_was_built_from_this_source() -> None:
    if not SOURCE.is_dir():
        pytest.skip("the page's source (web/src) is not here")
    digest = hashlib.sha256()
    for file in sorted(SOURCE.iterdir()):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    stored = ASSETS.joinpath("SOURCE.sha256").read_text().strip()
    assert stored == digest.hexdigest(), "run `npm run build` in web/ and commit src/gapless/render/assets"


def test_the_script_is_small() -> None:
    assert len(gzip.compress(ASSETS.joinpath("report.js").read_bytes())) < MOST_SCRIPT_BYTES


def test_nothing_in_the_bundle_ends_its_element_or_names_an_address() -> None:
    script = ASSETS.joinpath("report.js").read_text("utf-8")
    style = ASSETS.joinpath("report.css").read_text("utf-8")
    assert "</script" not in script.lower()
    assert "</style" not in style.lower()
    for text in (script, style):
        assert "http://" not in text
        assert "https://" not in text
        assert "@import" not in text
