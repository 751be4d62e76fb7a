"""gapless: where a PyTorch program waits, why, and what fixing each wait will bring."""

__version__ = "0.1.0"
