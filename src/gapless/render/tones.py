"""How does a text or a bar stand out on a terminal? Colours of states are `model.palette`'s, the same as the page's."""

from __future__ import annotations

from typing import Literal

Tone = Literal["plain", "strong", "muted", "good", "warn", "bad", "accent"]

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

GLYPHS = {
    "compute": "█", "communication": "▓", "copy": "▒", "idle": "░", "unrecorded": "·",
    "work": "█", "launch": "▓", "queue-full": "▒", "wait": "░", "profiler": "·", "outside": "·",
}  # fmt: skip
"""State -> fill of a bar, so that it reads without colour too."""
