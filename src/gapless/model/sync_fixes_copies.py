"""Which copies and runtime calls make the host wait for the GPU?"""

from __future__ import annotations

from gapless.model.sync_fix import SyncFix

COPIES: tuple[SyncFix, ...] = (
    SyncFix(
        "small-upload",
        ("torch.tensor", "torch.as_tensor", "torch.asarray", "torch.from_numpy", "aten::lift_fresh"),
        "false",
        "Values built on the host are copied from ordinary (pageable) memory, and the host waits for that copy.",
        "scale = torch.full((), 3.0, device=device)\nsteps = torch.arange(n, device=device)",
        "Constants: build them once, before the loop. Values that change: a pinned buffer and non_blocking=True.",
    ),
    SyncFix(
        "pin-in-step",
        ("Tensor.pin_memory", "aten::pin_memory", "aten::_pin_memory"),
        "false",
        "Pinning allocates locked memory and copies on the host, which takes longer than the upload that it speeds up.",
        "loader = torch.utils.data.DataLoader(batch, batch_size=2, pin_memory=device.type == 'cuda')",
        "Pin in the loader (its own thread), or keep one pinned buffer and copy into it.",
    ),
    SyncFix(
        "upload",
        ("copy:HtoD",),
        "false",
        "The source is ordinary (pageable) memory: the host waits for the stream and for the staged copy.",
        "batch = batch.pin_memory() if device.type == 'cuda' else batch\nx = batch.to(device, non_blocking=True)",
        "Pin where the batch is made (`DataLoader(pin_memory=True)`), not here; made on the host right before: "
        "`torch.zeros(n, device=device)`. One batch ahead: `gapless.streams.prefetch(loader, device)`.",
    ),
    SyncFix(
        "pageable-upload",
        ("copy:HtoD:pageable:non_blocking",),
        "false",
        "`non_blocking=True` has no effect from pageable memory: the call stalls for the whole queue, and neither "
        "set_sync_debug_mode nor torch's trace hooks see it.",
        "batch = batch.pin_memory() if device.type == 'cuda' else batch\nx = batch.to(device, non_blocking=True)",
        "Pin where the batch is made (`DataLoader(pin_memory=True)`): pinning here costs what it saves.",
    ),
    SyncFix(
        "pinned-upload",
        ("copy:HtoD:pinned",),
        "false",
        "The source is pinned, but the copy was asked to block.",
        "x = batch.to(device, non_blocking=True)",
        "Do not overwrite the pinned source before the copy is done (an event recorded after it says when).",
    ),
    SyncFix(
        "readback",
        ("copy:DtoH",),
        "true",
        "A blocking copy to the host waits for everything queued before it.",
        "from gapless import streams\nhandle = streams.to_host(x)\nx = x * 2\nvalues = handle.result()",
        "Ask for the result as late as possible, better in the next step; to write it to disk: `streams.save_async`.",
    ),
    SyncFix(
        "pageable-readback",
        ("copy:DtoH:pageable:non_blocking",),
        "false",
        "`non_blocking=True` into pageable memory stalls for the whole queue, unseen by torch's own detectors.",
        "host = torch.empty(x.shape, dtype=x.dtype, pin_memory=x.is_cuda)\nhost.copy_(x, non_blocking=True)\n"
        "done = torch.cuda.current_stream().record_event() if x.is_cuda else None\nx = x * 2\n"
        "if done is not None:\n    done.synchronize()\nvalues = host.sum()",
        "Wait for the event before the host reads `host`; `gapless.streams.to_host` does all of this.",
    ),
)

CALLS: tuple[SyncFix, ...] = (
    SyncFix(
        "device-sync",
        (
            "torch.cuda.synchronize",
            "torch.accelerator.synchronize",
            "cudaDeviceSynchronize",
            "hipDeviceSynchronize",
            "cuCtxSynchronize",
        ),
        "false",
        "The host waits for every stream of the device.",
        "from gapless import streams\nwith streams.timer('double'):\n    y = x * 2",
        "Needed round a host clock, and nowhere else: one stream is in order, `.cpu()` waits by itself, and streams "
        "wait for each other with wait_stream without stopping the host.",
    ),
    SyncFix(
        "stream-sync",
        ("Stream.synchronize", "cudaStreamSynchronize", "hipStreamSynchronize", "cuStreamSynchronize"),
        "false",
        "The host waits for one stream.",
        "from gapless import streams\nwith streams.side_stream(x):\n    y = x * 2\nx = x + y",
        "If another stream needs the result, `wait_stream` keeps the host free.",
    ),
    SyncFix(
        "event-sync",
        ("Event.synchronize", "cudaEventSynchronize", "hipEventSynchronize", "cuEventSynchronize"),
        "true",
        "The host waits for one event: right before it reads what the event covers, and only then.",
        "from gapless import streams\nhandle = streams.to_host(x)\nx = x * 2\nready = handle.done()",
        "`event.query()` asks without waiting.",
    ),
    SyncFix(
        "empty-cache",
        (
            "torch.cuda.empty_cache",
            "torch.cuda.memory.empty_cache",
            "torch.accelerator.empty_cache",
            "cudaFree",
            "hipFree",
        ),
        "false",
        "Giving memory back to the driver waits for the device, and the next allocations must ask for it again.",
        "del y",
        "The allocator reuses freed memory by itself; against fragmentation set "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
    ),
    SyncFix(
        "device-alloc",
        ("cudaMalloc", "hipMalloc", "cuMemCreate", "cuMemMap"),
        "false",
        "The allocator had no cached block and asked the driver, which can wait for the device.",
        "buffer = torch.empty(n, device=device)",
        "Allocate before the loop and keep shapes the same; a cache emptied in the loop causes this.",
    ),
    SyncFix(
        "host-alloc",
        ("cudaHostAlloc", "cudaFreeHost", "cudaHostRegister", "hipHostMalloc", "hipHostFree"),
        "false",
        "Allocating or freeing pinned memory is slow and can wait for the device.",
        "buffer = torch.empty(n, pin_memory=device.type == 'cuda')",
        "Allocate pinned buffers once and copy into them.",
    ),
    SyncFix(
        "blocking-memcpy",
        ("cudaMemcpy", "hipMemcpyWithStream", "hipMemcpy"),
        "true",
        "This call copies and waits in one (on AMD the wait is inside it, with no separate sync record).",
        "from gapless import streams\nhandle = streams.to_host(x)\nx = x * 2\nvalues = handle.result()",
        "Uploads: pinned memory and non_blocking=True.",
    ),
    SyncFix(
        "scalar-read",
        ("aten::_local_scalar_dense",),
        "true",
        "One number is copied to the host and the host waits for it.",
        "flags = torch.stack([x.isfinite().all(), y.isfinite().all()])\nok = flags.all()",
        "Many such reads per step: combine the flags on the device and read once.",
    ),
    SyncFix(
        "unknown-wait",
        (),
        "true",
        "The host waits for the GPU inside this call; what it reads is not known to the table.",
        "from gapless import streams\nhandle = streams.to_host(x)\nx = x * 2\nvalues = handle.result()",
        "Look at the named op; `gapless syncs --trace` shows the copy or call underneath.",
    ),
)
