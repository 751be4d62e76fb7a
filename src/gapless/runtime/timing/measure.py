"""How long does a call take, on which side is the limit, and how far can the number be trusted?"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import torch

from gapless.model.errors import UsageError
from gapless.runtime.timing import clocks, evidence, peaks, quantities
from gapless.runtime.timing.backend import Backend, Run
from gapless.runtime.timing.checks import judge_all
from gapless.runtime.timing.facts import Facts
from gapless.runtime.timing.headline import choose
from gapless.runtime.timing.nvml import GpuState
from gapless.runtime.timing.options import Options
from gapless.runtime.timing.result import Measurement
from gapless.runtime.timing.sampling import WarmUp, warm_until_steady
from gapless.runtime.timing.session import Session
from gapless.runtime.timing.subject import Subject

__all__ = ["backend_for", "batch_timer", "measure", "measure_with"]


def measure(fn: Callable[..., object], *args: object, options: Options | None = None, **kwargs: object) -> Measurement:
    """Time `fn(*args, **kwargs)` by every definition the device allows, and say which one to quote.

    `options` is taken by gapless; a function with a parameter of that name must be wrapped in a lambda.
    """
    if not callable(fn):
        raise UsageError(
            f"measure was given {type(fn).__name__}, which cannot be called; pass the function, not its result"
        )
    chosen = options or Options()
    subject = Subject(fn, args, kwargs, grad_to_none=chosen.grad_to_none)
    backend = backend_for(subject)
    try:
        return measure_with(backend, subject, chosen)
    finally:
        backend.close()


def backend_for(subject: Subject) -> Backend:
    """The backend for the devices of the arguments; without tensors the accelerator, if there is one."""
    kind = subject.device_type()
    if torch.cuda.is_available() and kind in (None, "cpu", "cuda"):
        from gapless.runtime.timing.cuda import current_backend

        return current_backend()
    from gapless.runtime.timing.host import HostBackend

    if kind is None and torch.accelerator.is_available():
        accelerator = torch.accelerator.current_accelerator()
        kind = accelerator.type if accelerator is not None else None
    return HostBackend(kind or "cpu")


def batch_timer(run: Run, backend: Backend) -> Callable[[int], float]:
    """A function that makes n calls, waits for the device, and returns microseconds per call."""

    def batch(calls: int) -> float:
        backend.synchronize()
        start = backend.now_ns()
        for _ in range(calls):
            run()
        backend.synchronize()
        return (backend.now_ns() - start) / 1e3 / calls

    return batch


def measure_with(backend: Backend, subject: Subject, options: Options) -> Measurement:
    """`measure` on a given backend."""
    began = backend.now_ns()
    session = Session(backend, subject, options)
    run = subject.run
    distortions = evidence.distortions(cuda=backend.name == "cuda")
    before = gpu_state(backend)
    first = quantities.once(run, backend)
    session.keep(first)
    written, grads = evidence.versions(subject.inputs), evidence.gradients(subject)
    first_output = run()
    first_sum = evidence.checksum(first_output)
    footprint = subject.footprint_bytes(first_output)
    del first_output
    mutated = [i for i, (a, b) in enumerate(zip(written, evidence.versions(subject.inputs), strict=True)) if a != b]
    later = dict(evidence.gradients(subject))
    accumulated = any(later.get(key, count) > count for key, count in grads)
    session.look_for_syncs()
    warm = warm_until_steady(batch_timer(run, backend), backend.now_ns, backend.clock_mhz, min_s=options.warmup_s)
    session.prepare()
    counts = backend.counters()
    session.host_times(warm.per_call_us)
    session.gpu_times()
    grown = {k: v - counts.get(k, 0) for k, v in backend.counters().items()}
    after = gpu_state(backend)
    last_sum = evidence.checksum(run())
    session.graph_times(footprint)
    session.explain()
    verdict = session.verdict()
    headline = choose(
        session.found, verdict, options, session.kernels_per_call, footprint, backend.caps.l2_bytes, session.stray
    )
    properties = getattr(backend, "properties", None)
    facts = Facts(
        verdict=verdict,
        headline=session.found[headline.id],
        quantities=session.found,
        on_gpu=backend.caps.marks != "none",
        distortions=distortions,
        patched=clocks.patched(),
        stray=session.stray,
        syncs=session.syncs,
        stalls=session.stalls,
        grown=grown,
        allocations_seen="num_device_alloc" in counts,
        before=before,
        after=after,
        constant=evidence.constant_inputs(subject.inputs) if subject.inputs else None,
        mutated=mutated if subject.inputs else None,
        accumulated=accumulated,
        first_sum=first_sum,
        last_sum=last_sum,
        graph=session.graph,
        eager_kernels=session.eager_kernels,
        footprint_bytes=footprint,
        l2_bytes=backend.caps.l2_bytes,
        flops=options.flops,
        bytes=options.bytes,
        peak_flops=peaks.peak_flops(properties, after.max_sm_mhz if after else None),
        peak_bytes=peaks.peak_bytes_per_s(properties),
    )
    checks = judge_all(facts)
    gpu = session.found.get("t_gpu")
    state: dict[str, str | float | int | None] = {}
    if after is not None:
        state = {
            "driver": after.driver,
            "sm_mhz": after.sm_mhz,
            "max_sm_mhz": after.max_sm_mhz,
            "power_cap_w": after.power_cap_w,
        }
    return Measurement(
        name=options.name or subject.name,
        backend=backend.name,
        headline=headline,
        verdict=verdict,
        quantities=session.found,
        checks=checks,
        fingerprint=evidence.fingerprint(properties) | state,
        facts={
            "footprint_bytes": footprint,
            "kernels_per_call": session.kernels_per_call,
            "blocker": backend.caps.blocker,
            "median_mhz": median(gpu.mhz) if gpu is not None and gpu.mhz else None,
            **{f"note_{k}": v for k, v in backend.caps.notes.items()},
        },
        syncs=session.syncs or (),
        warmup=_warmup_text(warm),
        spent_s=(backend.now_ns() - began) / 1e9,
    )


def gpu_state(backend: Backend) -> GpuState | None:
    """NVML's reading, None where the backend has none."""
    nvml = getattr(backend, "nvml", None)
    return nvml.state() if nvml is not None else None


def _warmup_text(warm: WarmUp) -> str:
    steady = "steady" if warm.steady else "not steady"
    return f"warmed {warm.spent_s:.1f} s ({warm.calls} calls, {steady})"
