"""Is B faster than A? Interleaved in one process, judged block by block; undecided is an answer."""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean, median

from gapless.model.errors import UsageError
from gapless.runtime.timing import evidence, quantities
from gapless.runtime.timing.backend import Backend, Run, UnavailableError
from gapless.runtime.timing.blocks import (
    ALPHA,
    BAND,
    Decision,
    RatioEstimate,
    bootstrap_ratio,
    decide,
    holm_levels,
    order_of_block,
)
from gapless.runtime.timing.comparison import Comparison, Row
from gapless.runtime.timing.measure import backend_for, batch_timer
from gapless.runtime.timing.options import Options
from gapless.runtime.timing.sampling import warm_until_steady
from gapless.runtime.timing.stats import modes
from gapless.runtime.timing.subject import Subject

__all__ = ["compare", "compare_with"]

LOOKS = (10, 20, 40, 80, 160)
"""Blocks after which the verdict is looked at; each look spends an equal part of the error allowed."""
BLOCK_US = 5_000.0
MAX_LOOP = 10_000

Timer = Callable[[], "tuple[float, float | None] | None"]


@dataclass(frozen=True)
class _Probe:
    enqueue_us: float | None
    gpu_us: float | None
    call_us: float
    fit: quantities.Fit | None


def compare(
    functions: Mapping[str, Callable[..., object]], *args: object, options: Options | None = None, **kwargs: object
) -> Comparison:
    """Compare functions called with the same arguments; the first is the baseline.

    Each verdict is FASTER, SLOWER, SAME (within 1 %) or UNDECIDED. `options.budget_s` bounds the time per function.
    """
    if len(functions) < 2:
        raise UsageError(f"compare was given {len(functions)} function(s); give two or more as {{name: function}}")
    for name, fn in functions.items():
        if not callable(fn):
            raise UsageError(
                f"compare: {name!r} is {type(fn).__name__}, which cannot be called; pass the function itself"
            )
    chosen = options or Options()
    subjects = {n: Subject(f, args, kwargs, grad_to_none=chosen.grad_to_none) for n, f in functions.items()}
    backend = backend_for(next(iter(subjects.values())))
    try:
        return compare_with(backend, subjects, chosen)
    finally:
        backend.close()


def compare_with(backend: Backend, subjects: Mapping[str, Subject], options: Options) -> Comparison:
    """`compare` on a given backend."""
    began = backend.now_ns()
    names = tuple(subjects)
    rng = random.Random(options.seed)
    warnings: list[str] = [f"H15 {text}" for text in evidence.distortions(cuda=backend.name == "cuda")[0]]
    probes: dict[str, _Probe] = {}
    for name, subject in subjects.items():
        probes[name] = _probe(subject.run, backend, options)
    quantity, why = _common_quantity(probes, options)
    timers = {n: _timer(subjects[n].run, backend, probes[n], quantity) for n in names}
    times: dict[str, list[tuple[float, float]]] = {n: [] for n in names}
    cycles: dict[str, list[float]] = {n: [] for n in names}
    decisions: list[Decision] = []
    invalid = 0
    deadline = began + int(options.budget_s * len(names) * 1e9)
    for look in LOOKS:
        while len(times[names[0]]) < look and invalid <= 5 * LOOKS[-1]:
            if len(times[names[0]]) >= LOOKS[0] and backend.now_ns() > deadline:
                break
            block = _one_block(names, timers, rng)
            if block is None:
                invalid += 1
                if invalid > 20 and not times[names[0]]:
                    raise UsageError(
                        "compare: no valid block in 20 tries, the blocker never outlived the queueing; "
                        "use headline='t_tput'"
                    )
                continue
            for name, (pair, clock) in block.items():
                times[name].append(pair)
                if clock is not None:
                    cycles[name].append(math.log(fmean(pair) * clock))
        decisions = _decide(names, times, cycles, rng)
        short = len(times[names[0]]) < look
        if short or all(d.verdict != "UNDECIDED" for d in decisions):
            break
    have_cycles = all(len(cycles[n]) == len(times[n]) for n in names)
    if invalid:
        warnings.append(f"{invalid} blocks were invalid (the blocker did not outlive the queueing) and left out")
    warnings += [
        f"H16 {name}: two modes, {found.fast_us:.3g} and {found.slow_us:.3g} us; no one ratio holds"
        for name in names
        if (found := modes([t for pair in times[name] for t in pair])) is not None
    ]
    warnings += [f"H11 {text}" for text in evidence.constant_inputs(next(iter(subjects.values())).inputs)]
    return Comparison(
        names=names,
        baseline=names[0],
        quantity=quantity,
        why=why,
        rows=tuple(Row(n, d) for n, d in zip(names[1:], decisions, strict=True)),
        medians_us={n: median(t for pair in times[n] for t in pair) for n in names},
        times_us={n: tuple(times[n]) for n in names},
        blocks=len(times[names[0]]),
        band=BAND,
        confidence=f"{1 - ALPHA:.0%} bootstrap interval for {len(names) - 1} comparisons and {len(LOOKS)} looks",
        cycles_note="confirmed in clock cycles" if have_cycles else "clock cycles unknown: not confirmed in cycles",
        warnings=tuple(warnings),
        fingerprint=evidence.fingerprint(getattr(backend, "properties", None)),
        spent_s=(backend.now_ns() - began) / 1e9,
    )


def _probe(run: Run, backend: Backend, options: Options) -> _Probe:
    run()
    run()
    waits = False
    with contextlib.suppress(UnavailableError):
        waits = bool(backend.find_syncs(run))
    warm = warm_until_steady(batch_timer(run, backend), backend.now_ns, backend.clock_mhz, min_s=options.warmup_s)
    if backend.caps.marks == "none" or waits:
        return _Probe(None, None, warm.per_call_us, None)
    try:
        found = quantities.fit(run, backend, warm.per_call_us)
    except UnavailableError:
        return _Probe(None, None, warm.per_call_us, None)
    return _Probe(found.enqueue_us, found.gpu_us, warm.per_call_us, found)


def _common_quantity(probes: Mapping[str, _Probe], options: Options) -> tuple[str, str]:
    forced = {"t_gpu": "t_gpu", "t_tput": "t_tput"}.get(options.headline)
    held = all(p.fit is not None for p in probes.values())
    if forced == "t_gpu" and not held:
        raise UsageError(
            "compare: t_gpu was asked for, but not every function can be queued behind a blocker; use t_tput"
        )
    if forced is not None:
        return forced, "asked for by the caller"
    if held and all((p.enqueue_us or 0) < (p.gpu_us or 0) for p in probes.values()):
        return "t_gpu", "GPU time, since every function is limited by the GPU"
    return "t_tput", "time per call in a loop, since not every function is limited by the GPU"


def _timer(run: Run, backend: Backend, probe: _Probe, quantity: str) -> Timer:
    if quantity == "t_gpu":
        assert probe.fit is not None
        sampler = quantities.held_sampler(run, backend, probe.fit)

        def held() -> tuple[float, float | None] | None:
            row = sampler()
            return None if row is None else (row[0], row[2] or None)

        return held
    batch = batch_timer(run, backend)
    calls = max(1, min(MAX_LOOP, math.ceil(BLOCK_US / max(probe.call_us, 0.01))))
    return lambda: (batch(calls), None)


def _one_block(
    names: tuple[str, ...], timers: Mapping[str, Timer], rng: random.Random
) -> dict[str, tuple[tuple[float, float], float | None]] | None:
    seen: dict[str, list[tuple[float, float | None]]] = {n: [] for n in names}
    for index in order_of_block(len(names), rng):
        row = timers[names[index]]()
        if row is None:
            return None
        seen[names[index]].append(row)
    result = {}
    for name, ((one, clock_one), (two, clock_two)) in seen.items():
        clock = (clock_one + clock_two) / 2 if clock_one and clock_two else None
        result[name] = ((one, two), clock)
    return result


def _decide(
    names: tuple[str, ...],
    times: Mapping[str, list[tuple[float, float]]],
    cycles: Mapping[str, list[float]],
    rng: random.Random,
) -> list[Decision]:
    base = [math.log(fmean(pair)) for pair in times[names[0]]]
    estimates: list[tuple[RatioEstimate, RatioEstimate | None]] = []
    for name in names[1:]:
        ratios = [math.log(fmean(pair)) - b for pair, b in zip(times[name], base, strict=True)]
        in_cycles = None
        if len(cycles[name]) == len(base) == len(cycles[names[0]]):
            in_cycles = bootstrap_ratio([c - b for c, b in zip(cycles[name], cycles[names[0]], strict=True)], rng)
        estimates.append((bootstrap_ratio(ratios, rng), in_cycles))
    levels = holm_levels([e.p_outside(BAND) for e, _ in estimates], ALPHA / len(LOOKS))
    return [decide(e, c, level) for (e, c), level in zip(estimates, levels, strict=True)]
