"""How much arithmetic do matrix products, convolutions and attention need, and what must they read and write?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from gapless.analyses.op_args import OpArgs, TensorArg, broadcast


@dataclass(frozen=True, slots=True)
class OpCost:
    """Work of one call of an op; `dtype` is that of the mathematics, `note` says what was assumed."""

    flops: float
    bytes_read: int
    bytes_written: int
    dtype: str | None
    exact: bool = True
    note: str = ""

    @property
    def bytes(self) -> int:
        """Bytes read and written together."""
        return self.bytes_read + self.bytes_written


def _product(a: TensorArg, b: TensorArg, rows: int, inner: int, columns: int, batch: int, extra: int = 0) -> OpCost:
    out = batch * rows * columns * a.element_bytes
    return OpCost(2.0 * batch * rows * inner * columns, a.size + b.size + extra, out, a.dtype)


def _mm(args: OpArgs, first: int = 0) -> OpCost | None:
    a, b = args.tensor(first), args.tensor(first + 1)
    if a is None or b is None or len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[0]:
        return None
    bias = args.tensor(0) if first else None
    return _product(a, b, a.shape[0], a.shape[1], b.shape[1], 1, bias.size if bias else 0)


def _scaled_mm(args: OpArgs) -> OpCost | None:
    cost, a, b = _mm(args), args.tensor(0), args.tensor(1)
    if cost is None or a is None or b is None:
        return None
    return OpCost(cost.flops, cost.bytes_read, a.shape[0] * b.shape[1] * 2, a.dtype, False, "16-bit output assumed")


def _bmm(args: OpArgs, first: int = 0) -> OpCost | None:
    a, b = args.tensor(first), args.tensor(first + 1)
    if a is None or b is None or len(a.shape) != 3 or len(b.shape) != 3 or a.shape[2] != b.shape[1]:
        return None
    added = args.tensor(0) if first else None
    return _product(a, b, a.shape[1], a.shape[2], b.shape[2], a.shape[0], added.size if added else 0)


def _mv(args: OpArgs, first: int = 0) -> OpCost | None:
    a, x = args.tensor(first), args.tensor(first + 1)
    if a is None or x is None or len(a.shape) != 2 or x.shape != a.shape[1:]:
        return None
    return _product(a, x, a.shape[0], a.shape[1], 1, 1)


def _dot(args: OpArgs) -> OpCost | None:
    a, b = args.tensor(0), args.tensor(1)
    return None if a is None or b is None or a.shape != b.shape else _product(a, b, 1, a.count, 1, 1)


def _linear(args: OpArgs) -> OpCost | None:
    x, weight, bias = args.tensor(0), args.tensor(1), args.tensor(2)
    if x is None or weight is None or len(weight.shape) != 2 or not x.shape or x.shape[-1] != weight.shape[1]:
        return None
    return _product(x, weight, math.prod(x.shape[:-1]), x.shape[-1], weight.shape[0], 1, bias.size if bias else 0)


def _matmul(args: OpArgs) -> OpCost | None:
    """General matrix product: the last two dimensions multiply, the rest broadcast."""
    a, b = args.tensor(0), args.tensor(1)
    if a is None or b is None or not a.shape or not b.shape:
        return None
    left = a.shape if len(a.shape) > 1 else (1, *a.shape)
    right = b.shape if len(b.shape) > 1 else (*b.shape, 1)
    batch = broadcast([left[:-2], right[:-2]])
    if batch is None or left[-1] != right[-2]:
        return None
    return _product(a, b, left[-2], left[-1], right[-1], math.prod(batch))


# Positions of (bias, stride, padding, dilation) among the arguments of forward convolutions.
_CONVOLUTIONS: dict[str, tuple[int | None, int, int, int]] = {
    "convolution": (2, 3, 4, 5), "_convolution": (2, 3, 4, 5), "convolution_overrideable": (2, 3, 4, 5),
    "conv1d": (2, 3, 4, 5), "conv2d": (2, 3, 4, 5), "conv3d": (2, 3, 4, 5), "cudnn_convolution": (None, 3, 2, 4),
    "cudnn_convolution_relu": (2, 3, 4, 5), "cudnn_convolution_add_relu": (4, 5, 6, 7),
    "miopen_convolution": (2, 4, 3, 5), "miopen_depthwise_convolution": (2, 4, 3, 5),
    "mkldnn_convolution": (2, 4, 3, 5),
    "miopen_convolution_relu": (2, 3, 4, 5), "_conv_depthwise2d": (3, 4, 5, 6), "conv_depthwise3d": (3, 4, 5, 6),
}  # fmt: skip
_TRANSPOSED_FLAG = {"convolution": 6, "_convolution": 6, "convolution_overrideable": 6}


def _convolution(name: str) -> Callable[[OpArgs], OpCost | None]:
    bias_at, stride_at, padding_at, dilation_at = _CONVOLUTIONS[name]

    def cost(args: OpArgs) -> OpCost | None:
        x, weight = args.tensor(0), args.tensor(1)
        if x is None or weight is None or len(x.shape) != len(weight.shape) or len(x.shape) < 3:
            return None
        if args.flag(_TRANSPOSED_FLAG.get(name, -1)):
            return _transposed(args)
        window = weight.shape[2:]
        stride, padding, dilation = (
            _spread(args.numbers(i), len(window)) for i in (stride_at, padding_at, dilation_at)
        )
        if stride is None or padding is None or dilation is None or 0 in stride:
            return None
        sizes = [
            max(0, (n + 2 * p - d * (k - 1) - 1) // s + 1)
            for n, k, s, p, d in zip(x.shape[2:], window, stride, padding, dilation, strict=True)
        ]
        out = x.shape[0] * weight.shape[0] * math.prod(sizes)
        bias = args.tensor(bias_at) if bias_at is not None else None
        read = x.size + weight.size + (bias.size if bias else 0)
        return OpCost(2.0 * out * math.prod(weight.shape[1:]), read, out * x.element_bytes, x.dtype)

    return cost


def _spread(numbers: tuple[int, ...] | None, count: int) -> tuple[int, ...] | None:
    """One number stands for all dimensions."""
    if numbers is None or len(numbers) not in (1, count):
        return None
    return numbers if len(numbers) == count else numbers * count


def _transposed(args: OpArgs) -> OpCost | None:
    """Transposed convolution: each input element meets the whole window."""
    x, weight = args.tensor(0), args.tensor(1)
    if x is None or weight is None or len(x.shape) != len(weight.shape):
        return None
    flops = 2.0 * x.count * math.prod(weight.shape[1:])
    written = x.shape[0] * weight.shape[1] * math.prod(x.shape[2:]) * x.element_bytes
    return OpCost(flops, x.size + weight.size, written, x.dtype, False, "output taken to be as large as the input")


def _convolution_backward(args: OpArgs) -> OpCost | None:
    """Gradients of input and weight, each as dear as the forward pass; the mask says which were asked for."""
    grad, x, weight = args.tensor(0), args.tensor(1), args.tensor(2)
    if grad is None or x is None or weight is None:
        return None
    mask = args.concrete[10] if len(args.concrete) > 10 else ""
    wanted = [word.strip() == "True" for word in mask.strip("[]").split(",")] if mask else [True, True, False]
    of_input, of_weight = wanted[0], len(wanted) > 1 and wanted[1]
    small = x if args.flag(7) else grad
    once = 2.0 * small.count * math.prod(weight.shape[1:])
    read = grad.size + (weight.size if of_input else 0) + (x.size if of_weight else 0)
    written = (x.size if of_input else 0) + (weight.size if of_weight else 0)
    return OpCost(once * (of_input + of_weight), read, written, grad.dtype, bool(mask), "" if mask else "both assumed")


def _convolution_backward_input(args: OpArgs) -> OpCost | None:
    grad, weight = args.tensor(1), args.tensor(2)
    if grad is None or weight is None:
        return None
    flops = 2.0 * grad.count * math.prod(weight.shape[1:])
    return OpCost(flops, grad.size + weight.size, grad.size, grad.dtype, False, "input as large as the output")


# Position of q among the arguments, of the causal flag, sequence dimension of q, and whether it is the backward pass.
_ATTENTION: dict[str, tuple[int, int, int, bool]] = {
    "scaled_dot_product_attention": (0, 5, 2, False),
    "_scaled_dot_product_flash_attention": (0, 4, 2, False), "_flash_attention_forward": (0, 8, 1, False),
    "_scaled_dot_product_efficient_attention": (0, 6, 2, False), "_efficient_attention_forward": (0, 9, 1, False),
    "_scaled_dot_product_cudnn_attention": (0, 6, 2, False), "_cudnn_attention_forward": (0, 10, 2, False),
    "_scaled_dot_product_flash_attention_backward": (1, 11, 2, True), "_flash_attention_backward": (1, 11, 1, True),
    "_scaled_dot_product_efficient_attention_backward": (1, 11, 2, True),
    "_efficient_attention_backward": (1, 14, 1, True),
    "_scaled_dot_product_cudnn_attention_backward": (1, 14, 2, True), "_cudnn_attention_backward": (1, 14, 2, True),
}  # fmt: skip


def _attention(name: str) -> Callable[[OpArgs], OpCost | None]:
    at, causal_at, sequence, backward = _ATTENTION[name]

    def cost(args: OpArgs) -> OpCost | None:
        q, k, v = (args.tensor(at + i) for i in range(3))
        if q is None or k is None or v is None or any(len(t.shape) != 4 for t in (q, k, v)):
            return None
        heads = 3 - sequence
        pairs = q.shape[0] * q.shape[heads] * q.shape[sequence] * k.shape[sequence]
        flops = 2.0 * pairs * (q.shape[3] + v.shape[3])
        causal = args.flag(causal_at)
        if causal is None and (mask_type := args.numbers(causal_at)):
            # Memory-efficient attention writes the kind of mask: 0 none, 1 and 2 causal.
            causal = mask_type[0] > 0
        if causal:
            flops /= 2
        note = "" if causal is not None else "causal mask unknown: none assumed"
        out = q.count // max(1, q.shape[3]) * v.shape[3] * q.element_bytes
        inputs = q.size + k.size + v.size
        if backward:
            # Five products instead of two: scores again, then gradients of v, p, q and k.
            return OpCost(2.5 * flops, inputs + 2 * out, inputs, q.dtype, causal is not None, note)
        return OpCost(flops, inputs, out, q.dtype, causal is not None, note)

    return cost


MATH: dict[str, Callable[[OpArgs], OpCost | None]] = {
    "mm": _mm, "_int_mm": _mm, "addmm": lambda a: _mm(a, 1), "_addmm_activation": lambda a: _mm(a, 1),
    "_scaled_mm": _scaled_mm, "bmm": _bmm, "baddbmm": lambda a: _bmm(a, 1), "mv": _mv, "addmv": lambda a: _mv(a, 1),
    "dot": _dot, "vdot": _dot, "linear": _linear, "matmul": _matmul, "cudnn_convolution_transpose": _transposed,
    "miopen_convolution_transpose": _transposed, "conv_transpose1d": _transposed, "conv_transpose2d": _transposed,
    "conv_transpose3d": _transposed, "convolution_backward": _convolution_backward,
    "cudnn_convolution_backward_input": _convolution_backward_input,
    **{name: _convolution(name) for name in _CONVOLUTIONS}, **{name: _attention(name) for name in _ATTENTION},
}  # fmt: skip
"""The reader of each op, by its name without namespace and overload."""
