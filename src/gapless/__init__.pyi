from gapless.api import diff as diff
from gapless.api import load as load
from gapless.api import report as report
from gapless.runtime import streams as streams
from gapless.runtime.recorder.inline import profile as profile
from gapless.runtime.recorder.integrations import lightning_callback as lightning_callback
from gapless.runtime.recorder.integrations import trainer_callback as trainer_callback
from gapless.runtime.syncs import preview_syncs as preview_syncs
from gapless.runtime.syncs import watch_syncs as watch_syncs
from gapless.runtime.timing import compare as compare
from gapless.runtime.timing import measure as measure

__version__: str
__all__: list[str]
