"""Do kernel names tell family, dtype, tensor-core use and fused ops as they should?"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path

import pytest

from gapless.analyses.kernel_names import SHORT_CHARS, decode

from .kernel_cases import MATH, OTHERS


@pytest.mark.parametrize(("name", "expected"), MATH + OTHERS, ids=[name[:50] for name, _ in MATH + OTHERS])
def test_reads_what_the_name_says(name: str, expected: dict[str, object]) -> None:
    identity = decode(name)
    assert {key: getattr(identity, key) for key in expected} == expected


def test_same_work_has_one_canonical_name_across_versions() -> None:
    kernel = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    old, new = f"{kernel}at::detail::Array<char*, 3> >(int)", f"{kernel}std::array<char*, 3ul> >(int)"
    assert decode(old).canonical == decode(new).canonical
    assert decode("triton_poi_fused_mul_sin_0").canonical == decode("triton_poi_fused_mul_sin_17").canonical
    assert (
        decode("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)").canonical
        == decode("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)").canonical
    )


def test_different_work_keeps_different_canonical_names() -> None:
    names = [name for name, _ in MATH + OTHERS]
    assert len({decode(name).canonical for name in names}) == len(names)


def test_gemm_tiles_are_part_of_the_canonical_name() -> None:
    assert decode("ampere_sgemm_128x64_tn").canonical != decode("ampere_sgemm_128x64_nn").canonical


_HOSTILE = (
    "", "(", "<<<<", ">>>>", "a<b<c", "void ", "_Z", "_ZN999a", "(((((", "k<\"&'>" + "A" * 9000, "<" * 100_000,
    "\x00\x1b[31m", "_" + "1" * 4000 + "x", "native::X<a, b" + "_" * 4000, "bmm_A_" * 700,
)  # fmt: skip


@pytest.mark.parametrize("name", _HOSTILE, ids=range(len(_HOSTILE)))
def test_hostile_names_give_an_identity(name: str) -> None:
    identity = decode(name)
    assert len(identity.short) <= SHORT_CHARS
    assert len(identity.canonical) <= 400


def test_long_names_that_differ_late_stay_apart() -> None:
    assert decode("x" * 1000 + "a").canonical != decode("x" * 1000 + "b").canonical


def _kernel_time(path: Path) -> dict[str, float]:
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    time: dict[str, float] = defaultdict(float)
    for event in events:
        if str(event.get("cat")).lower() == "kernel":
            time[event["name"]] += event["dur"]
    return time


_FILES = (
    "h200/pairs/fp32_conv.before.json.gz", "h200/pairs/dataloader.before.json.gz", "h200/article/attn_math.json.gz",
    "h200/ddp/plain.rank0.json.gz", "public/hta/mi250.json.gz", "public/tracelens/mi210_gpu_only.json.gz",
    "public/tracelens/mi300_triton.json.gz", "public/tracelens/h100_falconsai.json.gz",
    "public/param/dlrm_rank3.json.gz", "public/tracelens/sglang_decode.json.gz",
)  # fmt: skip


@pytest.mark.parametrize("file", _FILES)
def test_little_kernel_time_stays_unnamed(shared: Path, file: str) -> None:
    time = _kernel_time(shared / file)
    unnamed = sum(ns for name, ns in time.items() if decode(name).family == "other")
    assert unnamed < 0.02 * sum(time.values())


def test_fp32_convolutions_are_seen_off_the_tensor_cores(shared: Path) -> None:
    before = _kernel_time(shared / "h200/pairs/fp32_conv.before.json.gz")
    kinds = {name: decode(name) for name in before}
    off = {n for n, k in kinds.items() if k.family in ("convolution", "gemm") and k.tensor_core is False}
    slow = sum(before[name] for name in off)
    assert slow > 0.5 * sum(before.values())
