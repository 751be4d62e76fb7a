"""Which colour means what? One colour-blind-safe table for terminal, page and documentation.

The hues are the eight that Okabe and Ito chose to be told apart by people with colour-vision deficiencies.
"""

from __future__ import annotations

from typing import Literal

Tone = Literal["plain", "strong", "muted", "good", "warn", "bad", "accent"]

HEX = {
    "compute": "#0072b2",
    "communication": "#cc79a7",
    "copy": "#e69f00",
    "unrecorded": "#999999",
    "idle": "#d55e00",
    "work": "#009e73",
    "wait": "#d55e00",
    "launch": "#56b4e9",
    "queue-full": "#f0e442",
    "profiler": "#999999",
    "outside": "#bbbbbb",
}
"""State of a device or host thread -> colour. An unknown state is shown in the colour of `outside`."""

GLYPHS = {
    "compute": "█", "communication": "▓", "copy": "▒", "idle": "░", "unrecorded": "·",
    "work": "█", "launch": "▓", "queue-full": "▒", "wait": "░", "profiler": "·", "outside": "·",
}  # fmt: skip
"""State -> fill of a bar, so that it reads without colour too."""

TONES: dict[Tone, str] = {
    "plain": "",
    "strong": "bold",
    "muted": "dim",
    "good": "green",
    "warn": "yellow",
    "bad": "red",
    "accent": "cyan",
}
"""Tone of a text -> terminal style."""


def colour(state: str) -> str:
    """The state's colour as #rrggbb."""
    return HEX.get(state, HEX["outside"])
