"""Do shapes and types give the operations and bytes one counts by hand?"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.analyses.op_costs import op_cost

BF16, FP32, INT64 = "c10::BFloat16", "float", "long int"


def texts(*args: tuple[object, str] | tuple[object, str, str]) -> tuple[str, str, str]:
    """The three texts of an op: dims, types, concrete values."""
    values = [a[2] if len(a) > 2 else "" for a in args]
    return json.dumps([a[0] for a in args]), json.dumps([a[1] for a in args]), json.dumps(values)


SCALAR = ([], "Scalar")


@pytest.mark.parametrize(
    ("name", "args", "flops", "read", "written"),
    [
        # A GEMM of the articles: 8192 x 768 x 3072 in bf16, 38.7 GFLOP; its output is 50.3 MB.
        ("aten::mm", [([8192, 768], BF16), ([768, 3072], BF16)], 38_654_705_664, 17_301_504, 50_331_648),
        ("aten::mm.out", [([8, 4], FP32), ([4, 2], FP32), ([8, 2], FP32)], 128, 160, 64),
        ("aten::addmm", [([3], FP32), ([2, 5], FP32), ([5, 3], FP32), SCALAR, SCALAR], 60, 112, 24),
        ("aten::bmm", [([10, 2, 3], FP32), ([10, 3, 4], FP32)], 480, 720, 320),
        ("aten::baddbmm", [([1, 2, 4], FP32), ([10, 2, 3], FP32), ([10, 3, 4], FP32), SCALAR, SCALAR], 480, 752, 320),
        ("aten::linear", [([7, 2, 3], FP32), ([5, 3], FP32), ([5], FP32)], 420, 248, 280),
        ("aten::matmul", [([6, 1, 2, 3], FP32), ([4, 3, 5], FP32)], 1440, 384, 960),
        ("aten::mv", [([4, 3], FP32), ([3], FP32)], 24, 60, 16),
        ("aten::add", [([8, 1, 4], FP32), ([5, 4], FP32), SCALAR], 160, 208, 640),
        ("aten::mul_", [([64, 64], FP32), ([], "double")], 4096, 16392, 16384),
        ("aten::gt", [([100], FP32), SCALAR], 100, 400, 100),
        ("aten::where", [([10, 10], "bool"), ([], FP32), ([], FP32)], 0, 108, 400),
        ("aten::sum", [([16, 8], FP32), ([], "ScalarList", "[0]"), SCALAR, ([], "")], 128, 512, 32),
        ("aten::_softmax", [([4, 5], BF16), SCALAR, SCALAR], 100, 40, 40),
        ("aten::native_layer_norm", [([4, 8], BF16), ([], "ScalarList"), ([8], BF16), ([8], BF16)], 256, 96, 64),
        ("aten::embedding", [([1000, 16], FP32), ([3, 5], INT64), SCALAR], 0, 1080, 960),
        ("aten::index_select", [([1000, 16], FP32), ([], "Scalar", "0"), ([7], INT64)], 0, 504, 448),
        ("aten::copy_", [([8, 8], FP32), ([8, 8], BF16), SCALAR], 0, 128, 256),
        ("aten::_to_copy", [([8, 8], FP32), ([], "Scalar", "15")], 0, 256, 128),
        ("aten::fill_", [([9], FP32), SCALAR], 0, 0, 36),
        ("aten::_foreach_addcdiv_", [([[4], [2, 3]], "TensorList")] * 3 + [([], "ScalarList")], 10, 120, 40),
        ("aten::_foreach_copy_", [([[4], [6]], "TensorList"), ([[4], [6]], "TensorList"), SCALAR], 10, 40, 40),
        ("aten::_fused_adamw_", [([[10]], "TensorList")] * 4 + [([], "TensorList"), SCALAR], 140, 160, 120),
        ("aten::cat", [([[4, 2], [6, 2]], "TensorList"), SCALAR], 0, 80, 80),
        ("triton_poi_fused_gelu_mul_0", [([64, 8], BF16), ([64, 8], BF16), SCALAR], 0, 1024, 1024),
    ],
)
def test_counts(name: str, args: list[tuple[object, str]], flops: int, read: int, written: int) -> None:
    cost = op_cost(name, *texts(*args))
    assert cost is not None
    assert (cost.flops, cost.bytes_read, cost.bytes_written) == (flops, read, written)


def _conv(*positions: str) -> list[tuple[object, str, str]]:
    return [([], "ScalarList" if p.startswith("[") else "Scalar", p) for p in positions]


def test_convolution_forward_and_backward() -> None:
    image, weight = ([16, 3, 224, 224], FP32), ([64, 3, 7, 7], FP32)
    forward = op_cost("aten::cudnn_convolution", *texts(image, weight, *_conv("[3, 3]", "[2, 2]", "[1, 1]", "1")))
    assert forward is not None
    once = 2 * 16 * 64 * 112 * 112 * 3 * 49
    assert forward.flops == once
    assert forward.bytes_written == 16 * 64 * 112 * 112 * 4
    grad = ([16, 64, 112, 112], FP32)
    rest = _conv("[64]", "[2, 2]", "[3, 3]", "[1, 1]", "False", "[0, 0]", "1")
    both = op_cost("aten::convolution_backward", *texts(grad, image, weight, *rest, *_conv("[True, True, True]")))
    only = op_cost("aten::convolution_backward", *texts(grad, image, weight, *rest, *_conv("[False, True, False]")))
    assert both is not None
    assert only is not None
    assert (both.flops, only.flops) == (2 * once, once)


def test_grouped_convolution_counts_its_group_only() -> None:
    rest = _conv("[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "32")
    cost = op_cost("aten::convolution", *texts(([1, 32, 8, 8], FP32), ([32, 1, 3, 3], FP32), ([], ""), *rest))
    assert cost is not None
    assert cost.flops == 2 * 32 * 64 * 9


def test_attention_halves_under_a_causal_mask_and_says_when_it_cannot_know() -> None:
    q = ([8, 1024, 16, 64], BF16)
    values = [([], "Scalar", v) for v in ("1024", "1024", "0.", "True", "False")]
    causal = op_cost("aten::_flash_attention_forward", *texts(q, q, q, ([], ""), ([], ""), *values))
    assert causal is not None
    assert causal.flops == 4 * 8 * 16 * 1024 * 1024 * 64 / 2
    assert causal.exact
    dims, types, _ = texts(q, q, q, ([], ""), ([], ""), *values)
    unknown = op_cost("aten::_flash_attention_forward", dims, types)
    assert unknown is not None
    assert unknown.flops == 2 * causal.flops
    assert not unknown.exact
    assert "causal" in unknown.note


def test_attention_backward_costs_two_and_a_half_forwards() -> None:
    t = ([2, 4, 128, 64], BF16)
    forward = op_cost("aten::_scaled_dot_product_flash_attention", *texts(t, t, t, SCALAR, ([], "Scalar", "False")))
    rest = [([], "Scalar")] * 6
    backward = op_cost(
        "aten::_scaled_dot_product_flash_attention_backward", *texts(*[t] * 5, *rest, ([], "Scalar", "False"))
    )
    assert forward is not None
    assert backward is not None
    assert backward.flops == 2.5 * forward.flops


def test_elements_of_lists_take_the_type_of_the_kernel() -> None:
    listed = texts(([[4], [6]], "TensorList"), SCALAR)
    assumed, told = op_cost("aten::_foreach_mul_", *listed), op_cost("aten::_foreach_mul_", *listed, element="bf16")
    assert assumed is not None
    assert told is not None
    assert (assumed.bytes, assumed.exact) == (80, False)
    assert (told.bytes, told.exact) == (40, True)


def test_an_expanded_tensor_is_read_once() -> None:
    dims, types, _ = texts(([64, 256], FP32), ([64, 256], FP32), SCALAR)
    plain = op_cost("aten::add", dims, types)
    expanded = op_cost("aten::add", dims, types, strides="[[256, 1], [0, 1], []]")
    assert plain is not None
    assert expanded is not None
    assert plain.bytes_read - expanded.bytes_read == 63 * 256 * 4
    assert expanded.bytes_written == plain.bytes_written


@pytest.mark.parametrize(
    ("name", "dims", "types"),
    [
        ("aten::mm", "[[8192, 768], [768", '["float", "float"]'),
        ("aten::mm", "[[2, 3], [4, 5]]", '["float", "float"]'),
        ("aten::mm", "[[2, -3], [-3, 5]]", '["float", "float"]'),
        ("aten::mm", "[[2, 3], [3, 5]]", '["float"]'),
        ("aten::mm", None, None),
        ("aten::mm", "", ""),
        ("aten::mm", '{"a": 1}', "[]"),
        ("aten::mm", "[[1e9, 3], [3, 5]]", '["float", "float"]'),
        ("aten::mm", "[[999999999999, 999999999999], [999999999999, 5]]", '["float", "float"]'),
        ("aten::add", "[[2, 3], [4]]", '["float", "float"]'),
        ("aten::_foreach_add_", "[[], []]", '["TensorList", "Scalar"]'),
        ("aten::nonzero", "[[5]]", '["bool"]'),
        ("aten::cudnn_convolution", "[[1, 3, 8, 8], [4, 3, 3, 3], []]", '["float", "float", "ScalarList"]'),
        ("some::thing", "[[5]]", '["float"]'),
        ("aten::mm", "[" * 100_000, "[" * 100_000),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_none(name: str, dims: str | None, types: str | None) -> None:
    assert op_cost(name, dims, types) is None


_NAMES = st.sampled_from(
    [
        "mm", "addmm", "bmm", "linear", "matmul", "cudnn_convolution", "convolution_backward", "add_", "sum", "gather",
        "cat", "_flash_attention_forward", "_foreach_norm", "_fused_adamw_", "index_select", "_to_copy", "where",
        "embedding_dense_backward", "mse_loss", "scatter_add_",
    ]
)  # fmt: skip
_SHAPE = st.lists(st.integers(-1, 5), max_size=4)
_TYPE = st.sampled_from(["float", BF16, INT64, "bool", "Scalar", "ScalarList", "TensorList", "", "odd"])
_VALUE = st.sampled_from(["", "True", "0", "-7", "[1, 1]", "[99]", "x", "9" * 40])


@given(_NAMES, st.lists(st.tuples(st.one_of(_SHAPE, st.lists(_SHAPE, max_size=3)), _TYPE, _VALUE), max_size=12))
def test_any_arguments_give_a_cost_or_none(name: str, args: list[tuple[object, str, str]]) -> None:
    cost = op_cost(f"aten::{name}", *texts(*args))
    assert cost is None or (cost.flops >= 0 and cost.bytes_read >= 0 and cost.bytes_written >= 0)
