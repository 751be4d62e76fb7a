"""Which lines make the host wait for the GPU without saying so? The watch and the preview without a GPU."""

from gapless.runtime.syncs.findings import SyncFinding, SyncReport
from gapless.runtime.syncs.gate import HiddenSyncError
from gapless.runtime.syncs.races import HostRaceError, Race
from gapless.runtime.syncs.watch import SyncWatch, watch_syncs

__all__ = ["HiddenSyncError", "HostRaceError", "Race", "SyncFinding", "SyncReport", "SyncWatch", "watch_syncs"]
