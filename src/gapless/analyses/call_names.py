"""What does a runtime or driver call do: launch, block, allocate, or none of these?

Names follow CUPTI, roctracer and PTI records (suffixes `_v2`, `_ptsz`, `_ptds` removed first). Which calls block, and
until when, is NVIDIA's "API synchronization behavior" page, borne out by traces: device and stream synchronisation,
event synchronisation and synchronous copies wait for GPU work; allocation and pinning are slow and may wait;
`cudaEventRecord`, `cudaEventQuery` and `cudaStreamWaitEvent` never block the host.
"""

from __future__ import annotations

import re
from enum import IntEnum


class CallClass(IntEnum):
    """Kinds of calls, by what they do to the host and the GPU."""

    OTHER = 0
    LAUNCH = 1
    GRAPH_LAUNCH = 2
    COPY = 3
    MEMSET = 4
    SYNC_DEVICE = 5
    SYNC_STREAM = 6
    SYNC_EVENT = 7
    COPY_SYNC = 8
    ALLOC = 9
    FREE = 10
    PIN = 11
    EVENT = 12
    WAIT_EVENT = 13
    MODULE = 14
    CAPTURE = 15


SYNCS = (CallClass.SYNC_DEVICE, CallClass.SYNC_STREAM, CallClass.SYNC_EVENT, CallClass.COPY_SYNC)
LAUNCHES = (CallClass.LAUNCH, CallClass.GRAPH_LAUNCH, CallClass.COPY, CallClass.MEMSET, CallClass.COPY_SYNC)

_SUFFIX = re.compile(r"(_ptsz|_ptds|_v\d+)+$")
_PATTERNS: tuple[tuple[str, CallClass], ...] = (
    (r"GraphLaunch", CallClass.GRAPH_LAUNCH),
    (r"(BeginCapture|EndCapture|GraphInstantiate|GraphExec|GraphUpload|GraphCreate|GraphDestroy)", CallClass.CAPTURE),
    (
        r"LaunchKernel|LaunchCooperative|LaunchHostFunc|EnqueueKernelLaunch|AppendLaunchKernel|hipLaunch",
        CallClass.LAUNCH,
    ),
    (r"(DeviceSynchronize|CtxSynchronize|ThreadSynchronize)", CallClass.SYNC_DEVICE),
    (r"(StreamSynchronize|QueueFinish|FenceHostSynchronize|CommandQueueSynchronize)", CallClass.SYNC_STREAM),
    (r"(EventSynchronize|EventHostSynchronize|EventWait$|urEventWait)", CallClass.SYNC_EVENT),
    (r"StreamWaitEvent", CallClass.WAIT_EVENT),
    (r"hipMemcpyWithStream", CallClass.COPY_SYNC),
    (r"Memcpy.*Async|MemBufferWrite|MemBufferRead|MemBufferCopy|AppendMemoryCopy|EnqueueUSMMemcpy", CallClass.COPY),
    (r"Memcpy(?!.*Attribute)", CallClass.COPY_SYNC),
    (r"Memset|MemBufferFill|EnqueueUSMFill|AppendMemoryFill", CallClass.MEMSET),
    (r"(HostAlloc|MallocHost|HostMalloc|HostRegister|HostUnregister|FreeHost|HostFree)", CallClass.PIN),
    (r"(Malloc|MemAlloc|MemCreate|MemMap|MemAddressReserve|MemSetAccess|MemImport)", CallClass.ALLOC),
    (r"(Free|MemRelease|MemUnmap|MemAddressFree)", CallClass.FREE),
    (r"(EventRecord|EventQuery|EventCreate|EventDestroy|EventElapsed|StreamQuery)", CallClass.EVENT),
    (r"(ModuleLoad|LibraryLoad|ModuleGetFunction|LibraryGetKernel|FuncGetAttributes|ModuleUnload)", CallClass.MODULE),
)
_COMPILED = tuple((re.compile(pattern), kind) for pattern, kind in _PATTERNS)


def base_name(name: str) -> str:
    """The API name without version and per-thread-stream suffixes."""
    return _SUFFIX.sub("", name)


def classify_call(name: str) -> CallClass:
    """What does the call named `name` do? Unknown names are OTHER."""
    plain = base_name(name)
    for pattern, kind in _COMPILED:
        if pattern.search(plain):
            return kind
    return CallClass.OTHER
