"""What state is the GPU in: clocks, power, temperature, throttle reasons, other processes? Read through NVML."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass

__all__ = ["GpuState", "Nvml", "reason_names"]

_SM = 1
_REASONS = {
    0x1: "idle",
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal",
    0x40: "hardware thermal",
    0x80: "power brake",
    0x100: "display clocks",
}


def reason_names(mask: int) -> list[str]:
    """The set bits of NVML's clocks-event reasons, in words."""
    return [name for bit, name in _REASONS.items() if mask & bit]


@dataclass(frozen=True)
class GpuState:
    """One reading; None where the driver does not answer."""

    sm_mhz: int | None
    max_sm_mhz: int | None
    power_w: float | None
    power_cap_w: float | None
    temperature_c: int | None
    reasons: int | None
    processes: int | None
    mig: bool | None
    driver: str | None


class _Process(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("memory", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class Nvml:
    """One GPU's handle; every reading is None where NVML has no answer."""

    def __init__(self, library: ctypes.CDLL, handle: ctypes.c_void_p) -> None:
        self._library = library
        self._handle = handle

    @classmethod
    def open(cls, uuid: str) -> Nvml | None:
        """The GPU with this UUID, or None where NVML or the GPU is not there."""
        try:
            library = ctypes.CDLL("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")
        except OSError:
            return None
        handle = ctypes.c_void_p()
        name = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
        if library.nvmlInit_v2() != 0:
            return None
        if library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle)) != 0:
            return None
        return cls(library, handle)

    def _number(
        self, function: str, *before: int, kind: type[ctypes.c_uint] | type[ctypes.c_ulonglong] = ctypes.c_uint
    ) -> int | None:
        call = getattr(self._library, function, None)
        if call is None:
            return None
        value = kind()
        arguments = [ctypes.c_uint(b) for b in before]
        return int(value.value) if call(self._handle, *arguments, ctypes.byref(value)) == 0 else None

    def sm_mhz(self) -> int | None:
        """The SM clock now."""
        return self._number("nvmlDeviceGetClockInfo", _SM)

    def state(self) -> GpuState:
        """Everything at once, about a millisecond."""
        power = self._number("nvmlDeviceGetPowerUsage")
        cap = self._number("nvmlDeviceGetEnforcedPowerLimit")
        reasons = self._number("nvmlDeviceGetCurrentClocksEventReasons", kind=ctypes.c_ulonglong)
        if reasons is None:
            reasons = self._number("nvmlDeviceGetCurrentClocksThrottleReasons", kind=ctypes.c_ulonglong)
        return GpuState(
            sm_mhz=self.sm_mhz(),
            max_sm_mhz=self._number("nvmlDeviceGetMaxClockInfo", _SM),
            power_w=None if power is None else power / 1000,
            power_cap_w=None if cap is None else cap / 1000,
            temperature_c=self._number("nvmlDeviceGetTemperature", 0),
            reasons=reasons,
            processes=self._processes(),
            mig=self._mig(),
            driver=self._driver(),
        )

    def _processes(self) -> int | None:
        call = getattr(self._library, "nvmlDeviceGetComputeRunningProcesses_v3", None)
        if call is None:
            return None
        room = ctypes.c_uint(64)
        found = (_Process * 64)()
        return int(room.value) if call(self._handle, ctypes.byref(room), found) == 0 else None

    def _mig(self) -> bool | None:
        call = getattr(self._library, "nvmlDeviceGetMigMode", None)
        if call is None:
            return None
        current, pending = ctypes.c_uint(), ctypes.c_uint()
        return bool(current.value) if call(self._handle, ctypes.byref(current), ctypes.byref(pending)) == 0 else None

    def _driver(self) -> str | None:
        text = ctypes.create_string_buffer(96)
        return text.value.decode(errors="replace") if self._library.nvmlSystemGetDriverVersion(text, 96) == 0 else None
