"""Which lines make the host wait for the GPU without saying so? The watch and the preview without a GPU."""

from gapless.runtime.syncs.findings import SyncFinding, SyncReport
from gapless.runtime.syncs.gate import HiddenSyncError
from gapless.runtime.syncs.preview import Preview, preview_syncs
from gapless.runtime.syncs.preview_notes import PredictedWait
from gapless.runtime.syncs.races import HostRaceError, Race
from gapless.runtime.syncs.standins import StandIns
from gapless.runtime.syncs.watch import SyncWatch, watch_syncs

__all__ = [
    "HiddenSyncError", "HostRaceError", "PredictedWait", "Preview", "Race", "StandIns", "SyncFinding", "SyncReport",
    "SyncWatch", "preview_syncs", "watch_syncs",
]  # fmt: skip
