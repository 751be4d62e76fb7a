"""Which Triton kernel do the pairs tune? It scales a vector; its tuning key is the length."""

# mypy: ignore-errors

import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": 2**k}, num_warps=w) for k in (8, 10, 12) for w in (4, 8)], key=["n"])
@triton.jit
def _scale(x, y, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


def scale(x: torch.Tensor, n: int) -> torch.Tensor:
    """Twice the first `n` numbers."""
    y = torch.empty_like(x)
    _scale[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)
    return y
