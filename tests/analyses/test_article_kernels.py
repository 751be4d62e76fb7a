"""Do the articles' experiments, on an H200, read as their texts say: what fused and what fell off tensor cores?"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

from gapless.analyses.kernel_names import KernelIdentity, decode
from gapless.analyses.occupancy import state_occupancy
from gapless.model.peaks import LIMITS


def work(shared: Path, name: str) -> list[tuple[KernelIdentity, dict[str, object]]]:
    """Identity and arguments of each kernel and copy of one file; memsets left out."""
    events = json.loads(gzip.decompress((shared / f"h200/article/{name}.json.gz").read_bytes()))["traceEvents"]
    return [(decode(e["name"]), e["args"]) for e in events if e.get("cat") in ("kernel", "gpu_memcpy")]


def families(shared: Path, name: str) -> Counter[str]:
    return Counter(identity.family for identity, _ in work(shared, name))


def gemms(shared: Path, name: str) -> Counter[str]:
    return Counter(i.canonical for i, _ in work(shared, name) if i.family == "gemm")


def test_compiling_matmul_and_add_trades_the_add_for_a_copy(shared: Path) -> None:
    assert families(shared, "mm4096_warm_eager") == {"gemm": 3, "pointwise": 3}
    assert families(shared, "mm4096_compile") == {"gemm": 3, "memcpy": 3}


def test_one_linear_has_nothing_to_fuse(shared: Path) -> None:
    assert gemms(shared, "linear_eager") == gemms(shared, "linear_compile")
    assert families(shared, "linear_eager") == families(shared, "linear_compile") == {"gemm": 3}


def test_geglu_fuses_gelu_and_multiplication_and_leaves_the_gemms(shared: Path) -> None:
    assert families(shared, "geglu_eager") == {"gemm": 9, "pointwise": 6}
    assert families(shared, "geglu_compile") == {"gemm": 9, "triton": 3}
    assert gemms(shared, "geglu_eager") == gemms(shared, "geglu_compile")
    fused = {i.fused_ops for i, _ in work(shared, "geglu_compile") if i.family == "triton"}
    assert fused == {("_unsafe_view", "gelu", "mul")}


def test_only_the_math_backend_leaves_the_tensor_cores(shared: Path) -> None:
    for name in ("attn_naive", "attn_inplace", "attn_flash", "attn_efficient", "attn_cudnn"):
        assert all(i.tensor_core for i, _ in work(shared, name) if i.family in ("gemm", "attention")), name
    math = [i for i, _ in work(shared, "attn_math") if i.family == "gemm"]
    assert {(i.dtype, i.tensor_core) for i in math} == {("fp32", False)}
    assert any(i.cast for i, _ in work(shared, "attn_math"))


def test_fused_attention_is_one_kernel_and_a_masked_copy_shows(shared: Path) -> None:
    for name in ("attn_flash", "attn_efficient", "attn_cudnn"):
        assert families(shared, name) == {"attention": 3}
    assert families(shared, "attn_naive")["memcpy"] == 3
    assert families(shared, "attn_inplace")["memcpy"] == 0


def test_cudnn_attention_reported_as_empty_is_recomputed(shared: Path) -> None:
    (_, args), *_ = work(shared, "attn_cudnn")
    threads, _, _ = args["block"]  # type: ignore[misc]
    reported = args["est. achieved occupancy %"]
    assert reported == 0
    stated = state_occupancy(reported, threads, args["registers per thread"], args["shared memory"], LIMITS["9.0"])  # type: ignore[arg-type]
    assert stated is not None
    assert (stated.percent, stated.source) == (18.75, "recomputed")
