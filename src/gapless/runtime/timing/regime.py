"""What limits a loop of this call: the GPU, the rate at which the host launches, or waiting inside? Pure."""

from __future__ import annotations

from dataclasses import dataclass

from gapless.runtime.timing.result import Verdict

__all__ = ["Times", "disagreements", "judge"]

LAUNCH_BOUND = 1.0
MARGINAL = 0.7
TPUT_TOLERANCE = 0.15
TPUT_SLACK_US = 1.0
LAT_TOLERANCE = 0.03


@dataclass(frozen=True)
class Times:
    """The medians the verdict rests on, in microseconds; None where unknown."""

    enq: float | None = None
    gpu: float | None = None
    tput: float | None = None
    lat: float | None = None
    graph: float | None = None
    graph_floor: float | None = None


def judge(times: Times, *, on_gpu: bool, gpu_work: bool, waits: str, graph_ok: bool = True) -> Verdict:
    """The verdict. `waits`: where the call waits for the GPU inside, empty if it does not."""
    if not on_gpu:
        return Verdict("host-only", None, "No GPU was timed: these are host times.")
    if waits:
        return Verdict(
            "host-serialised",
            None,
            f"The call waits for the GPU inside ({waits}): host and GPU take turns, so a loop costs their sum.",
            "remove the wait (see H04) before making kernels or launches faster",
        )
    if not gpu_work:
        return Verdict("host-only", None, "The call queued no GPU work on the current stream: these are host times.")
    if times.enq is None or times.gpu is None or times.gpu <= 0:
        return Verdict("unknown", None, "Launch and GPU time could not be told apart: no blocker could be used.")
    ratio = times.enq / times.gpu
    wrong = disagreements(times)
    if wrong:
        return Verdict(
            "inconsistent",
            ratio,
            "The quantities contradict each other: " + "; ".join(wrong) + ".",
            "trust none of them alone; measure again on a quiet machine",
            wrong,
        )
    if ratio >= LAUNCH_BOUND:
        return Verdict(
            "launch-bound",
            ratio,
            f"Queueing a call takes the host {ratio:.2g} times as long as the GPU needs to run it: a loop runs at the "
            "host's launch rate, and a faster kernel will not show.",
            _graph_advice(times, graph_ok),
        )
    if ratio >= MARGINAL:
        return Verdict(
            "marginal",
            ratio,
            f"GPU-bound with little to spare: the host needs {ratio:.0%} of the GPU's time to queue a call; "
            "a slower or busier host makes it launch-bound.",
            _graph_advice(times, graph_ok),
        )
    return Verdict(
        "gpu-bound", ratio, f"The GPU is the limit: the host queues a call in {ratio:.0%} of the time the GPU needs."
    )


def disagreements(times: Times) -> tuple[str, ...]:
    """Where the quantities contradict the model: loop time = max(enqueue, GPU time); latency >= GPU time."""
    found = []
    if times.enq is not None and times.gpu is not None and times.tput is not None:
        expected = max(times.enq, times.gpu)
        if abs(times.tput - expected) > TPUT_TOLERANCE * expected + TPUT_SLACK_US:
            found.append(f"a loop takes {times.tput:.3g} us a call, but max(t_enq, t_gpu) is {expected:.3g} us")
    if times.lat is not None and times.gpu is not None and times.lat < times.gpu * (1 - LAT_TOLERANCE):
        found.append(f"one call with its sync takes {times.lat:.3g} us, less than its GPU time of {times.gpu:.3g} us")
    return tuple(found)


def _graph_advice(times: Times, graph_ok: bool) -> str:
    if not graph_ok:
        return "queue less per call: fuse operations, or take the loop out of Python"
    if times.graph is not None:
        return f"a CUDA graph brings it to {times.graph:.3g} us a call (measured)"
    if times.gpu is None:
        return "capture it in a CUDA graph"
    predicted = max(times.gpu, times.graph_floor or 0.0)
    return f"capture it in a CUDA graph: predicted {predicted:.3g} us a call"
