"""# unfused-attention: attention is computed in pieces

## What it does
Finds a softmax between two batched matrix products, with scale, mask, cast and dropout between them, and the backward
pass of the same ops.

## Why it costs
Each piece writes and reads the whole matrix of scores (tokens x tokens for every head), and the host launches every
piece. `scaled_dot_product_attention` keeps the scores on the chip and is one launch each way.

## How the gain is computed
The pieces go, on host and GPU, forward and backward. In their place: one kernel each way, whose time follows from the
floating-point operations (half of them under a causal mask) at a share of the matrix-unit peak, and a few ops' worth of
host time. Where shapes are missing, and in fp32, the time of the two products stays. Cautious: twice that kernel time;
hopeful: 0.6 times it and the host time.

## When it may be wrong
Scores that the program reads elsewhere (attention maps), biases that are learned, and masks that are neither causal nor
a plain addition need `flex_attention` or must stay. Dropout draws other random numbers.
"""

from __future__ import annotations

from gapless.rules._attention import Chain
from gapless.rules._swap import Swap, swapped
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Edit, Found, Outcome
from gapless.tables.intervals import Int, as_ns

CODE = KIND = "unfused-attention"

FORWARD_SHARE, CAUSAL_SHARE, BACKWARD_SHARE, MASKED_SHARE = 0.40, 0.30, 0.22, 0.16
"""Shares of the dense matrix-unit peak that fused attention reached on an H200 with heads of 64 (16-bit, 512 to 4096
tokens): 0.34-0.45 forward, 0.26 of the half that is left under a causal mask, 0.19-0.21 backward, 0.12-0.16 with an
explicit mask and dropout."""
WIDE_HEAD, WIDE_FORWARD, WIDE_BACKWARD = 192, 1.35, 1.6
"""Heads of 96 and more (q and v together) reach so many times those shares (heads of 128: 0.42 and 0.35)."""
OPS_FORWARD, OPS_BACKWARD, HOPEFUL = 3.0, 3.5, 0.6
"""Host time of the fused op in small ops (attention of 64 tokens on an H200 host: 30 us against 8 us an op)."""

FIX = """\
import torch.nn.functional as F

# q, k, v: [batch, heads, tokens, head_dim]
# scores = (q @ k.transpose(-2, -1)) * scale; scores = scores.masked_fill(mask, -inf)
# out = dropout(scores.softmax(-1)) @ v                          <- replace all of it by
out = F.scaled_dot_product_attention(
    q, k, v,
    attn_mask=None,          # or a boolean mask that is True where attention is allowed, or a tensor to add
    dropout_p=0.0,           # self.dropout.p if self.training else 0.0
    is_causal={causal},
    scale=None,              # None is 1/sqrt(head_dim)
)
# Models of the transformers library: from_pretrained(..., attn_implementation="sdpa")
# If this call is there already and still runs in pieces, ask why (dtype? last stride 1? shape of the mask?):
from torch.nn.attention import SDPBackend, sdpa_kernel
with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION]):
    out = F.scaled_dot_product_attention(q, k, v, is_causal={causal})   # warns why each one refuses
"""


def check(c: Context) -> Outcome:
    """Is attention written out?"""
    found = c.attentions
    if not found:
        return Clean()
    jobs = [job for chain in found for job in (*chain.jobs, *chain.backward)]
    gpu = sum(job.ns for job in jobs)
    fused = sum(sum(_fused_ns(c, chain)) for chain in found)
    shaped = [chain for chain in found if chain.pairs is not None]
    evidence = [
        f"{len(found)} attention{'s' if len(found) > 1 else ''} in {len(jobs)} kernels a step, {gpu / 1e6:.3f} ms "
        f"on the GPU; fused about {fused / 1e6:.3f} ms",
    ]
    if shaped and shaped[0].pairs:
        evidence.append(f"each writes a matrix of {shaped[0].pairs:,} scores several times")
    if any(chain.backward for chain in found):
        evidence.append(f"{sum(len(chain.backward) for chain in found)} of the kernels are its backward pass")
    if found[0].in_library:
        evidence.append(
            "it is PyTorch's own attention on its fallback path ('math'): the arguments rule fused kernels out"
        )
    enough = "one each way" if found[0].backward else "one"
    return Found(
        f"Attention runs in {len(jobs) // len(found)} kernels where {enough} would do",
        c.base_sites(_softmax_rows(found), as_ns([_now_ns(chain) for chain in found])),
        _edit(c, found, 1.0),
        evidence,
        "Attention maps that are read elsewhere, learned biases and unusual masks cannot use it (see flex_attention).",
        FIX.replace("{causal}", "True" if found[0].causal else "False"),
        cautious=_edit(c, found, 2.0),
        hopeful=_edit(c, found, HOPEFUL),
        assumptions=[
            f"a fused kernel reaches {FORWARD_SHARE:.0%} of the matrix-unit peak forward, {BACKWARD_SHARE:.0%} "
            f"backward and {MASKED_SHARE:.0%} with an explicit mask or dropout"
            if shaped and c.peaks
            else "the fused kernel takes as long as the two products do now",
            f"the fused op costs the host {OPS_FORWARD:g} small ops forward, {OPS_BACKWARD:g} backward",
        ],
    )


def _softmax_rows(found: list[Chain]) -> Int:
    return as_ns([next(job.op_row for job in chain.jobs if job.family == "softmax") for chain in found])


def _now_ns(chain: Chain) -> int:
    return round(sum(job.ns for job in (*chain.jobs, *chain.backward)))


def _fused_ns(c: Context, chain: Chain) -> tuple[float, float]:
    """GPU time of the fused forward and backward kernels (0 where there is no backward pass)."""
    now = sum(job.ns for job in chain.jobs), sum(job.ns for job in chain.backward)
    peak = _peak(c, chain.dtype)
    if chain.pairs is None or chain.width is None or peak is None:
        one, two = (sum(j.ns for j in jobs if j.family == "gemm") for jobs in (chain.jobs, chain.backward))
        return one, two
    causal = chain.causal and not chain.masked
    flops = 2.0 * chain.pairs * chain.width * (0.5 if causal else 1.0)
    wide = (WIDE_FORWARD, WIDE_BACKWARD) if chain.width >= WIDE_HEAD else (1.0, 1.0)
    share = CAUSAL_SHARE if causal else MASKED_SHARE if chain.masked else FORWARD_SHARE
    forward = flops / (share * wide[0] * peak)
    backward = 2.5 * flops / (BACKWARD_SHARE * wide[1] * peak) if chain.backward else 0.0
    return min(max(forward, 4_000.0), now[0]), min(max(backward, 8_000.0), now[1])


def _peak(c: Context, dtype: str | None) -> float | None:
    """Operations per nanosecond at peak in this dtype; None for fp32, whose fused kernel is as slow as its products."""
    if c.peaks is None or dtype == "fp32":
        return None
    tflops = c.peaks.matrix_tflops(dtype or "bf16")
    return None if tflops is None else tflops * 1e3


def _edit(c: Context, found: list[Chain], factor: float) -> Edit:
    op_ns = c.typical_op_ns * (HOPEFUL if factor < 1 else 1.0)
    swaps = []
    for chain in found:
        forward, backward = _fused_ns(c, chain)
        stream = chain.jobs[0].stream
        now = sum(job.ns for job in chain.jobs), sum(job.ns for job in chain.backward)
        swaps.append(
            Swap(
                chain.start, chain.end, int(chain.start[0]), OPS_FORWARD * op_ns, min(factor * forward, now[0]), stream
            )
        )
        if chain.back_start.size:
            at = int(chain.back_start.min())
            swaps.append(
                Swap(chain.back_start, chain.back_end, at, OPS_BACKWARD * op_ns, min(factor * backward, now[1]), stream)
            )
    return swapped(swaps)
