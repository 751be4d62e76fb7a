"""Are devices found by the names that drivers give them?"""

from __future__ import annotations

import pytest

from gapless.model.peaks import DEVICES, find_limits, find_peaks


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("NVIDIA H100 80GB HBM3", "H100 SXM"), ("NVIDIA H100 PCIe", "H100 PCIe"), ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA H200", "H200"), ("NVIDIA B200", "B200"), ("NVIDIA GB200", "GB200"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB"), ("NVIDIA A100 80GB PCIe", "A100 PCIe 80GB"), ("NVIDIA A10G", "A10G"),
        ("NVIDIA A10", "A10"), ("NVIDIA L40S", "L40S"), ("Tesla T4", "T4"), ("Tesla V100-SXM2-16GB", "V100 SXM2"),
        ("Tesla V100-PCIE-32GB", "V100 PCIe"), ("NVIDIA GeForce RTX 3090", "RTX 3090"),
        ("GeForce RTX3080Ti", "RTX 3080 Ti"),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", "RTX 4070 Ti SUPER"), ("NVIDIA GeForce RTX 5090", "RTX 5090"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"), ("Quadro RTX 6000", "Quadro RTX 6000"),
        ("AMD Instinct MI300X VF", "MI300X"), ("AMD Instinct MI210", "MI210"),
        ("AMD Instinct MI250X", "MI250X (one die)"),
    ],
)  # fmt: skip
def test_finds_a_device_by_its_name(name: str, found: str) -> None:
    peaks = find_peaks(name)
    assert peaks is not None
    assert peaks.name == found


@pytest.mark.parametrize(
    "name",
    ["", "AMD Radeon Graphics", "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA A100-SXM4-40GB MIG 3g.20gb", "A1000"],
)
def test_an_unknown_or_partial_device_has_no_peaks(name: str) -> None:
    assert find_peaks(name) is None


def test_a_nameless_amd_device_is_known_by_its_shape() -> None:
    peaks = find_peaks("AMD Radeon Graphics", "9.4", 304)
    assert peaks is not None
    assert peaks.name == "MI300X"
    assert find_peaks("NVIDIA something", "9.0", 104) is None


def test_rates_rise_as_precision_falls_and_every_row_finds_itself() -> None:
    for device in DEVICES:
        rates = [r for r in (device.tf32, device.bf16, device.fp8) if r is not None]
        assert rates == sorted(rates), device.name
        assert device.bandwidth_gbs > 0
        assert device.tflops("fp32") == device.fp32
        assert device.tflops("int64") is None


def test_matrix_rate_of_fp32_is_tf32_where_there_is_one() -> None:
    h200, t4 = find_peaks("NVIDIA H200"), find_peaks("Tesla T4")
    assert h200 is not None
    assert t4 is not None
    assert h200.matrix_tflops("fp32") == h200.tf32
    assert t4.matrix_tflops("fp32") == t4.fp32


def test_limits_by_compute_capability() -> None:
    hopper = find_limits(9, 0)
    assert hopper is not None
    assert (hopper.max_warps_per_sm, hopper.shared_bytes_per_sm) == (64, 233472)
    assert find_limits(1, 0) is None
    assert find_limits(None, None) is None
