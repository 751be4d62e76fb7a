"""Have the steps become steady, and how many of them should each part of a recording take?"""

from __future__ import annotations

import math

from gapless.runtime.recorder.baseline import FIRST

COLD_MIN, COLD_MAX, COLD_MAX_S = 3, 50, 60.0
WARM_S = 0.05
"""Steps of 60 us are over in no time, but the first of them take up to 1.6 times as long as later ones (H200 host)."""
STEADY_STEPS, STEADY_RATIO = 3, 1.15
PATIENT_STEPS, LENIENCE = 5, 0.1
LOCKSTEP_COLD, LOCKSTEP_SEGMENT = 5, 5
DEFAULT_STEPS, MAX_DEFAULT_STEPS, DEFAULT_WINDOW_MS = 5, 40, 20.0
FAST_STEP_MS, SLOW_STEP_MS = 50.0, 2_000.0
FAST_TRIAL, USUAL_TRIAL = 4, 2


def is_steady(step_s: list[float], ratio: float = STEADY_RATIO) -> bool:
    """Whether the last steps took nearly the same time: largest over smallest of three at most `ratio`."""
    last = step_s[-STEADY_STEPS:]
    return len(last) == STEADY_STEPS and min(last) > 0 and max(last) / min(last) <= ratio


def is_warm(step: int, last_s: list[float], stepping_s: float, least_s: float = 0.0) -> bool:
    """Whether the cold steps are over: times are steady, by a measure that grows more lenient from the sixth step on.

    Steps of different lengths never become steady; steps of microseconds scatter by more than a warm-up does.
    `last_s` are the last steps' times, `stepping_s` that of all but the first, and at least `least_s` of them must pass.
    """
    lenient = STEADY_RATIO + LENIENCE * max(0, step - PATIENT_STEPS)
    over = step >= COLD_MAX or stepping_s > COLD_MAX_S
    return step >= COLD_MIN and stepping_s >= least_s and (is_steady(last_s, lenient) or over)


def default_steps(step_ms: float) -> int:
    """Used steps where the user names none: 5, or as many as fill 20 ms, at most 40."""
    return max(DEFAULT_STEPS, min(MAX_DEFAULT_STEPS, math.ceil(DEFAULT_WINDOW_MS / max(step_ms, 1e-6))))


def trial_steps(step_ms: float | None) -> int:
    """Steps of the trial: 4 of less than 50 ms, 2 of less than 2 s, else 1. They are all there is of a short script."""
    if step_ms is None:
        return USUAL_TRIAL
    return FAST_TRIAL if step_ms < FAST_STEP_MS else USUAL_TRIAL if step_ms < SLOW_STEP_MS else 1


def steps_before_trial(skip: int | None, *, lockstep: bool, timed: bool) -> int:
    """The fewest steps that pass before the trial begins: cold ones, then those timed without the profiler."""
    cold = skip if skip is not None else LOCKSTEP_COLD if lockstep else COLD_MIN + 1
    return cold + (LOCKSTEP_SEGMENT if lockstep else FIRST.steps if timed else 0)
