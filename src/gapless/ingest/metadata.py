"""What do the top-level keys of a trace say? Every key is optional, and any may hold something odd."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gapless.model.meta import DeviceProperties

FLAGS = ("with_stack", "record_shapes", "profile_memory", "with_modules", "with_flops")
_LOGS = ("ERROR", "WARNING", "INFO", "STAGE")
_VERSIONS = (
    "cupti_version", "cuda_runtime_version", "cuda_driver_version", "hip_runtime_version", "hip_driver_version",
    "roctracer_version", "rocprofiler_version", "rocprofiler_sdk_version", "DISABLE_CUPTI_LAZY_REINIT",
    "PT_PROFILER_JOB_NAME", "PT_PROFILER_JOB_VERSION", "PT_PROFILER_JOB_ATTEMPT_INDEX", "cudaGraphInlineAnnotated",
)  # fmt: skip
_KNOWN = {
    "schemaVersion", "deviceProperties", "traceEvents", "traceName", "displayTimeUnit", "baseTimeNanoseconds",
    "trace_id", "distributedInfo", "host_name", "gapless", *FLAGS, *_LOGS, *_VERSIONS,
}  # fmt: skip

_DEVICE_KEYS: dict[str, tuple[str, ...]] = {
    "total_memory_bytes": ("totalGlobalMem",),
    "compute_major": ("computeMajor",),
    "compute_minor": ("computeMinor",),
    "num_sms": ("numSms", "maxComputeUnits"),
    "warp_size": ("warpSize",),
    "max_threads_per_sm": ("maxThreadsPerMultiprocessor",),
    "max_threads_per_block": ("maxThreadsPerBlock", "maxWorkGroupSize"),
    "registers_per_sm": ("regsPerMultiprocessor", "regsPerBlock"),
    "shared_bytes_per_sm": ("sharedMemPerMultiprocessor", "maxSharedMemoryPerMultiProcessor"),
    "shared_bytes_per_block_optin": ("sharedMemPerBlockOptin", "sharedMemPerBlock"),
}

MAX_LOG_LINES = 1000
"""More log lines than this are not kept."""


def integer(value: object) -> int | None:
    """An int from an int, a whole float or decimal text that fits 64 bits; None from anything else."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        text = value.strip()
        if len(text) > 20 or not text.removeprefix("-").isdecimal():
            return None
        value = int(text)
    if isinstance(value, float) and value == value and abs(value) < 2**53 and value == int(value):
        value = int(value)
    return value if isinstance(value, int) and abs(value) < 2**63 else None


def devices(value: object) -> tuple[DeviceProperties, ...]:
    """The entries of `deviceProperties`; an entry without `id` gets its position."""
    if not isinstance(value, list):
        return ()
    found = []
    for position, entry in enumerate(value):
        if not isinstance(entry, dict):
            continue
        index = integer(entry.get("id"))
        facts = {name: _first(entry, keys) for name, keys in _DEVICE_KEYS.items()}
        found.append(DeviceProperties(position if index is None else index, _text(entry.get("name")) or "", **facts))
    return tuple(found)


def _first(entry: Mapping[str, object], keys: tuple[str, ...]) -> int | None:
    for key in keys:
        if (value := integer(entry.get(key))) is not None:
            return value
    return None


def _text(value: object) -> str | None:
    if value is None or isinstance(value, (dict, list)):
        return None
    return str(value).encode("utf-8", "replace").decode()


def distributed(value: object) -> dict[str, Any]:
    """`distributedInfo` with `ranks` as lists of ints (on-demand recordings write them as text)."""
    if not isinstance(value, dict):
        return {}
    info: dict[str, Any] = dict(value)
    groups = info.get("pg_config")
    if isinstance(groups, list):
        info["pg_config"] = [
            {**g, "ranks": _ranks(g["ranks"])} if isinstance(g, dict) and "ranks" in g else g for g in groups
        ]
    return info


def _ranks(value: object) -> object:
    if isinstance(value, str):
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return parsed if isinstance(parsed, list) else value
    return value


def facts(top: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of `TraceMeta` that the top-level keys (all but `traceEvents`) give."""
    info = distributed(top.get("distributedInfo"))
    extra = top.get("metadata")
    extra = extra if isinstance(extra, dict) else {}
    recorder = top.get("gapless")
    logs = [f"{key}: {line}" for key in _LOGS for line in _list(top.get(key)) if isinstance(line, str)]
    return {
        "schema_version": integer(top.get("schemaVersion")),
        "devices": devices(top.get("deviceProperties")),
        "rank": _rank(info, top, extra, "rank"),
        "world_size": _rank(info, top, extra, "world_size"),
        "distributed": info,
        "flags": tuple(flag for flag in FLAGS if integer(top.get(flag)) or top.get(flag) is True),
        "versions": {key: text for key in _VERSIONS if (text := _text(top.get(key))) is not None},
        "host_name": _text(top.get("host_name")),
        "trace_id": _text(top.get("trace_id")),
        "log_lines": tuple(logs[:MAX_LOG_LINES]),
        "recorder": recorder if isinstance(recorder, dict) else None,
        "other_keys": tuple(sorted(key for key in top if key not in _KNOWN)),
    }


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _rank(info: dict[str, Any], top: Mapping[str, Any], extra: Mapping[str, Any], key: str) -> int | None:
    for source in (info, top, extra):
        value = integer(source.get(key))
        if value is not None and value >= 0:
            return value
    return None
