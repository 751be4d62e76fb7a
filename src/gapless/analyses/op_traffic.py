"""How many bytes must a memory-bound op move at least: pointwise, reductions, norms, indexing, copies, optimizers?"""

from __future__ import annotations

import math
from collections.abc import Callable

from gapless.analyses.op_args import SIZE, OpArgs, TensorArg, broadcast
from gapless.analyses.op_math import OpCost


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


UNARY = _words(
    """
    abs absolute acos asin atan bitwise_not ceil celu cos cosh deg2rad digamma elu erf erfc erfinv exp exp2
    expm1 floor frac gelu glu hardshrink hardsigmoid hardswish hardtanh leaky_relu lgamma log log10 log1p log2
    log_sigmoid_forward logit mish mvlgamma nan_to_num neg negative rad2deg reciprocal relu relu6 round rsqrt
    sgn sigmoid sign silu sin sinc sinh softplus sqrt square tan tanh threshold tril triu trunc clamp_max
    clamp_min isnan isinf isfinite isneginf isposinf logical_not signbit
    """
)
BINARY = _words(
    """
    add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign div divide
    elu_backward floor_divide fmax fmin fmod gelu_backward hardsigmoid_backward hardswish_backward
    hardtanh_backward hypot leaky_relu_backward logaddexp masked_fill maximum minimum mish_backward mul
    multiply native_dropout_backward polar pow prelu remainder rsub sigmoid_backward silu_backward
    softplus_backward sub subtract tanh_backward threshold_backward true_divide xlogy eq ne lt le gt ge equal
    logical_and logical_or logical_xor
    """
)
TERNARY = frozenset(("addcdiv", "addcmul", "clamp", "clip", "lerp", "where"))
"""Ops with one output element per element of their inputs, by the number of tensors they read at most."""

_GIVES_BOOL = _words(
    """
    eq ne lt le gt ge equal isnan isinf isfinite isneginf isposinf logical_and logical_or logical_not
    logical_xor signbit
    """
)

REDUCTIONS = _words(
    """
    sum mean prod max min amax amin any all argmax argmin norm linalg_vector_norm var std var_mean std_mean
    logsumexp nansum count_nonzero median mse_loss l1_loss smooth_l1_loss binary_cross_entropy
    binary_cross_entropy_with_logits
    """
)
"""Ops that read their tensors once and write far less."""

_FLOPS_PER_ELEMENT = {"gelu": 8, "gelu_backward": 12, "silu": 4, "silu_backward": 6, "sigmoid": 3, "tanh": 5, "exp": 1,
                      "addcmul": 3, "addcdiv": 3, "lerp": 3, "where": 0, "masked_fill": 0}  # fmt: skip


def traffic_cost(base: str, args: OpArgs, element: str | None) -> OpCost | None:
    """Cost of an op that is limited by memory; None for one that is not known."""
    plain = base.removesuffix("_")
    in_place = base.endswith("_")
    if plain.startswith("_foreach_"):
        return _foreach(plain.removeprefix("_foreach_"), args, element)
    if plain.startswith("_fused_"):
        return _fused_optimizer(plain, args, element)
    if plain.startswith("triton_"):
        return _triton(args)
    arity = 1 if plain in UNARY else 2 if plain in BINARY else 3 if plain in TERNARY else 0
    if arity:
        return _pointwise(plain, args, in_place, arity)
    if plain in REDUCTIONS:
        return _reduction(args, 2 if "loss" in plain or "cross_entropy" in plain else 1)
    reader = _READERS.get(plain)
    return reader(args, element) if reader is not None else None


def _widest(tensors: list[TensorArg]) -> TensorArg:
    """The tensor whose type the result has: zero-dimensional ones are numbers and do not widen it."""
    return max(tensors, key=lambda t: (bool(t.shape), t.dtype != "bool", t.element_bytes))


def _pointwise(plain: str, args: OpArgs, in_place: bool, arity: int) -> OpCost | None:
    # Tensors after the inputs are `out=` arguments.
    tensors = args.tensors()[:arity]
    if not tensors:
        return None
    out_shape = tensors[0].shape if in_place else broadcast([t.shape for t in tensors])
    if out_shape is None:
        return None
    count = math.prod(out_shape)
    kind = tensors[0] if in_place else _widest(tensors[1:] if plain == "where" and len(tensors) > 1 else tensors)
    element_bytes = 1 if plain in _GIVES_BOOL and not in_place else kind.element_bytes
    flops = float(count * _FLOPS_PER_ELEMENT.get(plain, 1))
    return OpCost(flops, sum(t.size for t in tensors), count * element_bytes, kind.dtype)


def _reduction(args: OpArgs, inputs: int) -> OpCost | None:
    tensors = args.tensors()[:inputs]
    if not tensors:
        return None
    first = tensors[0]
    dims = args.numbers(1)
    written = first.element_bytes
    if dims and all(-len(first.shape) <= d < len(first.shape) for d in dims):
        kept = {d % len(first.shape) for d in dims}
        written *= math.prod(n for i, n in enumerate(first.shape) if i not in kept)
    return OpCost(float(first.count), sum(t.size for t in tensors), written, first.dtype)


def _same_again(flops_per_element: int, tensors_read: int) -> Callable[[OpArgs, str | None], OpCost | None]:
    """Read the first n tensors and write one like the first: softmax, norms and their backward passes."""

    def cost(args: OpArgs, _element: str | None) -> OpCost | None:
        tensors = args.tensors()
        if len(tensors) < tensors_read:
            return None
        first, rest = tensors[0], sum(t.size for t in tensors[tensors_read:] if t.count < tensors[0].count)
        read = sum(t.size for t in tensors[:tensors_read]) + rest
        return OpCost(float(first.count * flops_per_element), read, first.size, first.dtype)

    return cost


def _copy(args: OpArgs, _element: str | None) -> OpCost | None:
    target, source = args.tensor(0), args.tensor(1)
    if target is None or source is None:
        return None
    return OpCost(0.0, source.size, target.size, target.dtype)


def _clone(args: OpArgs, _element: str | None) -> OpCost | None:
    source = args.tensor(0)
    return None if source is None else OpCost(0.0, source.size, source.size, source.dtype)


# c10::ScalarType codes, as `Concrete Inputs` writes a dtype argument.
_SCALAR_TYPES = {0: "int8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "fp16", 6: "fp32", 7: "fp64", 11: "bool",
                 15: "bf16", 23: "fp8", 24: "fp8"}  # fmt: skip


def _to_copy(args: OpArgs, _element: str | None) -> OpCost | None:
    source = args.tensor(0)
    if source is None:
        return None
    code = args.numbers(1)
    target = _SCALAR_TYPES.get(code[0]) if code else None
    width = SIZE[target] if target else source.element_bytes
    return OpCost(0.0, source.size, source.count * width, target or source.dtype, target is not None)


def _write_only(args: OpArgs, _element: str | None) -> OpCost | None:
    target = args.tensor(0)
    return None if target is None else OpCost(0.0, 0, target.size, target.dtype)


def _dropout(args: OpArgs, _element: str | None) -> OpCost | None:
    x = args.tensor(0)
    return None if x is None else OpCost(float(2 * x.count), x.size, x.size + x.count, x.dtype)


def _cat(args: OpArgs, element: str | None) -> OpCost | None:
    lists, tensors = args.lists(), args.tensors()
    if not lists or not lists[0].shapes:
        return None
    dtype = element or (tensors[-1].dtype if tensors else None)
    moved = lists[0].count * SIZE.get(dtype or "", 4)
    return OpCost(0.0, moved, moved, dtype, dtype in SIZE, "" if dtype in SIZE else "4 bytes per element assumed")


def _embedding(args: OpArgs, _element: str | None) -> OpCost | None:
    weight, index = args.tensor(0), args.tensor(1)
    if weight is None or index is None or len(weight.shape) != 2:
        return None
    rows = index.count * weight.shape[1] * weight.element_bytes
    return OpCost(0.0, rows + index.size, rows, weight.dtype)


def _embedding_backward(args: OpArgs, _element: str | None) -> OpCost | None:
    grad, index, rows = args.tensor(0), args.tensor(1), args.numbers(2)
    if grad is None or index is None or not grad.shape:
        return None
    table = rows[0] * grad.shape[-1] * grad.element_bytes if rows else grad.size
    return OpCost(float(grad.count), grad.size + index.size, table, grad.dtype, rows is not None)


def _index_select(args: OpArgs, _element: str | None) -> OpCost | None:
    source, index, dim = args.tensor(0), args.tensor(2), args.numbers(1)
    if source is None or index is None or not source.shape:
        return None
    at = dim[0] if dim else 0
    if not -len(source.shape) <= at < len(source.shape):
        return None
    moved = source.count // max(1, source.shape[at]) * index.count * source.element_bytes
    return OpCost(0.0, moved + index.size, moved, source.dtype, dim is not None)


def _gather(args: OpArgs, _element: str | None) -> OpCost | None:
    source, index = args.tensor(0), args.tensor(2)
    if source is None or index is None:
        return None
    moved = index.count * source.element_bytes
    return OpCost(0.0, moved + index.size, moved, source.dtype)


def _scatter(args: OpArgs, _element: str | None) -> OpCost | None:
    target, index = args.tensor(0), args.tensor(2)
    if target is None or index is None:
        return None
    moved = index.count * target.element_bytes
    return OpCost(float(index.count), 2 * moved + index.size, moved, target.dtype)


def _foreach(operation: str, args: OpArgs, element: str | None) -> OpCost | None:
    """Each list is read once and one is written; lists longer than 30 tensors were not recorded."""
    lists = args.lists()
    if not lists or any(not one.shapes for one in lists):
        return None
    width = SIZE.get(element or "", 4)
    first = lists[0].count
    read = {"copy": lists[-1].count, "zero": 0}.get(operation, sum(one.count for one in lists))
    written = 0 if operation in ("norm", "max") else first
    note = "" if element in SIZE else "4 bytes per element assumed"
    return OpCost(float(first), read * width, written * width, element or "fp32", element in SIZE, note)


# Lists read and written by one step of a fused optimizer, and operations per element.
_FUSED = {"_fused_adam": (4, 3, 12), "_fused_adamw": (4, 3, 14), "_fused_sgd": (3, 2, 4), "_fused_adagrad": (3, 2, 6)}


def _fused_optimizer(plain: str, args: OpArgs, element: str | None) -> OpCost | None:
    lists, figures = args.lists(), _FUSED.get(plain)
    if figures is None or not lists or not lists[0].shapes:
        return None
    count, width = lists[0].count, SIZE.get(element or "", 4)
    read, written, flops = figures
    note = "" if element in SIZE else "4 bytes per element assumed"
    return OpCost(float(flops * count), read * count * width, written * count * width, element or "fp32", False, note)


def _triton(args: OpArgs) -> OpCost | None:
    """A generated kernel's tensors each cross the bus once; by convention the last one is the output."""
    tensors = args.tensors()
    if not tensors:
        return None
    read = sum(t.size for t in tensors[:-1])
    return OpCost(0.0, read, tensors[-1].size, tensors[-1].dtype, False, "every tensor once, operations not counted")


_READERS: dict[str, Callable[[OpArgs, str | None], OpCost | None]] = {
    "_softmax": _same_again(5, 1), "_log_softmax": _same_again(5, 1), "softmax": _same_again(5, 1),
    "log_softmax": _same_again(5, 1), "_safe_softmax": _same_again(5, 1), "cumsum": _same_again(1, 1),
    "_softmax_backward_data": _same_again(4, 2), "_log_softmax_backward_data": _same_again(4, 2),
    "native_layer_norm": _same_again(8, 1), "layer_norm": _same_again(8, 1), "rms_norm": _same_again(6, 1),
    "_fused_rms_norm": _same_again(6, 1), "native_group_norm": _same_again(8, 1),
    "native_batch_norm": _same_again(8, 1),
    "cudnn_batch_norm": _same_again(8, 1), "miopen_batch_norm": _same_again(8, 1),
    "batch_norm": _same_again(8, 1),
    "native_layer_norm_backward": _same_again(12, 2), "native_group_norm_backward": _same_again(12, 2),
    "native_batch_norm_backward": _same_again(12, 2), "cudnn_batch_norm_backward": _same_again(12, 2),
    "copy": _copy, "_to_copy": _to_copy, "clone": _clone, "contiguous": _clone, "flip": _clone, "roll": _clone,
    "fill": _write_only, "zero": _write_only, "normal": _write_only, "uniform": _write_only, "random": _write_only,
    "bernoulli": _write_only, "exponential": _write_only, "native_dropout": _dropout, "cat": _cat, "stack": _cat,
    "embedding": _embedding, "embedding_dense_backward": _embedding_backward, "index_select": _index_select,
    "gather": _gather, "scatter_add": _scatter, "scatter": _scatter,
}  # fmt: skip
