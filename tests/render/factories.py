"""Hand-written reports: what the renderers are tested on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gapless.model.report import (
    CannotTell,
    Checks,
    DeviceAccount,
    Finding,
    Gain,
    HostAccount,
    HostPart,
    Issue,
    Part,
    PerStep,
    Report,
    Site,
    StepNumbers,
    StepRow,
    SyncRow,
    TrustCheck,
    Verdict,
    Waited,
    Window,
)

HOSTILE = (
    "\x1b[31mred\x1b[0m [bold]b[/bold] <script>alert(1)</script> `x` | \u202etxt\u202c\n# head\r\x07 " + "A" * 2_000_000
)


def site(count: float = 24, ms: float = 0.055, share: float = 1.0, **where: Any) -> Site:
    """One place."""
    place = {"op": "cudaDeviceSynchronize", "module": None, "file": "train.py", "line": 120} | where
    return Site(per_step=PerStep(count, ms), share=share, **place)


def finding(code: str = "explicit-sync", speedup: float | None = 1.45, sites: int = 1, **changes: Any) -> Finding:
    """One finding."""
    places = [site(share=1 / sites, line=120 + i) for i in range(sites)]
    base = Finding(
        code=code,
        kind=code,
        title="The code stops for the GPU after every layer",
        sites=places,
        where=places[0],
        per_step=PerStep(24, 0.055),
        gain=Gain(0.4056, speedup, speedup and speedup - 0.1, speedup and speedup + 0.1, "replay"),
        evidence=["24 calls of cudaDeviceSynchronize a step, 0.055 ms blocked", "the GPU idles 0.18 ms after them"],
        why_it_may_be_wrong="A call that times something on purpose has to stay.",
        fix="# before\nx = layer(x)\ntorch.cuda.synchronize()\n\n# after\nx = layer(x)\n",
        docs="docs/rules/explicit-sync.md",
        assumptions=["the work between the calls stays the same"],
    )
    return replace(base, **changes)


def report(**changes: Any) -> Report:
    """A host-bound step with two findings."""
    parts = [
        Part("compute", None, 1_140_333, 0.38),
        Part("copy", None, 59_667, 0.02),
        Part("idle", "sync-return", 900_001, 0.30),
        Part("idle", "dispatch", 599_999, 0.20),
        Part("idle", "launch", 240_000, 0.08),
        Part("idle", "python", 60_000, 0.02),
    ]
    base = Report(
        tool={"name": "gapless", "version": "0.0.0"},
        trace={
            "path": "traces/layer_sync.json.gz",
            "bytes": 12576,
            "sha256": "00" * 32,
            "events": 1234,
            "devices": [{"index": 0, "name": "NVIDIA H200"}],
            "rank": None,
            "world_size": None,
            "flags": ["record_shapes"],
        },
        trust=[
            TrustCheck("cold-step", "note", "step 1 was slower than the others and is left out"),
            TrustCheck("lost-records", "ok", "every launch has its record"),
        ],
        window=Window(
            "ProfilerStep#N",
            [
                StepRow("ProfilerStep#3", 0, 1_000_000, True),
                StepRow("ProfilerStep#4", 1_000_000, 2_010_000, True),
                StepRow("ProfilerStep#5", 2_010_000, 3_000_000, False, "ends the window"),
            ],
        ),
        step=StepNumbers(
            wall_ms=1.0,
            steady_ms=0.97,
            unprofiled_ms=0.587,
            unprofiled_low_ms=0.5,
            unprofiled_high_ms=0.7,
            unprofiled_method="estimated",
            gpu_busy_ms=0.4,
            host_work_ms=0.8,
            host_wait_ms=0.1,
            launches=48,
            kernels=48,
            graph_launches=0,
            syncs=24,
            copies=1,
            copy_bytes=4096,
        ),
        verdict=Verdict(
            "sync", "The GPU idles 60 % of the step: the host stops after every layer and waits until the GPU is empty."
        ),
        accounting=[DeviceAccount(0, sum(p.ns for p in parts), parts)],
        host=[
            HostAccount(
                "thread 1",
                "main",
                3_000_000,
                [HostPart("work", "dispatch", 1_800_000), HostPart("wait", "cudaDeviceSynchronize: GPU work", 900_000),
                 HostPart("launch", "cudaLaunchKernel", 300_000)],
            )
        ],
        syncs=[
            SyncRow("cudaDeviceSynchronize", "explicit", None, None, "train.py", 120, 48, 0.11,
                    Waited(0.08, 0.0, 0.0, 0.03), 0.36, 1.45)
        ],
        findings=[finding(), finding("launch-bound", 1.08, sites=3, title="Kernels are shorter than their launches")],
        checks=Checks(
            ["explicit-sync", "launch-bound"],
            ["hidden-sync", "gc-pause", "fp32-matmul"],
            [CannotTell("unfused-attention", "no shapes were recorded", "record with record_shapes=True")],
        ),
        issues=[Issue("invalid-escape", "repaired", 2, "a backslash was not escaped; names were repaired", "C:\\x")],
        tables={
            "kernels": [
                {"name": "ampere_sgemm_128x64_tn", "count": 48, "total_ms": 0.9, "median_us": 18.2, "share": 0.75,
                 "bandwidth_gb_s": None},
            ]
        },
        all_fixes=Gain(0.37, 1.58, 1.35, 1.8, "replay"),
    )  # fmt: skip
    return replace(base, **changes)


def healthy() -> Report:
    """A GPU-bound step without a finding."""
    parts = [Part("compute", None, 9_990_001, 0.999), Part("idle", "latency", 9_999, 0.001)]
    return report(
        verdict=Verdict("gpu-compute", "The GPU computes without a break: only faster kernels or less work will help."),
        accounting=[DeviceAccount(0, 10_000_000, parts)],
        findings=[],
        all_fixes=None,
        checks=Checks([], ["hidden-sync", "explicit-sync"], []),
        issues=[],
        trust=[TrustCheck("lost-records", "ok", "every launch has its record")],
    )


def bare() -> Report:
    """What a file without steps, GPU or thread leaves: everything that may be missing is missing."""
    return Report(
        tool={"name": "gapless", "version": "0.0.0"},
        trace={"path": "-", "bytes": 0, "sha256": "", "events": 1, "devices": [], "rank": None, "world_size": None,
               "flags": []},
        trust=[], window=Window("", []), step=StepNumbers(), verdict=Verdict("unknown", "The file holds no GPU work."),
        accounting=[], host=[], syncs=[], findings=[], checks=Checks(),
    )  # fmt: skip


def hostile() -> Report:
    """Every text field holds an attack."""
    place = {"op": HOSTILE, "module": HOSTILE, "file": HOSTILE, "line": 1}
    bad = finding(
        HOSTILE, title=HOSTILE, sites=1, evidence=[HOSTILE], why_it_may_be_wrong=HOSTILE, fix=HOSTILE, docs=HOSTILE,
        assumptions=[HOSTILE], inherits=HOSTILE, kind=HOSTILE,
    )  # fmt: skip
    bad = replace(bad, sites=[site(**place)], where=site(**place))
    account = DeviceAccount(0, 10, [Part(HOSTILE, None, 4, 0.4), Part("idle", HOSTILE, 6, 0.6)])
    return report(
        trace={"path": HOSTILE, "bytes": 1, "sha256": HOSTILE, "events": 1, "devices": [{"index": 0, "name": HOSTILE}],
               "rank": HOSTILE, "world_size": HOSTILE, "flags": [HOSTILE]},
        trust=[TrustCheck(HOSTILE, "fail", HOSTILE)],
        window=Window(HOSTILE, [StepRow(HOSTILE, 0, 1, True, HOSTILE)]),
        step=StepNumbers(unprofiled_why=HOSTILE),
        verdict=Verdict("unknown", HOSTILE),
        accounting=[account],
        host=[HostAccount(HOSTILE, "main", 10, [HostPart(HOSTILE, HOSTILE, 10)])],
        syncs=[SyncRow(HOSTILE, "hidden", HOSTILE, HOSTILE, HOSTILE, 1, 1, 1.0, Waited(1, 0, 0, 0), 1.0)],
        findings=[bad],
        checks=Checks([HOSTILE], [HOSTILE], [CannotTell(HOSTILE, HOSTILE, HOSTILE)]),
        issues=[Issue(HOSTILE, HOSTILE, 1, HOSTILE, HOSTILE)],
        tables={HOSTILE: [{"name": HOSTILE, HOSTILE: HOSTILE}]},
    )  # fmt: skip
