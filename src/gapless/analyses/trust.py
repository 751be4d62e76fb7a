"""How far can the file be trusted, and for which questions?

Each check answers ok, note, warn, fail or unknown with a sentence. Nothing here is advice about the user's program.
"""

from __future__ import annotations

import numpy as np

from gapless.analyses.blocking import Origin
from gapless.analyses.call_names import CallClass
from gapless.analyses.causes import PROFILER_OVERHEADS
from gapless.analyses.study import Study
from gapless.model.report import TrustCheck, TrustStatus
from gapless.tables.coding import matches
from gapless.tables.intervals import as_ns

SKEW_NOTE_NS = 50_000
GRAPH_SIBLING_SHARE = 0.9
START_UP_CALL_NS = 100_000_000
"""A runtime call that neither waits nor queues takes microseconds; creating a context or loading a module, up to seconds."""
START_UP_SHARE = 0.1


def trust_checks(s: Study, *, stacks_beside: bool = False) -> list[TrustCheck]:
    """All checks, in a fixed order. `stacks_beside`: another window of the same program gave file and line."""
    return [
        _records(s), _gpu_stops_early(s), _graphs(s), _cold(s), _untraced(s), _artifacts(s), _skew(s), _blocking(s),
        _unlinked(s), _flags(s, stacks_beside), _reading(s),
    ]  # fmt: skip


def _records(s: Study) -> TrustCheck:
    lost, total = s.lost.without_record.size, s.lost.launches
    if s.raw.activities.height == 0:
        if total:
            return TrustCheck(
                "lost-records", "fail",
                f"{total} launches but no GPU record at all: GPU questions cannot be answered. Record with CUDA activities "
                "on, one profiler at a time, and at least one warm-up step.",
            )  # fmt: skip
        return TrustCheck("lost-records", "unknown", "the file holds neither launches nor GPU work")
    if lost == 0:
        return TrustCheck("lost-records", "ok", f"every one of {total} launches has its GPU record")
    share = lost / max(total, 1)
    what = f"{lost} of {total} launches ({share:.1%}) have no GPU record"
    if s.lost.stretches[0].size:
        return TrustCheck(
            "lost-records", "warn" if share < 0.3 else "fail", what + "; that time counts as unrecorded, not as idle"
        )
    return TrustCheck("lost-records", "note", what + "; they are scattered and hardly change the picture")


def _gpu_stops_early(s: Study) -> TrustCheck:
    linked = np.flatnonzero(s.links.first_activity >= 0)
    kernel = np.isin(s.links.call_class, (int(CallClass.LAUNCH), int(CallClass.GRAPH_LAUNCH)))
    start = as_ns(s.raw.calls["start_ns"].to_numpy())
    if linked.size == 0 or not kernel.any():
        return TrustCheck("gpu-records-stop", "unknown", "no launch is linked to GPU work")
    after = int((kernel & (start > int(start[linked].max()))).sum()) - s.lost.captured
    if after > 10 and after > 0.02 * kernel.sum():
        return TrustCheck(
            "gpu-records-stop", "warn",
            f"GPU records stop {after} launches before the host does: a buffer limit was probably hit. Record fewer steps.",
        )  # fmt: skip
    return TrustCheck("gpu-records-stop", "ok", "GPU records last as long as the launches do")


def _graphs(s: Study) -> TrustCheck:
    replay = np.flatnonzero((s.links.call_class == int(CallClass.GRAPH_LAUNCH)) & (s.links.first_activity >= 0))
    if replay.size == 0:
        return TrustCheck("graph-replays", "ok", "no graph replay is recorded")
    nodes = s.links.activity_count[replay]
    first = s.links.first_activity[replay]
    kinds: dict[int, list[int]] = {}
    names = s.raw.activities["name"].to_physical()
    for key, count in zip(names.gather(first.tolist()).to_list(), nodes.tolist(), strict=True):
        kinds.setdefault(key, []).append(count)
    short = sum(sum(c < GRAPH_SIBLING_SHARE * max(counts) for c in counts) for counts in kinds.values())
    if short:
        return TrustCheck(
            "graph-replays", "warn",
            f"{short} of {replay.size} graph replays show fewer kernels than their largest sibling: busy time is a lower bound",
        )  # fmt: skip
    return TrustCheck("graph-replays", "ok", f"all {replay.size} graph replays are recorded alike")


def _untraced(s: Study) -> TrustCheck:
    ns = int(s.syncs.untraced.sum())
    if ns == 0:
        return TrustCheck("untraced-work", "ok", "no call waited for work that the file lacks")
    return TrustCheck(
        "untraced-work", "warn",
        f"the host was blocked for {ns / 1e6:.1f} ms while the file shows no GPU work: the GPU worked on something that was "
        "not recorded. That time counts as unrecorded, not as idle.",
    )  # fmt: skip


def _cold(s: Study) -> TrustCheck:
    cold = [
        f"{n}: {w}"
        for n, w in zip(s.steps.names, s.steps.why, strict=True)
        if w and not w.startswith(("closes", "--step"))
    ]
    if s.steps.thread is None:
        starting = _start_up_ns(s)
        length = int(s.steps.until[0] - s.steps.start[0])
        if starting > START_UP_SHARE * max(length, 1):
            return TrustCheck(
                "cold-step", "warn",
                f"the window holds the program's start: {starting / 1e9:.1f} of its {length / 1e9:.1f} s pass in single "
                "calls that create contexts, load kernels or allocate for the first time. Record after some warm-up steps.",
            )  # fmt: skip
        return TrustCheck(
            "cold-step", "unknown",
            "no ProfilerStep in the file: the whole window is taken as one step. Record with schedule(...) and prof.step(), "
            "or pass --step-marker REGEX.",
        )  # fmt: skip
    if s.steps.count == 1:
        return TrustCheck(
            "cold-step", "unknown", "one recorded step cannot be compared with others; record three or more"
        )
    used = s.steps.used_indices()
    if used and all(s.steps.why[index] for index in used):
        return TrustCheck(
            "cold-step", "warn",
            f"no warm step is recorded ({cold[0] if cold else 'only the closing one'}): the times hold start-up work. "
            "Record three or more steps after some warm-up.",
        )  # fmt: skip
    if cold:
        return TrustCheck("cold-step", "note", "left out of the numbers: " + "; ".join(cold[:3]))
    return TrustCheck("cold-step", "ok", f"{s.steps.count} steps, none cold")


def _start_up_ns(s: Study) -> int:
    """Time in single calls too long for anything but a first use: no wait, no full queue, `START_UP_CALL_NS` or more."""
    dur = as_ns(s.raw.calls["dur_ns"].to_numpy())
    single = ~s.blocking & ~s.launches.queue_full & (dur >= START_UP_CALL_NS)
    single |= (s.links.call_class == int(CallClass.FREE)) & (dur >= START_UP_CALL_NS)
    return int(dur[single].sum())


def _artifacts(s: Study) -> TrustCheck:
    own = int((s.origin[s.syncs.call] == int(Origin.PROFILER)).sum())
    rows = (
        matches(s.raw.overheads["name"], lambda n: n in PROFILER_OVERHEADS)
        if s.raw.overheads.height
        else np.zeros(0, bool)
    )
    ns = int(as_ns(s.raw.overheads["dur_ns"].to_numpy())[rows].sum()) if rows.size else 0
    parts = []
    if own:
        parts.append(f"{own} device synchronisation{'s' if own > 1 else ''} of the recorder itself")
    if ns:
        parts.append(f"{ns / 1e6:.2f} ms of the recorder's own overhead rows")
    if not parts:
        return TrustCheck("profiler-artifact", "ok", "nothing of the recorder's own is in the way")
    return TrustCheck("profiler-artifact", "note", " and ".join(parts) + ": never blamed on the program")


def _skew(s: Study) -> TrustCheck:
    if not s.launches.negative:
        return TrustCheck("clock-skew", "ok", "no GPU work starts before its launch")
    worst = -s.launches.most_negative_ns
    status: TrustStatus = "warn" if worst > SKEW_NOTE_NS else "note"
    return TrustCheck(
        "clock-skew", status,
        f"{s.launches.negative} activities start before their launch, by up to {worst / 1e3:.1f} us: host and GPU clocks "
        "disagree; latencies are cut at zero",
    )  # fmt: skip


def launches_block(s: Study) -> bool:
    """Does nearly every launch last until its kernel has finished (CUDA_LAUNCH_BLOCKING=1)?"""
    first = s.links.first_activity
    kernel = np.flatnonzero((s.links.call_class == int(CallClass.LAUNCH)) & (first >= 0))
    if kernel.size < 10:
        return False
    end = as_ns((s.raw.calls["start_ns"] + s.raw.calls["dur_ns"]).to_numpy())[kernel]
    done = as_ns((s.raw.activities["start_ns"] + s.raw.activities["dur_ns"]).to_numpy())[first[kernel]]
    return bool((end >= done).mean() > 0.9)


def _blocking(s: Study) -> TrustCheck:
    if s.raw.activities.height == 0:
        return TrustCheck("launch-blocking", "unknown", "no GPU record to compare launches with")
    if launches_block(s):
        return TrustCheck(
            "launch-blocking", "fail",
            "launches last until their kernels end: CUDA_LAUNCH_BLOCKING=1 was set, so nothing overlaps and no time here is "
            "what users see. Unset it and record again.",
        )  # fmt: skip
    return TrustCheck("launch-blocking", "ok", "launches return before their kernels end")


def _unlinked(s: Study) -> TrustCheck:
    total = s.raw.activities.height
    orphans = np.flatnonzero(s.links.launch_of < 0)
    if total == 0 or orphans.size == 0:
        return TrustCheck("unlinked-work", "ok", "every GPU activity has its launch")
    calls = as_ns(s.raw.calls["start_ns"].to_numpy())
    first_call = int(calls.min()) if calls.size else np.iinfo(np.int64).max
    start = as_ns(s.raw.activities["start_ns"].to_numpy())[orphans]
    linked_start = as_ns(s.raw.activities["start_ns"].to_numpy())[s.links.launch_of >= 0]
    backlog = int((start < (int(linked_start.min()) if linked_start.size else first_call)).sum())
    text = f"{orphans.size} of {total} activities have no launch in the file"
    if backlog:
        text += f" ({backlog} of them were queued before the window began)"
    return TrustCheck(
        "unlinked-work", "note" if orphans.size < 0.2 * total or backlog == orphans.size else "warn", text
    )


def _flags(s: Study, stacks_beside: bool) -> TrustCheck:
    missing = []
    if s.raw.frames.height == 0 and not stacks_beside:
        missing.append("no stacks (no file and line)")
    if s.raw.ops.height and s.raw.ops["input_dims"].null_count() == s.raw.ops.height:
        missing.append("no shapes (no bytes, FLOPs or dtypes of ops)")
    if s.raw.ops.height == 0:
        missing.append("no CPU ops (no op names)")
    if not missing:
        return TrustCheck("missing-flags", "ok", "stacks and shapes are recorded")
    return TrustCheck("missing-flags", "note", "; ".join(missing))


def _reading(s: Study) -> TrustCheck:
    if s.raw.meta.truncated:
        return TrustCheck("reading", "warn", "the file is cut off: what comes after its last complete event is missing")
    rows = s.raw.issues.filter(s.raw.issues["severity"].is_in(["loss", "error", "repaired"]))
    if rows.height == 0:
        return TrustCheck("reading", "ok", "every event was read as written")
    worst: TrustStatus = "warn" if rows["severity"].is_in(["loss", "error"]).any() else "note"
    total = int(rows["count"].sum())
    return TrustCheck(
        "reading", worst, f"{total} defects in the file ({', '.join(rows['code'].to_list()[:4])}); see issues"
    )
