"""In which order is a subject measured, and what stays unknown for which reason? The steps of one measurement."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import torch

from gapless.runtime.timing import quantities
from gapless.runtime.timing.backend import Backend, UnavailableError
from gapless.runtime.timing.cache import rotation_copies
from gapless.runtime.timing.checks import graph_check
from gapless.runtime.timing.explain import explain
from gapless.runtime.timing.graph_time import (
    GraphEvidence,
    copies_or_reason,
    graph_floor,
    graph_time,
    rotated_graph_time,
    verify_replay,
)
from gapless.runtime.timing.options import Options
from gapless.runtime.timing.regime import Times, disagreements, judge
from gapless.runtime.timing.result import Quantity, Verdict
from gapless.runtime.timing.sampling import StopRule
from gapless.runtime.timing.subject import Subject

__all__ = ["Session"]

QUEUE_DEPTH = 900
"""Launches that fit in the device's queue; about a thousand do."""


class Session:
    """One measurement under way: what is known so far."""

    def __init__(self, backend: Backend, subject: Subject, options: Options) -> None:
        self.backend = backend
        self.subject = subject
        self.options = options
        self.rule = StopRule(options.min_samples, options.target, options.budget_s)
        self.quick = StopRule(min(20, options.min_samples), max(0.02, options.target), options.budget_s / 2)
        self.found: dict[str, Quantity] = {}
        self.syncs: tuple[str, ...] | None = None
        self.waits = ""
        self.stalls = ""
        self.stray: quantities.Stray | None = None
        self.gpu_work = False
        self.graph: GraphEvidence | None = None
        self.eager_kernels: float | None = None

    def keep(self, *measured: Quantity) -> None:
        """Keep these quantities."""
        self.found.update({q.id: q for q in measured})

    def unknown(self, why: str, *names: str) -> None:
        """Keep these quantities as unknown, unless they are known."""
        self.keep(*(Quantity(name, why=why) for name in names if name not in self.found))

    def us(self, name: str) -> float | None:
        """The median of a quantity, None where unknown."""
        quantity = self.found.get(name)
        return quantity.us if quantity else None

    def look_for_syncs(self) -> None:
        """H04: run once under the detectors."""
        try:
            sites = self.backend.find_syncs(self.subject.run)
        except UnavailableError:
            return
        self.syncs = tuple(str(site) for site in sites)
        self.waits = self.syncs[0] if self.syncs else ""

    def host_times(self, per_call_us: float) -> None:
        """t_naive, t_lat and t_tput."""
        self.keep(*quantities.latency(self.subject.run, self.backend, self.rule))
        self.keep(quantities.throughput(self.subject.run, self.backend, self.quick, per_call_us))

    def gpu_times(self) -> None:
        """Everything between device events; what cannot be had is kept as unknown with its reason."""
        run, backend = self.subject.run, self.backend
        held = ("t_enq", "t_gpu", "t_gpu_cold", "t_gpu_again", "t_floor")
        if backend.caps.marks == "none":
            self.unknown(backend.caps.notes.get("device", "no device events"), *held, "t_pair")
            return
        self.keep(quantities.unheld(run, backend, self.quick))
        self.stray = quantities.stray_work(run, backend)
        try:
            self.keep(quantities.empty_pair(backend, self.quick))
            if self.waits:
                raise UnavailableError("the call waits for the GPU inside, so it cannot be queued behind a blocker")
            found = quantities.fit(run, backend, self.us("t_naive") or 10.0)
        except UnavailableError as error:
            if not self.waits:
                self.waits = self.stalls = str(error)
            self.unknown(str(error), *held)
            return
        self.keep(*quantities.queued(run, backend, self.rule, found))
        if disagreements(self.times()):
            # One part of the machine was still settling: take both sides once more before calling it a contradiction.
            per_call = self.us("t_tput") or 1.0
            self.keep(quantities.throughput(run, backend, self.quick, per_call))
            self.keep(*quantities.queued(run, backend, self.rule, found))
        self.gpu_work = (self.us("t_gpu") or 0.0) * found.calls > 1.5 * (self.us("t_floor") or 0.0)
        if self.options.l2 == "warm":
            return
        try:
            self.keep(*quantities.cold(run, backend, self.rule, found))
        except UnavailableError as error:
            self.unknown(str(error), "t_gpu_cold", "t_gpu_again")

    def graph_times(self, footprint_bytes: int) -> None:
        """Graph quantities last but one: capturing empties torch's memory cache."""
        names = ("t_graph", "t_graph_cold", "t_graph_floor")
        why = (
            "graphs were turned off" if not self.options.graph
            else self.backend.caps.notes.get("device", "no graphs here") if not self.backend.caps.graphs
            else "a call that waits inside cannot be captured" if self.syncs
            else "work outside the current stream cannot be captured (H03)" if self.stray and self.stray.counts
            else "no GPU work" if not self.gpu_work and not self.stalls
            else ""
        )  # fmt: skip
        if why:
            self.unknown(why, *names)
            return
        try:
            self.keep(graph_floor(self.backend, self.quick))
            per_call = self.us("t_gpu") or self.us("t_lat") or 100.0
            quantity, captured = graph_time(self.subject.run, self.backend, self.rule, per_call)
            self.graph = verify_replay(captured, self.subject, self.backend.synchronize)
            del captured  # its memory pool is freed before copies of the inputs are made
            self.keep(quantity)
            if self.options.l2 != "warm":
                self._rotated(footprint_bytes)
            self.drop_wrong_graph()
        except UnavailableError as error:
            self.unknown(str(error), *names)

    def _rotated(self, footprint_bytes: int) -> None:
        l2 = self.backend.caps.l2_bytes
        try:
            if not l2:
                raise UnavailableError("the size of the L2 cache is not known")
            free = torch.cuda.mem_get_info()[0] if self.backend.name == "cuda" else 1 << 62
            count = rotation_copies(footprint_bytes, l2, free)
            copies = copies_or_reason(self.subject, count)
            self.keep(rotated_graph_time(copies, self.backend, self.quick))
        except UnavailableError as error:
            self.unknown(str(error), "t_graph_cold")

    def explain(self) -> None:
        """The profiler pass, last: it can slow every launch that comes after it."""
        if not (self.options.kernels and self.backend.caps.kernel_times):
            why = self.backend.caps.notes.get(
                "device", "the profiler pass is off: kernels=True adds it, but slows later launches"
            )
            self.unknown(why, "t_kern_sum", "t_kern_span")
            return
        gpu = self.found["t_gpu"]
        explained = explain(self.subject.run, self.backend, gpu.calls_per_sample if gpu.known else 1, held=gpu.known)
        self.keep(*explained.quantities)
        self.eager_kernels = explained.kernels_per_call
        self.drop_wrong_graph()

    def drop_wrong_graph(self) -> None:
        """H14: a graph that does other work than the call has no time."""
        if graph_check(self.graph, self.eager_kernels).status == "fail":
            why = "the graph does not do the same work (H14)"
            self.keep(Quantity("t_graph", why=why), Quantity("t_graph_cold", why=why))

    def times(self) -> Times:
        """The medians so far."""
        names = ("t_enq", "t_gpu", "t_tput", "t_lat", "t_graph", "t_graph_floor")
        return Times(*(self.us(name) for name in names))

    def prepare(self) -> None:
        """Allocate what measuring needs before allocations are counted."""
        if self.options.l2 != "warm":
            with contextlib.suppress(UnavailableError):
                self.backend.flush_l2()
        self.backend.synchronize()

    @property
    def kernels_per_call(self) -> float | None:
        """Kernels of one call: seen by the profiler, else nodes of the graph, else None."""
        if self.eager_kernels is not None:
            return self.eager_kernels
        nodes = self.graph.kernel_nodes if self.graph is not None else None
        return nodes / self.graph.calls if nodes is not None and self.graph is not None else None

    def verdict(self) -> Verdict:
        """The regime, from what is known now."""
        on_gpu = self.backend.name != "cpu"
        enq, gpu, waits = self.us("t_enq"), self.us("t_gpu"), self.waits
        queue_full = self.stalls and (self.kernels_per_call or 0) > QUEUE_DEPTH
        if queue_full:
            # More launches than the queue holds: no blocker outlives them, so idle-GPU and graph times stand in.
            enq, gpu, waits, self.stalls = self.us("t_naive"), self.us("t_graph") or self.us("t_kern_sum"), "", ""
        times = replace(self.times(), enq=enq, gpu=gpu)
        graph_ok = self.found.get("t_graph", Quantity("t_graph")).known or self.graph is None
        if on_gpu and self.backend.caps.marks == "none":
            return Verdict("unknown", None, "Host times only: " + self.backend.caps.notes.get("device", ""))
        return judge(times, on_gpu=on_gpu, gpu_work=self.gpu_work or bool(queue_full), waits=waits, graph_ok=graph_ok)
