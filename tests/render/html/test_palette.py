"""The colours can be told apart by everyone: measured, pair by pair, for normal and simulated colour-blind sight."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from gapless.analyses.accounting import STATES
from gapless.analyses.gaps import GAP_CAUSES
from gapless.model import palette

# Machado, Oliveira and Fernandes (2009), severity 1.0, on linear RGB.
SIGHT = {
    "normal": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}  # fmt: skip
_TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def _linear(colour: str) -> np.ndarray:
    value = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def _oklab(linear: np.ndarray) -> np.ndarray:
    return _TO_LAB @ np.cbrt(_TO_CONES @ np.clip(linear, 0, 1))


@pytest.mark.parametrize("sight", SIGHT)
def test_every_pair_of_families_stays_apart(sight: str) -> None:
    seen = {name: _oklab(SIGHT[sight] @ _linear(colour)) for name, colour in palette.FAMILY_COLOURS.items()}
    apart = {(a, b): float(np.linalg.norm(seen[a] - seen[b])) * 100 for a, b in combinations(seen, 2)}
    closest = min(apart, key=lambda pair: apart[pair])
    assert apart[closest] >= 12, closest


@pytest.mark.parametrize("page", ["#ffffff", "#141a24"])
def test_every_family_is_seen_on_white_and_on_the_dark_page(page: str) -> None:
    for name, colour in palette.FAMILY_COLOURS.items():
        light = np.array([0.2126, 0.7152, 0.0722])
        a, b = float(light @ _linear(colour)) + 0.05, float(light @ _linear(page)) + 0.05
        assert max(a, b) / min(a, b) >= 1.35, name


def test_every_state_and_cause_of_the_accounting_has_a_family() -> None:
    assert {palette.family(state) for state in STATES if state != "idle"} == {
        "compute",
        "communication",
        "copy",
        "unknown",
    }
    unknown = {cause for cause in GAP_CAUSES if palette.family("idle", cause) == "unknown"}
    assert unknown == {"profiler", "untraced", "unrecorded"}


def test_kinds_without_a_colour_of_their_own_fall_back() -> None:
    assert palette.box_colour("kernel:new") == palette.BOX_COLOURS["kernel:other"]
    assert palette.box_colour("new") == palette.BOX_COLOURS["op"]
