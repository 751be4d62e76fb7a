"""How does a file become typed tables? One reader a format; nothing here knows what the events mean for performance."""

from __future__ import annotations

from gapless.ingest.reader import read

__all__ = ["read"]
