"""How is a read trace kept on disk, so that the second read is quick?"""

from __future__ import annotations

from gapless.store.folder import default_cache_dir
from gapless.store.loading import load

__all__ = ["default_cache_dir", "load"]
