"""What does the NVIDIA driver say about a GPU: driver, clocks, power limit, temperature, throttling?

A few calls of libnvidia-ml through ctypes; every answer that cannot be had is left out.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

_CLOCK_SM, _CLOCK_MEMORY = 1, 2
_TEMPERATURE_GPU = 0
_THROTTLE = {
    0x1: "gpu idle",
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal",
    0x40: "hardware thermal",
    0x80: "hardware power brake",
    0x100: "display clocks",
}


def _number(
    call: Callable[..., int], *args: object, kind: type[ctypes.c_uint] | type[ctypes.c_ulonglong]
) -> int | None:
    out = kind()
    return int(out.value) if call(*args, ctypes.byref(out)) == 0 else None


def read(uuid: str | None, index: int) -> dict[str, object]:
    """Facts about the GPU with this UUID ('GPU-...'), else with this index; empty where there is no NVML."""
    try:
        lib = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return {}
    if lib.nvmlInit_v2() != 0:
        return {}
    try:
        return _read(lib, uuid, index)
    except AttributeError:
        return {}
    finally:
        lib.nvmlShutdown()


def _read(lib: ctypes.CDLL, uuid: str | None, index: int) -> dict[str, object]:
    handle = ctypes.c_void_p()
    found = 1
    if uuid is not None:
        found = lib.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle))
    if found != 0:
        found = lib.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle))
    text = ctypes.create_string_buffer(96)
    facts: dict[str, object] = {}
    if lib.nvmlSystemGetDriverVersion(text, 96) == 0:
        facts["driver"] = text.value.decode(errors="replace")
    if found != 0:
        return facts
    numbers: dict[str, int | None] = {
        "sm_clock_mhz": _number(lib.nvmlDeviceGetClockInfo, handle, _CLOCK_SM, kind=ctypes.c_uint),
        "sm_clock_max_mhz": _number(lib.nvmlDeviceGetMaxClockInfo, handle, _CLOCK_SM, kind=ctypes.c_uint),
        "memory_clock_mhz": _number(lib.nvmlDeviceGetClockInfo, handle, _CLOCK_MEMORY, kind=ctypes.c_uint),
        "temperature_c": _number(lib.nvmlDeviceGetTemperature, handle, _TEMPERATURE_GPU, kind=ctypes.c_uint),
    }
    facts |= {key: value for key, value in numbers.items() if value is not None}
    for key, call in (
        ("power_w", lib.nvmlDeviceGetPowerUsage),
        ("power_limit_w", lib.nvmlDeviceGetEnforcedPowerLimit),
    ):
        milliwatts = _number(call, handle, kind=ctypes.c_uint)
        if milliwatts is not None:
            facts[key] = milliwatts / 1000
    reasons = _number(lib.nvmlDeviceGetCurrentClocksThrottleReasons, handle, kind=ctypes.c_ulonglong)
    if reasons is not None:
        facts["clocks_limited_by"] = [name for bit, name in _THROTTLE.items() if reasons & bit]
    return facts
