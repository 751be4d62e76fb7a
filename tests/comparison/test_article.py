"""The articles' experiments on an H200: what eager and compiled code, and attention's variants, really differ in."""

from __future__ import annotations

import pytest

from gapless.model.diff import Diff

from .conftest import Compared

MATMUL = ("h200/article/mm4096_warm_eager", "h200/article/mm4096_compile")
LINEAR = ("h200/article/linear_eager", "h200/article/linear_compile")
GEGLU = ("h200/article/geglu_eager", "h200/article/geglu_compile")
GRAPH = ("h200/article/geglu_eager", "h200/article/geglu_cudagraph")
TRITON = "triton_poi_fused__unsafe_view_gelu_mul_0"


def count(diff: Diff, what: str) -> tuple[float | None, float | None]:
    row = next(row for row in diff.counts if row.what == what)
    return row.before, row.after


def test_t6_matmul_and_add(compared: Compared) -> None:
    diff = compared(*MATMUL).diff
    assert count(diff, "kernels") == (2, 1)
    assert count(diff, "copies DtoD") == (0, 1)
    assert count(diff, "bytes DtoD") == (0, 33_554_432)
    assert count(diff, "memsets") == (1, 1)
    (gemm,) = diff.kernels.same
    assert "_bz_" in gemm.full_name
    assert "_badd_" in gemm.full_name_after
    assert (gemm.renamed, gemm.family, gemm.op, gemm.op_after) == (True, "gemm", "aten::mm", "aten::addmm")
    assert [row.op for row in diff.kernels.removed] == ["aten::add"]
    assert diff.kernels.added == []
    (copy,) = diff.copies.added
    assert (copy.family, copy.bytes, copy.op) == ("memcpy", 33_554_432, "aten::addmm")
    assert diff.fusion == "dispatcher"
    assert "addmm" in diff.fusion_why
    assert diff.compile.regions == 1
    assert diff.compile.host_ms_before is not None
    assert diff.compile.host_ms_after is not None
    assert diff.compile.host_ms_after > 1.3 * diff.compile.host_ms_before
    assert diff.compile.guard_ms > 0
    assert diff.compile.break_even_steps is None
    assert diff.compile.break_even.startswith("never")
    assert "torch.compile" in diff.summary


def test_t7_a_linear_has_nothing_to_fuse(compared: Compared) -> None:
    diff = compared(*LINEAR).diff
    assert count(diff, "kernels") == (1, 1)
    assert [(row.change, row.renamed) for row in diff.kernels.same] == [("same", False)]
    assert diff.kernels.removed == diff.kernels.added == []
    assert diff.fusion == "none"
    assert diff.fusion_why.startswith("nothing to fuse")
    assert diff.speedup.verdict == "slower", "the compiled call costs more than it saves"


def test_t8_geglu_fuses_two_ops(compared: Compared) -> None:
    diff = compared(*GEGLU).diff
    assert count(diff, "kernels") == (5, 4)
    assert [(row.before, row.after, row.renamed) for row in diff.kernels.same] == [(2, 2, False), (1, 1, False)]
    (fused,) = diff.kernels.fused
    assert fused.name == TRITON
    assert fused.replaces == ["aten::gelu", "aten::mul"]
    assert fused.bytes_saved == 2 * 64 * 128 * 3072 * 2, "50 MB no longer written, 50 MB no longer read"
    assert diff.fusion == "kernel"
    (region,) = diff.structure.regions
    assert region.ops == ["aten::linear", "aten::gelu", "aten::linear", "aten::mul", "aten::linear"]
    assert TRITON in diff.summary


def test_t8_the_same_as_a_cuda_graph(compared: Compared) -> None:
    diff = compared(*GRAPH).diff
    assert count(diff, "graph launches") == (0, 1)
    assert count(diff, "kernels in graphs") == (0, 4)
    assert count(diff, "launches")[1] == 2
    assert diff.compile.after.graph_launches == 1
    (copied,) = diff.compile.after.input_copies
    assert copied.startswith("aten::_foreach_copy_")
    assert [row.name for row in diff.kernels.fused] == [TRITON]
    assert "CUDA graph" in diff.summary


@pytest.mark.parametrize(
    ("variant", "kernels"),
    [("naive", 5), ("inplace", 5), ("math", 20), ("efficient", 1), ("flash", 1), ("cudnn", 1)],
)
def test_t9_kernels_of_attention(compared: Compared, variant: str, kernels: int) -> None:
    diff = compared(f"h200/article/attn_{variant}", f"h200/article/attn_{variant}").diff
    assert count(diff, "kernels") == (kernels, kernels)
    assert (diff.speedup.verdict, diff.kernels.removed, diff.kernels.added) == ("same", [], [])


def test_t9_the_hidden_copy_of_masked_fill(compared: Compared) -> None:
    diff = compared("h200/article/attn_naive", "h200/article/attn_inplace").diff
    (copy,) = diff.copies.removed
    assert (copy.bytes, copy.before, copy.after) == (268_435_456, 1, 0)
    assert "copied inside aten::masked_fill" in diff.summary
    assert diff.kernels.removed == diff.kernels.added == []
    assert diff.speedup.verdict == "faster"


def test_t9_math_against_flash(compared: Compared) -> None:
    diff = compared("h200/article/attn_math", "h200/article/attn_flash").diff
    assert diff.speedup.verdict == "faster"
    (flash,) = diff.kernels.added
    assert flash.family == "attention"
    slow = [row for row in diff.kernels.removed if row.family == "gemm"]
    assert [row.tensor_core for row in slow] == [False, False]
    (fused,) = diff.kernels.fused
    assert (fused.kernels, fused.count) == (20, 1)
    assert diff.fusion == "kernel"
    assert "attention now runs in fused kernels" in diff.summary


def test_t9_cudnn_is_linked_through_its_own_launch_call(compared: Compared) -> None:
    diff = compared("h200/article/attn_efficient", "h200/article/attn_cudnn").diff
    (kernel,) = diff.kernels.added
    assert kernel.op == "aten::_cudnn_attention_forward"
    assert "cudnn" in kernel.full_name


def test_graph_breaks_have_a_line_and_a_reason(compared: Compared) -> None:
    diff = compared("h200/article/geglu_eager", "h200/article/graph_breaks").diff
    assert diff.compile.graph_breaks == 2
    found = [(b.side, b.file, b.line, b.function, b.reason) for b in diff.compile.breaks]
    assert found == [
        ("after", "article.py", 62, "broken", "torch._dynamo.graph_break() is called"),
        ("after", "article.py", 64, "broken", "aten::is_nonzero: Python needs a value of a tensor"),
    ]
    assert diff.compile.after.cache_hits is True
