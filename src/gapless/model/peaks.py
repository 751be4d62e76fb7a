"""How fast can this device be at best? Peaks and launch limits of known GPUs, as data.

Bandwidths and dense (no structured sparsity) TFLOP/s are the vendors' published figures: NVIDIA data sheets of the
P100, V100, T4, A-, L-, H- and B-series and the GeForce and RTX architecture white papers; AMD Instinct and Radeon
product pages. Limits per SM are those of the compute-capability table of the CUDA programming guide. `fp32` is the
plain vector rate; `tf32` to `fp8` are matrix-unit rates with fp32 accumulation, which is how PyTorch runs them. AMD's
two-die MI250 and MI250X appear as two devices, so their figures are for one die (GCD). `host_link_gbs` is what the
PCIe (or chip-to-chip) link can carry in one direction. A vendor's peak is a ceiling: clocks under load are lower.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LaunchLimits:
    """What one SM (or CU) can hold at a time, and the sizes in which it hands registers and shared memory out."""

    warp_size: int
    max_threads_per_sm: int
    max_blocks_per_sm: int
    registers_per_sm: int
    shared_bytes_per_sm: int
    register_unit: int = 256
    shared_unit_bytes: int = 128
    reserved_shared_bytes_per_block: int = 1024

    @property
    def max_warps_per_sm(self) -> int:
        """Warps that fit when nothing but threads limits them."""
        return self.max_threads_per_sm // self.warp_size


@dataclass(frozen=True, slots=True)
class DevicePeaks:
    """Peaks of one device: GB/s of its memory, dense TFLOP/s by dtype (None: no such unit), SMs, limits per SM."""

    name: str
    compute: str
    sms: int
    bandwidth_gbs: float
    fp64: float | None
    fp32: float
    tf32: float | None
    fp16: float | None
    bf16: float | None
    fp8: float | None
    host_link_gbs: float
    limits: LaunchLimits

    def tflops(self, dtype: str | None) -> float | None:
        """Dense peak for `fp64 fp32 tf32 fp16 bf16 fp8`; None for anything else and where there is no such unit."""
        if dtype not in ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8"):
            return None
        value: float | None = getattr(self, dtype)
        return value

    def matrix_tflops(self, dtype: str | None) -> float | None:
        """The matrix-unit peak that work of this dtype could reach: fp32 work may run as tf32 where that exists."""
        return (self.tf32 or self.fp32) if dtype == "fp32" else self.tflops(dtype)


_KIB = 1024
LIMITS: dict[str, LaunchLimits] = {
    "6.0": LaunchLimits(32, 2048, 32, 65536, 64 * _KIB, shared_unit_bytes=256, reserved_shared_bytes_per_block=0),
    "6.1": LaunchLimits(32, 2048, 32, 65536, 96 * _KIB, shared_unit_bytes=256, reserved_shared_bytes_per_block=0),
    "7.0": LaunchLimits(32, 2048, 32, 65536, 96 * _KIB, shared_unit_bytes=256, reserved_shared_bytes_per_block=0),
    "7.5": LaunchLimits(32, 1024, 16, 65536, 64 * _KIB, shared_unit_bytes=256, reserved_shared_bytes_per_block=0),
    "8.0": LaunchLimits(32, 2048, 32, 65536, 164 * _KIB),
    "8.6": LaunchLimits(32, 1536, 16, 65536, 100 * _KIB),
    "8.9": LaunchLimits(32, 1536, 24, 65536, 100 * _KIB),
    "9.0": LaunchLimits(32, 2048, 32, 65536, 228 * _KIB),
    "10.0": LaunchLimits(32, 2048, 32, 65536, 228 * _KIB),
    "10.3": LaunchLimits(32, 2048, 32, 65536, 228 * _KIB),
    "12.0": LaunchLimits(32, 1536, 24, 65536, 100 * _KIB),
    "gfx906": LaunchLimits(64, 2560, 40, 65536, 64 * _KIB, 256, 512, 0),
    "gfx908": LaunchLimits(64, 2560, 40, 65536, 64 * _KIB, 512, 512, 0),
    "gfx90a": LaunchLimits(64, 2048, 32, 131072, 64 * _KIB, 512, 512, 0),
    "gfx942": LaunchLimits(64, 2048, 32, 131072, 64 * _KIB, 512, 512, 0),
    "gfx950": LaunchLimits(64, 2048, 32, 131072, 160 * _KIB, 512, 1280, 0),
    "gfx1100": LaunchLimits(32, 1024, 32, 98304, 64 * _KIB, 768, 512, 0),
}
"""Limits per SM by compute capability (NVIDIA) or ISA (AMD)."""

_PCIE3, _PCIE4, _PCIE5 = 15.75, 31.5, 63.0

# name | words that must occur in the device's name | compute | SMs | GB/s | fp64 fp32 tf32 fp16 bf16 fp8 | link
# The row with the most matching words wins, so variants need only the words that set them apart.
_Row = tuple[str, str, str, int, float, str, float]
_ROWS: tuple[_Row, ...] = (
    ("B300", "B300", "10.3", 148, 8000, "1.2 77 1125 2250 2250 4500", 126.0),
    ("GB300", "GB300", "10.3", 152, 8000, "1.3 80 1250 2500 2500 5000", 450.0),
    ("B200", "B200", "10.0", 148, 8000, "37 75 1125 2250 2250 4500", _PCIE5),
    ("GB200", "GB200", "10.0", 152, 8000, "40 80 1250 2500 2500 5000", 450.0),
    ("B100", "B100", "10.0", 144, 8000, "30 60 875 1750 1750 3500", _PCIE5),
    ("H200", "H200", "9.0", 132, 4800, "34 67 494.7 989.4 989.4 1978.9", _PCIE5),
    ("H200 NVL", "H200 NVL", "9.0", 132, 4800, "30 60 417.5 835.5 835.5 1670.5", _PCIE5),
    ("GH200 96GB", "GH200", "9.0", 132, 4000, "34 67 494.7 989.4 989.4 1978.9", 450.0),
    ("GH200 144GB", "GH200 144G", "9.0", 132, 4900, "34 67 494.7 989.4 989.4 1978.9", 450.0),
    ("H100 SXM", "H100", "9.0", 132, 3350, "34 67 494.7 989.4 989.4 1978.9", _PCIE5),
    ("H100 PCIe", "H100 PCIE", "9.0", 114, 2039, "25.6 51.2 378 756 756 1513", _PCIE5),
    ("H100 NVL", "H100 NVL", "9.0", 132, 3938, "30 60 417.5 835.5 835.5 1670.5", _PCIE5),
    ("H800", "H800", "9.0", 132, 3350, "1 67 494.7 989.4 989.4 1978.9", _PCIE5),
    ("H20", "H20", "9.0", 78, 4000, "1 44 74 148 148 296", _PCIE5),
    ("A100 40GB", "A100", "8.0", 108, 1555, "9.7 19.5 156 312 312 -", _PCIE4),
    ("A100 SXM 80GB", "A100 80GB", "8.0", 108, 2039, "9.7 19.5 156 312 312 -", _PCIE4),
    ("A100 PCIe 80GB", "A100 80GB PCIE", "8.0", 108, 1935, "9.7 19.5 156 312 312 -", _PCIE4),
    ("A800", "A800", "8.0", 108, 2039, "9.7 19.5 156 312 312 -", _PCIE4),
    ("A30", "A30", "8.0", 56, 933, "5.2 10.3 82 165 165 -", _PCIE4),
    ("A40", "A40", "8.6", 84, 696, "0.58 37.4 74.8 149.7 149.7 -", _PCIE4),
    ("A10", "A10", "8.6", 72, 600, "0.49 31.2 62.5 125 125 -", _PCIE4),
    ("A10G", "A10G", "8.6", 80, 600, "0.55 35 35 70 70 -", _PCIE4),
    ("A2", "A2", "8.6", 10, 200, "0.07 4.5 9 18 18 -", 15.75),
    ("RTX A6000", "A6000", "8.6", 84, 768, "0.6 38.7 77.4 154.8 154.8 -", _PCIE4),
    ("RTX A5000", "A5000", "8.6", 64, 768, "0.43 27.8 55.6 111.1 111.1 -", _PCIE4),
    ("RTX A4000", "A4000", "8.6", 48, 448, "0.3 19.2 38.3 76.7 76.7 -", _PCIE4),
    ("L40S", "L40S", "8.9", 142, 864, "1.4 91.6 183 362 362 733", _PCIE4),
    ("L40", "L40", "8.9", 142, 864, "1.4 90.5 90.5 181 181 362", _PCIE4),
    ("L20", "L20", "8.9", 92, 864, "0.9 59.8 59.8 119.5 119.5 239", _PCIE4),
    ("L4", "L4", "8.9", 58, 300, "0.5 30.3 60 121 121 242.5", _PCIE4),
    ("RTX 6000 Ada", "RTX 6000 ADA", "8.9", 142, 960, "1.4 91.1 182.1 364.2 364.2 728.5", _PCIE4),
    ("RTX PRO 6000", "PRO 6000 BLACKWELL", "12.0", 188, 1792, "1.9 125 251.9 503.8 503.8 1007.6", _PCIE5),
    ("T4", "T4", "7.5", 40, 320, "0.25 8.1 - 65 - -", _PCIE3),
    ("V100 SXM2", "V100", "7.0", 80, 900, "7.8 15.7 - 125 - -", _PCIE3),
    ("V100 PCIe", "V100 PCIE", "7.0", 80, 900, "7 14 - 112 - -", _PCIE3),
    ("V100S", "V100S", "7.0", 80, 1134, "8.2 16.4 - 130 - -", _PCIE3),
    ("TITAN V", "TITAN V", "7.0", 80, 653, "7.5 14.9 - 119 - -", _PCIE3),
    ("P100 SXM2", "P100", "6.0", 56, 732, "5.3 10.6 - 21.2 - -", _PCIE3),
    ("P40", "P40", "6.1", 30, 346, "0.37 11.8 - - - -", _PCIE3),
    ("GTX 1080 Ti", "1080 TI", "6.1", 28, 484, "0.35 11.3 - - - -", _PCIE3),
    ("RTX 2080 Ti", "2080 TI", "7.5", 68, 616, "0.42 13.4 - 53.8 - -", _PCIE3),
    ("TITAN RTX", "TITAN RTX", "7.5", 72, 672, "0.5 16.3 - 130.5 - -", _PCIE3),
    ("Quadro RTX 8000", "QUADRO RTX 8000", "7.5", 72, 672, "0.5 16.3 - 130.5 - -", _PCIE3),
    ("Quadro RTX 6000", "QUADRO RTX 6000", "7.5", 72, 672, "0.5 16.3 - 130.5 - -", _PCIE3),
    ("RTX 3090 Ti", "3090 TI", "8.6", 84, 1008, "0.62 40 40 80 80 -", _PCIE4),
    ("RTX 3090", "3090", "8.6", 82, 936, "0.56 35.6 35.6 71 71 -", _PCIE4),
    ("RTX 3080 Ti", "3080 TI", "8.6", 80, 912, "0.53 34.1 34.1 68.2 68.2 -", _PCIE4),
    ("RTX 3080", "3080", "8.6", 68, 760, "0.47 29.8 29.8 59.5 59.5 -", _PCIE4),
    ("RTX 3070 Ti", "3070 TI", "8.6", 48, 608, "0.34 21.7 21.7 43.5 43.5 -", _PCIE4),
    ("RTX 3070", "3070", "8.6", 46, 448, "0.32 20.3 20.3 40.6 40.6 -", _PCIE4),
    ("RTX 3060 Ti", "3060 TI", "8.6", 38, 448, "0.25 16.2 16.2 32.4 32.4 -", _PCIE4),
    ("RTX 3060", "3060", "8.6", 28, 360, "0.2 12.7 12.7 25.5 25.5 -", _PCIE4),
    ("RTX 4090", "4090", "8.9", 128, 1008, "1.29 82.6 82.6 165.2 165.2 330.3", _PCIE4),
    ("RTX 4080 SUPER", "4080 SUPER", "8.9", 80, 736, "0.82 52.2 52.2 104.4 104.4 208.9", _PCIE4),
    ("RTX 4080", "4080", "8.9", 76, 717, "0.76 48.7 48.7 97.5 97.5 194.9", _PCIE4),
    ("RTX 4070 Ti SUPER", "4070 TI SUPER", "8.9", 66, 672, "0.69 44.1 44.1 88.2 88.2 176.4", _PCIE4),
    ("RTX 4070 Ti", "4070 TI", "8.9", 60, 504, "0.63 40.1 40.1 80.2 80.2 160.4", _PCIE4),
    ("RTX 4070 SUPER", "4070 SUPER", "8.9", 56, 504, "0.55 35.5 35.5 70.9 70.9 141.9", _PCIE4),
    ("RTX 4070", "4070", "8.9", 46, 504, "0.46 29.1 29.1 58.3 58.3 116.6", _PCIE4),
    ("RTX 4060 Ti", "4060 TI", "8.9", 34, 288, "0.34 22.1 22.1 44.1 44.1 88.3", 15.75),
    ("RTX 4060", "4060", "8.9", 24, 272, "0.24 15.1 15.1 30.2 30.2 60.5", 15.75),
    ("RTX 5090", "5090", "12.0", 170, 1792, "1.64 104.8 104.8 209.5 209.5 419", _PCIE5),
    ("RTX 5080", "5080", "12.0", 84, 960, "0.88 56.3 56.3 112.6 112.6 225.1", _PCIE5),
    ("RTX 5070 Ti", "5070 TI", "12.0", 70, 896, "0.69 43.9 43.9 87.9 87.9 175.8", _PCIE5),
    ("RTX 5070", "5070", "12.0", 48, 672, "0.48 30.9 30.9 61.7 61.7 123.5", _PCIE5),
    ("RTX 5060 Ti", "5060 TI", "12.0", 36, 448, "0.37 23.7 23.7 47.4 47.4 94.8", 31.5),
    ("MI355X", "MI355X", "gfx950", 256, 8000, "78.6 157.3 - 2516.6 2516.6 5033.2", _PCIE5),
    ("MI350X", "MI350X", "gfx950", 256, 8000, "72.1 144.2 - 2306.9 2306.9 4613.7", _PCIE5),
    ("MI325X", "MI325X", "gfx942", 304, 6000, "81.7 163.4 653.7 1307.4 1307.4 2614.9", _PCIE5),
    ("MI300X", "MI300X", "gfx942", 304, 5300, "81.7 163.4 653.7 1307.4 1307.4 2614.9", _PCIE5),
    ("MI300A", "MI300A", "gfx942", 228, 5300, "61.3 122.6 490.3 980.6 980.6 1961.2", _PCIE5),
    ("MI250X (one die)", "MI250X", "gfx90a", 110, 1638, "23.9 23.9 - 191.5 191.5 -", _PCIE4),
    ("MI250 (one die)", "MI250", "gfx90a", 104, 1638, "22.6 22.6 - 181 181 -", _PCIE4),
    ("MI210", "MI210", "gfx90a", 104, 1638, "22.6 22.6 - 181 181 -", _PCIE4),
    ("MI100", "MI100", "gfx908", 120, 1229, "11.5 23.1 - 184.6 92.3 -", _PCIE4),
    ("MI50", "MI50", "gfx906", 60, 1024, "6.6 13.3 - 26.5 - -", _PCIE4),
    ("RX 7900 XTX", "7900 XTX", "gfx1100", 96, 960, "1.9 61.4 - 122.8 122.8 -", _PCIE4),
)  # fmt: skip


def _peaks(row: _Row) -> DevicePeaks:
    name, _, compute, sms, bandwidth, rates, link = row
    fp64, fp32, tf32, fp16, bf16, fp8 = (None if r == "-" else float(r) for r in rates.split())
    return DevicePeaks(
        name, compute, sms, float(bandwidth), fp64, fp32 or 0.0, tf32, fp16, bf16, fp8, link, LIMITS[compute]
    )


DEVICES: tuple[DevicePeaks, ...] = tuple(_peaks(row) for row in _ROWS)
"""Every known device."""

_WORDS = tuple(frozenset(row[1].split()) for row in _ROWS)
_GLUED = re.compile(r"(RTX|GTX|TI|SUPER)(?=\d)|(?<=\d)(TI|SUPER)\b")
_SLICE = re.compile(r"\b(?:MIG|LAPTOP|MOBILE|MAX-Q)\b")
# An empty or generic ROCm name still leaves the compute capability (9, minor) and the number of CUs.
_AMD_BY_SHAPE = {
    ("9.5", 256): "MI355X", ("9.4", 304): "MI300X", ("9.4", 228): "MI300A", ("9.0", 110): "MI250X (one die)",
    ("9.0", 104): "MI210",
}  # fmt: skip


def find_peaks(device_name: str, compute: str | None = None, num_sms: int | None = None) -> DevicePeaks | None:
    """Peaks of the device a trace names, e.g. `NVIDIA H100 80GB HBM3`; None if it is not known.

    Laptop variants and MIG slices share a name with a bigger chip and are None, for a wrong peak is worse than none.
    `compute` ("9.4") and `num_sms` identify AMD devices whose name the driver left empty.
    """
    text = device_name.upper()
    if _SLICE.search(text):
        return None
    text = _GLUED.sub(lambda m: f" {m.group()} ", text)
    words = set(re.split(r"[^A-Z0-9]+", text))
    best = max(range(len(_ROWS)), key=lambda i: (len(_WORDS[i]) if _WORDS[i] <= words else 0, -i))
    if _WORDS[best] <= words:
        return DEVICES[best]
    if compute is not None and num_sms is not None and not words & {"NVIDIA", "GEFORCE", "TESLA", "QUADRO"}:
        known = _AMD_BY_SHAPE.get((compute, num_sms))
        return next((d for d in DEVICES if d.name == known), None)
    return None


def find_limits(compute_major: int | None, compute_minor: int | None) -> LaunchLimits | None:
    """Limits per SM of an NVIDIA compute capability as the trace states it; None if it is not known."""
    return LIMITS.get(f"{compute_major}.{compute_minor}")
