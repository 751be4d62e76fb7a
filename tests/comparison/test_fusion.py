"""Fusion on literal steps: who did whose work, what no longer travels, and the class."""

from __future__ import annotations

import pytest

from gapless.comparison.fusion import fusion
from gapless.comparison.structure import structure

from .pieces import ADD, COPY, GELU, GEMM, GEMM_ADD, GEMM_OTHER, MUL, aligned, piece

TENSOR = 1024 * 1024 * 2


def fused_pair() -> tuple[list, list]:
    """Two matrix products with GELU and a product between them, and the same compiled."""
    old = [
        piece(GEMM, "aten::mm", dims=2), piece(GELU, "aten::gelu", ns=3_000, row=1),
        piece(MUL, "aten::mul", ns=4_000, dims=2, row=2), piece(GEMM_OTHER, "aten::mm", dims=2),
    ]  # fmt: skip
    new = [
        piece(GEMM, "aten::mm", dims=2, region="0/0"),
        piece("triton_poi_fused__unsafe_view_gelu_mul_0", "triton_poi_fused__unsafe_view_gelu_mul_0", ns=4_000, region="0/0"),
        piece(GEMM_OTHER, "aten::mm", dims=2, region="0/0"),
    ]  # fmt: skip
    return old, new


def test_a_generated_kernel_takes_the_ops_that_it_names() -> None:
    old, new = fused_pair()
    found = fusion(old, new, aligned(old, new))
    assert found.taken == {1: [1, 2]}
    assert found.kind == "kernel"
    (row,) = found.fused
    assert row.name == "triton_poi_fused__unsafe_view_gelu_mul_0"
    assert row.replaces == ["aten::gelu", "aten::mul"]
    assert (row.count, row.kernels, row.source) == (1.0, 2.0, "name")
    assert row.bytes_saved == 2 * TENSOR, "GELU's output is no longer written and read"
    assert row.bytes_exact is False
    assert found.unfused == []


def test_the_other_way_round_it_is_unfused() -> None:
    old, new = fused_pair()
    there, back = fusion(old, new, aligned(old, new)), fusion(new, old, aligned(new, old))
    assert (back.unfused, back.fused, back.kind) == (there.fused, [], "kernel")
    assert "no longer does the work of" in back.why


def test_the_compilers_own_figure_is_better() -> None:
    old, new = fused_pair()
    new[1] = piece(new[1].name, new[1].op, gb=3 * TENSOR / 1e9)
    (row,) = fusion(old, new, aligned(old, new)).fused
    assert row.bytes_saved == pytest.approx(2 * TENSOR)
    assert row.bytes_exact is True


def test_the_nearest_of_equal_kernels_takes_an_op() -> None:
    block = [piece(GEMM, "aten::mm", dims=2), piece(ADD, "aten::add", dims=2), piece(GELU, "aten::gelu")]
    compiled = [piece(GEMM, "aten::mm", dims=2), piece("triton_poi_fused_add_gelu_0", "triton_poi_fused_add_gelu_0")]
    old, new = block * 3, compiled * 3
    assert fusion(old, new, aligned(old, new)).taken == {1: [1, 2], 3: [4, 5], 5: [7, 8]}


def test_one_for_one_is_no_fusion() -> None:
    old = [piece(GEMM, "aten::mm", dims=2), piece(GELU, "aten::gelu")]
    new = [piece(GEMM, "aten::mm", dims=2), piece("triton_poi_fused_gelu_0", "triton_poi_fused_gelu_0")]
    found = fusion(old, new, aligned(old, new))
    assert (found.fused, found.kind, found.why) == ([], "none", "nothing fused")


def test_ops_merged_by_the_dispatcher() -> None:
    old = [piece(GEMM, "aten::mm", dims=2), piece(ADD, "aten::add", dims=2)]
    new = [piece(COPY, "aten::addmm", size=TENSOR), piece(GEMM_ADD, "aten::addmm", dims=3)]
    found = fusion(old, new, aligned(old, new))
    assert found.kind == "dispatcher"
    assert found.why.startswith("aten::mm and aten::add became aten::addmm")
    assert "a copy of the bias" in found.why
    assert fusion(new, old, aligned(new, old)).kind == "dispatcher"


def test_both_is_mixed() -> None:
    old, new = fused_pair()
    old += [piece(GEMM, "aten::mm", dims=2), piece(ADD, "aten::add", dims=2)]
    new += [piece(GEMM_ADD, "aten::addmm", dims=3)]
    assert fusion(old, new, aligned(old, new)).kind == "mixed"


def test_nothing_to_fuse() -> None:
    old = [piece(GEMM, "aten::addmm", dims=3)]
    found = fusion(old, old, aligned(old, old))
    assert found.kind == "none"
    assert found.why.startswith("nothing to fuse")


def test_written_out_attention_went_into_one_kernel() -> None:
    softmax = "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 10, false, false>(c10::BFloat16*)"
    flash = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::bfloat16_t> >(int)"
    old = [
        piece(GELU, "aten::gelu"), piece(GEMM, "aten::bmm"), piece(MUL, "aten::mul", dims=2), piece(softmax, "aten::_softmax"),
        piece(GEMM_OTHER, "aten::bmm"), piece(ADD, "aten::add", dims=2),
    ]  # fmt: skip
    new = [piece(GELU, "aten::gelu"), piece(flash, "aten::_flash_attention_forward"), piece(ADD, "aten::add", dims=2)]
    found = fusion(old, new, aligned(old, new))
    assert found.taken == {1: [1, 2, 3, 4]}
    assert found.fused[0].source == "place"


def test_structure_shows_stretches_and_regions() -> None:
    old, new = fused_pair()
    pairs = aligned(old, new)
    found = fusion(old, new, pairs)
    shape = structure(old, new, pairs, found.taken, found.given)
    assert (shape.matched, shape.only_before, shape.only_after) == (2, 2, 1)
    (row,) = shape.changed
    assert (row.before, row.after, row.count) == (
        ["aten::gelu", "aten::mul"],
        ["triton_poi_fused__unsafe_view_gelu_mul_0"],
        1,
    )
    (region,) = shape.regions
    assert (region.region, region.side, region.ops) == (
        "0/0",
        "after",
        ["aten::mm", "aten::gelu", "aten::mul", "aten::mm"],
    )


def test_equal_stretches_count_together() -> None:
    block = [piece(GEMM, "aten::mm", dims=2), piece(ADD, "aten::add", dims=2), piece(ADD, "aten::add", dims=2)]
    old, new = block * 4, [piece(GEMM, "aten::mm", dims=2)] * 4
    pairs = aligned(old, new)
    (row,) = structure(old, new, pairs, {}, {}).changed
    assert (row.before, row.after, row.count) == (["aten::add x2"], [], 4)
