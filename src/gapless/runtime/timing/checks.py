"""Can these numbers be trusted? The honesty checks H01 to H20, as pure judgements of gathered facts.

A check whose facts are missing is unknown, never pass.
"""

from __future__ import annotations

from gapless.runtime.timing.facts import Facts
from gapless.runtime.timing.graph_time import GraphEvidence
from gapless.runtime.timing.nvml import reason_names
from gapless.runtime.timing.result import Check
from gapless.runtime.timing.stats import coefficient_of_variation

__all__ = ["graph_check", "judge_all"]

RESOLUTION_US = 0.5
MIN_SAMPLES = 6
_THROTTLED = {"hardware slowdown", "software thermal", "hardware thermal", "power brake"}


def judge_all(facts: Facts) -> tuple[Check, ...]:
    """All twenty checks, in order."""
    return (
        _h01(facts), _h02(facts), _h03(facts), _h04(facts), _h05(facts), _h06(facts), _h07(facts), _h08(facts),
        _h09(facts), _h10(facts), _h11(facts), _h12(facts), _h13(facts), _h14(facts), _h15(facts), _h16(facts),
        _h17(facts), _h18(facts), _h19(facts), _h20(facts),
    )  # fmt: skip


def _us(facts: Facts, name: str) -> float | None:
    quantity = facts.quantities.get(name)
    return quantity.us if quantity else None


def _h01(facts: Facts) -> Check:
    title = "a clock without a sync"
    naive, lat = _us(facts, "t_naive"), _us(facts, "t_lat")
    if not naive or not lat:
        return Check("H01", title, "unknown", "no latency was measured")
    if naive / lat < 0.8:
        said = f"without a sync you would have printed {naive:.3g} us; true {lat:.3g} us ({lat / naive:.3g}x off)"
        return Check("H01", title, "warn", said, "never time GPU work without a sync before both clock reads")
    return Check("H01", title, "pass", f"without a sync {naive:.3g} us, with one {lat:.3g} us")


def _h02(facts: Facts) -> Check:
    verdict = facts.verdict
    status = {
        "inconsistent": "fail",
        "unknown": "unknown",
        "launch-bound": "warn",
        "marginal": "warn",
        "host-serialised": "warn",
    }
    return Check(
        "H02", "what limits it", status.get(verdict.kind, "pass"), f"{verdict.kind}: {verdict.sentence}", verdict.advice
    )


def _h03(facts: Facts) -> Check:
    title = "work outside the measured stream"
    stray = facts.stray
    if stray is None:
        return Check("H03", title, "unknown", "no device events here" if not facts.on_gpu else "not observed")
    if stray.counts:
        said = f"the device is busy for {stray.extra_us:.3g} us after the last event of the measured stream"
        return Check(
            "H03", title, "fail", said, "make the current stream wait for the others (wait_stream), or quote t_lat"
        )
    if stray.threads_gained:
        return Check(
            "H03",
            title,
            "warn",
            f"{stray.threads_gained} threads were started and still run",
            "join them inside the call",
        )
    return Check("H03", title, "pass", f"{stray.extra_us:.2g} us of device work after the last event")


def _h04(facts: Facts) -> Check:
    title = "hidden syncs"
    if facts.syncs:
        return Check(
            "H04", title, "warn", "; ".join(facts.syncs[:3]), "keep the value on the device, or read it once, later"
        )
    if facts.stalls:
        return Check(
            "H04", title, "warn", facts.stalls, "look for pageable non_blocking copies and other libraries' waits"
        )
    if facts.syncs is None:
        return Check("H04", title, "unknown", "no detector for this device")
    return Check("H04", title, "pass", "none seen by torch's sync debug mode, and the call can be queued ahead")


def _h05(facts: Facts) -> Check:
    title = "allocations from the driver"
    if not facts.allocations_seen:
        return Check("H05", title, "unknown", "no allocator counters here")
    grew = {k: v for k, v in facts.grown.items() if v and k.startswith("num_")}
    if grew:
        said = ", ".join(f"{k} +{v}" for k, v in grew.items())
        return Check(
            "H05",
            title,
            "warn",
            f"in the timed region: {said}",
            "warm up with the same shapes; keep large buffers alive",
        )
    return Check("H05", title, "pass", "none in the timed region")


def _h06(facts: Facts) -> Check:
    title = "compilation"
    grew = {k: v for k, v in facts.grown.items() if v and not k.startswith("num_")}
    if grew:
        said = ", ".join(f"{k} +{v}" for k, v in grew.items())
        return Check(
            "H06",
            title,
            "fail",
            f"in the timed region: {said}",
            "fix the shapes, or call it once with each shape first",
        )
    return Check("H06", title, "pass", "no frame was compiled in the timed region (loading of modules is not observed)")


def _h07(facts: Facts) -> Check:
    title = "throttling"
    states = [s for s in (facts.before, facts.after) if s is not None and s.reasons is not None]
    if not states:
        return Check("H07", title, "unknown", "the driver gives no clock reasons")
    names = {n for s in states for n in reason_names(s.reasons or 0)}
    last = states[-1]
    said = f"SM {last.sm_mhz} of {last.max_sm_mhz} MHz, {last.power_w or 0:.0f} W, {last.temperature_c} C"
    bad = sorted(names & _THROTTLED)
    if bad:
        return Check("H07", title, "warn", f"{', '.join(bad)}; {said}", "let it cool, or compare in cycles")
    note = "; power cap reached" if "power cap" in names else ""
    return Check("H07", title, "pass", said + note)


def _h08(facts: Facts) -> Check:
    title = "clock noise"
    gpu = facts.quantities.get("t_gpu")
    if gpu is None or len(gpu.mhz) != len(gpu.samples_us) or len(gpu.mhz) < 10:
        return Check("H08", title, "unknown", "no core clock for each sample")
    in_time = coefficient_of_variation(gpu.samples_us)
    in_cycles = coefficient_of_variation([t * f for t, f in zip(gpu.samples_us, gpu.mhz, strict=True)])
    said = f"spread {in_time:.2%} in time, {in_cycles:.2%} in cycles"
    if in_time > 0.005 and in_time >= 2 * in_cycles:
        return Check("H08", title, "warn", f"{said}: the clock is the noise", "lock the clocks, or compare in cycles")
    return Check("H08", title, "pass", said)


def _h09(facts: Facts) -> Check:
    title = "shared GPU"
    state = facts.after or facts.before
    if state is None or (state.processes is None and state.mig is None):
        return Check("H09", title, "unknown", "the driver does not list processes")
    if state.processes is not None and state.processes > 1:
        return Check("H09", title, "warn", f"{state.processes} processes compute on this GPU", "stop the others")
    if state.mig:
        return Check(
            "H09", title, "warn", "the GPU is split (MIG): bandwidth and power are shared", "say so with the number"
        )
    return Check("H09", title, "pass", "no other process was seen (containers may hide some)")


def _h10(facts: Facts) -> Check:
    title = "timer floor"
    quantity = facts.headline
    if not quantity.known or quantity.id not in ("t_gpu", "t_gpu_cold", "t_graph", "t_graph_cold"):
        return Check("H10", title, "pass" if quantity.known else "unknown", "the headline is a host time or unknown")
    interval = (quantity.us or 0.0) * quantity.calls_per_sample
    floor = _us(facts, "t_floor") or 0.0
    said = f"intervals of {interval:.3g} us; an empty pair of events shows {floor:.3g} us"
    if interval < 20 * RESOLUTION_US or interval < 5 * floor:
        off = RESOLUTION_US / max(interval, 1e-9)
        return Check(
            "H10",
            title,
            "warn",
            f"{said}; resolution-limited: ±{RESOLUTION_US} us = {off:.0%}",
            "quote t_gpu or t_graph",
        )
    return Check("H10", title, "pass", said)


def _h11(facts: Facts) -> Check:
    title = "constant data"
    if facts.constant is None:
        return Check("H11", title, "unknown", "no tensor arguments to look at")
    if facts.constant:
        return Check(
            "H11",
            title,
            "warn",
            "; ".join(facts.constant[:3]),
            "use random data: constant data draws less power, up to 15 %",
        )
    return Check("H11", title, "pass", "inputs vary")


def _h12(facts: Facts) -> Check:
    title = "inputs written"
    if facts.mutated is None:
        return Check("H12", title, "unknown", "no tensor arguments to look at")
    said = []
    if facts.mutated:
        said.append(f"{len(facts.mutated)} of the inputs are written by the call")
    if facts.accumulated:
        said.append("gradients accumulate")
    if said:
        return Check("H12", title, "warn", "; ".join(said), "pass clones, or grad_to_none=True")
    return Check("H12", title, "pass", "the call leaves its inputs alone")


def _h13(facts: Facts) -> Check:
    title = "same result each time"
    if facts.first_sum is None or facts.last_sum is None:
        return Check("H13", title, "unknown", "the call returns no tensor that can be summed")
    if facts.first_sum == facts.last_sum:
        return Check("H13", title, "pass", "output sums are equal")
    pairs = list(zip(facts.first_sum, facts.last_sum, strict=False))
    if len(facts.first_sum) == len(facts.last_sum) and all(
        a == b or (a != a and b != b) or abs(a - b) <= 1e-4 * max(abs(a), abs(b)) for a, b in pairs
    ):
        return Check("H13", title, "pass", "output sums agree up to rounding")
    return Check(
        "H13", title, "warn", "the output changed between the first and the last call", "seed it, or pass clones"
    )


def _h14(facts: Facts) -> Check:
    return graph_check(facts.graph, facts.eager_kernels)


def graph_check(graph: GraphEvidence | None, eager_kernels: float | None) -> Check:
    """H14: the same kernels in the graph as eagerly, and poisoned outputs that come back right."""
    title = "graph does the same work"
    if graph is None:
        return Check("H14", title, "unknown", "nothing was captured")
    if graph.replay in ("untouched", "differs"):
        return Check(
            "H14", title, "fail", graph.why, "do not time this graph: part of the work ran outside it, or on other data"
        )
    nodes = graph.kernel_nodes
    if nodes is not None and eager_kernels is not None and round(eager_kernels * graph.calls) != nodes:
        said = f"{eager_kernels * graph.calls:.0f} kernels run eagerly, {nodes} are in the graph"
        return Check("H14", title, "fail", said, "part of the work was not captured")
    if graph.replay == "equal":
        counted = "" if nodes is None or eager_kernels is None else f"; {nodes} kernels in both"
        return Check("H14", title, "pass", f"poisoned outputs came back right{counted}")
    return Check("H14", title, "unknown", graph.why)


def _h15(facts: Facts) -> Check:
    title = "surroundings"
    wrong, doubtful = facts.distortions
    if wrong:
        return Check("H15", title, "fail", "; ".join(wrong), "turn it off and measure again")
    if doubtful:
        return Check("H15", title, "warn", "; ".join(doubtful), "measure in a fresh process")
    return Check("H15", title, "pass", "nothing known to distort timing")


def _h16(facts: Facts) -> Check:
    title = "steady"
    summary = facts.headline.summary
    if summary is None or summary.count < 10:
        return Check("H16", title, "unknown", "too few samples")
    said = []
    if summary.modes is not None:
        m = summary.modes
        said.append(
            f"two modes, {m.fast_us:.3g} and {m.slow_us:.3g} us ({m.slow_share:.0%} slow): no single number holds"
        )
    if summary.drifts:
        said.append(f"drifts by {summary.drift_us:+.3g} us over the samples: still warming, or throttling")
    if summary.rho1 > 0.3:
        said.append(f"neighbouring samples depend on each other (rho {summary.rho1:.2f}); the interval was widened")
    if said:
        return Check("H16", title, "warn", "; ".join(said), "look at the samples in the JSON before quoting the median")
    return Check("H16", title, "pass", "no drift, one mode, independent samples")


def _h17(facts: Facts) -> Check:
    title = "cold cache"
    cold, again = _us(facts, "t_gpu_cold"), _us(facts, "t_gpu_again")
    if not cold or not again:
        return Check("H17", title, "unknown", "no cold measurement")
    said = f"after a flush {cold:.3g} us, again {again:.3g} us"
    fits = facts.l2_bytes is not None and 0 < facts.footprint_bytes < facts.l2_bytes
    if fits and again > 1.03 * cold + RESOLUTION_US:
        return Check(
            "H17", title, "warn", f"{said}: warm is slower than cold", "inconsistent; do not quote either alone"
        )
    if cold <= 1.02 * again:
        return Check("H17", title, "pass", said + ("; cache state has no effect" if fits else "; does not fit L2"))
    return Check("H17", title, "pass", f"{said} ({cold / again:.2f}x)")


def _h18(facts: Facts) -> Check:
    summary = facts.headline.summary
    title = "precision claimed"
    if summary is None:
        return Check("H18", title, "unknown", "no headline")
    if summary.count < MIN_SAMPLES:
        return Check("H18", title, "warn", f"{summary.count} samples support no interval", "raise budget_s")
    said = f"±{summary.half_width:.1%} from {summary.count} samples ({facts.headline.stop})"
    if facts.headline.stop == "precise" or summary.half_width <= 0.02:
        return Check("H18", title, "pass", said)
    return Check(
        "H18", title, "warn", said, "digits beyond the interval are not shown; raise budget_s, or accept the noise"
    )


def _h19(facts: Facts) -> Check:
    if facts.patched:
        return Check(
            "H19", "clocks untouched", "fail", "replaced: " + ", ".join(facts.patched), "measure without the patch"
        )
    return Check("H19", "clocks untouched", "pass", "clock and sync functions are the ones of import time")


def _h20(facts: Facts) -> Check:
    title = "below the hardware's limit"
    time_us = facts.headline.us
    if time_us is None or (facts.flops is None and facts.bytes is None):
        return Check("H20", title, "unknown", "no flops or bytes were given")
    said, over, judged = [], False, False
    for amount, peak, unit in ((facts.flops, facts.peak_flops, "TFLOP/s"), (facts.bytes, facts.peak_bytes, "TB/s")):
        if amount is None:
            continue
        rate = amount / time_us * 1e6
        said.append(f"{rate / 1e12:.3g} {unit}" + (f" of at most {peak / 1e12:.3g}" if peak else ""))
        judged = judged or peak is not None
        over = over or (peak is not None and rate > peak)
    if over:
        return Check(
            "H20", title, "fail", "impossible: " + ", ".join(said), "the work was not done, or the count is wrong"
        )
    return Check("H20", title, "pass" if judged else "unknown", ", ".join(said))
