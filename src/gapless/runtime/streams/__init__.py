"""How is a stream, an asynchronous copy or an event used rightly? The right form as the short one.

`side_stream` runs work beside the current stream, `to_host` and `save_async` bring values to the host and the disk,
`prefetch` brings batches to the GPU, `timer` times without stopping anything. All of them work on the CPU too.
"""

from gapless.runtime.streams.prefetch import Prefetch, prefetch
from gapless.runtime.streams.save import Saving, save_async
from gapless.runtime.streams.side import SideStream, side_stream
from gapless.runtime.streams.timer import Timer, timer, timers
from gapless.runtime.streams.to_host import HostCopy, to_host

__all__ = [
    "HostCopy", "Prefetch", "Saving", "SideStream", "Timer", "prefetch", "save_async", "side_stream", "timer",
    "timers", "to_host",
]  # fmt: skip
