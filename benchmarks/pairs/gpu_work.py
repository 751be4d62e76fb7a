"""Which speed-ups do fixes of the GPU's own work really bring? Records before/after pairs with their measured times.

Usage: python gpu_work.py OUT [CASE ...]. Needs a CUDA GPU and torch. Writes OUT/CASE.{before,after}.json.gz, three
profiled steps each, and OUT/labels.json: milliseconds per step without the profiler, measured three times a side.
"""

from __future__ import annotations

import contextlib
import gc
import gzip
import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

D, BF = "cuda", torch.bfloat16
Step = Callable[[], object]
CASES: dict[str, tuple[Callable[[bool], Step], str, list[str], bool]] = {}


def case(
    name: str, fault: str, *kinds: str, gains: bool = True
) -> Callable[[Callable[[bool], Step]], Callable[[bool], Step]]:
    def keep(build: Callable[[bool], Step]) -> Callable[[bool], Step]:
        CASES[name] = build, fault, list(kinds), gains
        return build

    return keep


def rand(*shape: int, dtype: torch.dtype = BF, scale: float = 1.0) -> torch.Tensor:
    return torch.randn(*shape, device=D, dtype=dtype) * scale


# ---- chains of element-wise kernels -----------------------------------------------------------------------------
@case("gelu_by_hand", "tanh-GELU written out between large GEMMs vs compiled", "unfused-pointwise")
def _(fixed: bool) -> Step:
    ws = [rand(4096, 4096, scale=0.02) for _ in range(4)]
    x = rand(16384, 4096)

    def act(h: torch.Tensor) -> torch.Tensor:
        return 0.5 * h * (1 + torch.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h * h * h)))

    fn = torch.compile(act) if fixed else act

    def step() -> torch.Tensor:
        h = x
        for w in ws:
            h = fn(h @ w)
        return h

    return step


@case("rmsnorm_by_hand", "RMSNorm in fp32 written out, residual and gate, vs compiled", "unfused-pointwise")
def _(fixed: bool) -> Step:
    w = rand(2048)
    x = rand(8192, 2048)

    def norm(h: torch.Tensor) -> torch.Tensor:
        f = h.float()
        f = f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + 1e-6)
        return h + torch.sigmoid(h) * (f.to(h.dtype) * w)

    fn = torch.compile(norm) if fixed else norm

    def step() -> torch.Tensor:
        h = x
        for _ in range(8):
            h = fn(h)
        return h

    return step


@case("tiny_chain", "60 element-wise ops on 64 KB vs one compiled function", "unfused-pointwise", "launch-bound")
def _(fixed: bool) -> Step:
    x, y = rand(128, 128, dtype=torch.float32), rand(128, 128, dtype=torch.float32)

    def f(a: torch.Tensor) -> torch.Tensor:
        for _ in range(15):
            a = torch.sin(a) * y + a.abs()
        return a

    g = torch.compile(f) if fixed else f
    return lambda: g(x)


@case("train_chain", "a loss written with element-wise ops, forward and backward, vs compiled", "unfused-pointwise")
def _(fixed: bool) -> Step:
    w = nn.Parameter(rand(4096, 4096, dtype=torch.float32, scale=0.02))
    t = rand(4096, 4096, dtype=torch.float32)

    def loss(p: torch.Tensor) -> torch.Tensor:
        e = torch.sigmoid(p * 2 + 1) - t
        h = torch.where(e.abs() < 1, 0.5 * e * e, e.abs() - 0.5)
        return (h * torch.exp(-p.pow(2))).mean()

    f = torch.compile(loss) if fixed else loss

    def step() -> None:
        f(w).backward()
        w.grad = None

    return step


@case("geglu_gpu", "GEGLU chain of six kernels on 256 MB vs compiled", "unfused-pointwise")
def _(fixed: bool) -> Step:
    x, b = rand(16384, 8192), rand(8192)

    def f(a: torch.Tensor) -> torch.Tensor:
        h, g = (a + b).chunk(2, dim=-1)
        return h * F.gelu(g) * 0.5 + h

    g = torch.compile(f) if fixed else f
    return lambda: g(x)


# ---- attention -----------------------------------------------------------------------------------------------------
def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None, p: float) -> torch.Tensor:
    s = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
    if mask is not None:
        s = s + mask
    a = F.softmax(s, dim=-1)
    return torch.matmul(F.dropout(a, p) if p else a, v)


@case("attention_long", "materialised attention over 4096 tokens, inference, vs SDPA", "unfused-attention")
def _(fixed: bool) -> Step:
    q, k, v = (rand(2, 16, 4096, 64) for _ in range(3))
    return lambda: F.scaled_dot_product_attention(q, k, v) if fixed else attend(q, k, v, None, 0.0)


@case("attention_train", "additive mask and dropout, fp16 training, vs SDPA", "unfused-attention")
def _(fixed: bool) -> Step:
    q, k, v = (rand(4, 16, 1024, 64, dtype=torch.float16).requires_grad_() for _ in range(3))
    mask = torch.zeros(1, 1, 1024, 1024, device=D, dtype=torch.float16).masked_fill(
        torch.ones(1024, 1024, device=D, dtype=torch.bool).triu(1), float("-inf")
    )

    def step() -> None:
        y = (
            F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=0.1)
            if fixed
            else attend(q, k, v, mask, 0.1)
        )
        y.float().sum().backward()
        q.grad = k.grad = v.grad = None

    return step


@case(
    "attention_fp32_softmax", "scores upcast to fp32 for the softmax, einsum, 12 layers, vs SDPA", "unfused-attention"
)
def _(fixed: bool) -> Step:
    q, k, v = (rand(8, 12, 512, 64) for _ in range(3))

    def layer(q: torch.Tensor) -> torch.Tensor:
        if fixed:
            return F.scaled_dot_product_attention(q, k, v)
        s = torch.einsum("bhqd,bhkd->bhqk", q, k) * 0.125
        a = s.float().softmax(-1).to(q.dtype)
        return torch.einsum("bhqk,bhkd->bhqd", a, v)

    def step() -> torch.Tensor:
        h = q
        for _ in range(12):
            h = layer(h)
        return h

    return step


@case(
    "attention_small", "materialised attention of 64 tokens: the host is the limit", "unfused-attention", "launch-bound"
)
def _(fixed: bool) -> Step:
    q, k, v = (rand(2, 8, 64, 64) for _ in range(3))

    def step() -> torch.Tensor:
        h = q
        for _ in range(12):
            h = F.scaled_dot_product_attention(h, k, v) if fixed else attend(h, k, v, None, 0.0)
        return h

    return step


# ---- products without tensor cores -----------------------------------------------------------------------------
@case("fp32_mlp", "fp32 linear layers, TF32 off vs on", "fp32-matmul")
def _(fixed: bool) -> Step:
    net = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(2048, 2048), nn.ReLU())]).to(D)
    x = rand(8192, 2048, dtype=torch.float32)

    def step() -> None:
        torch.backends.cuda.matmul.allow_tf32 = fixed
        with torch.no_grad():
            net(x)

    return step


@case("fp32_train", "fp32 training step, TF32 off vs on", "fp32-matmul")
def _(fixed: bool) -> Step:
    net = nn.Sequential(nn.Linear(4096, 4096), nn.GELU(), nn.Linear(4096, 4096)).to(D)
    x = rand(4096, 4096, dtype=torch.float32)

    def step() -> None:
        torch.backends.cuda.matmul.allow_tf32 = fixed
        net(x).square().mean().backward()
        net.zero_grad()

    return step


@case("fp32_bmm", "fp32 batched products of 512, TF32 off vs on", "fp32-matmul")
def _(fixed: bool) -> Step:
    a, b = (rand(64, 512, 512, dtype=torch.float32) for _ in range(2))

    def step() -> torch.Tensor:
        torch.backends.cuda.matmul.allow_tf32 = fixed
        h = a
        for _ in range(6):
            h = torch.bmm(h, b)
        return h

    return step


@case("fp32_tiny", "fp32 products of 128 that wait for the host: TF32 cannot help", "launch-bound", gains=False)
def _(fixed: bool) -> Step:
    a = rand(128, 128, dtype=torch.float32, scale=0.05)

    def step() -> torch.Tensor:
        torch.backends.cuda.matmul.allow_tf32 = fixed
        h = a
        for _ in range(20):
            h = h @ a
        return h

    return step


@case("fp32_conv_nchw", "fp32 NCHW convolutions with strides, TF32 off vs on", "fp32-matmul")
def _(fixed: bool) -> Step:
    net = nn.Sequential(
        nn.Conv2d(64, 128, 3, 1, 1), nn.ReLU(), nn.Conv2d(128, 256, 3, 2, 1), nn.ReLU(), nn.Conv2d(256, 256, 1)
    ).to(D)
    x = rand(32, 64, 56, 56, dtype=torch.float32)

    def step() -> None:
        torch.backends.cudnn.allow_tf32 = fixed
        net(x).square().mean().backward()
        net.zero_grad()

    return step


# ---- layouts and dtypes --------------------------------------------------------------------------------------------
def conv_net() -> nn.Sequential:
    layers: list[nn.Module] = [nn.Conv2d(64, 128, 3, 1, 1)]
    for _ in range(5):
        layers += [nn.BatchNorm2d(128), nn.ReLU(), nn.Conv2d(128, 128, 3, 1, 1)]
    return nn.Sequential(*layers)


@case("nchw_bf16", "bf16 convolutions in NCHW vs channels_last, inference", "layout-conversion")
def _(fixed: bool) -> Step:
    form = torch.channels_last if fixed else torch.contiguous_format
    net = conv_net().to(D, BF).eval().to(memory_format=form)
    x = rand(64, 64, 56, 56).to(memory_format=form)

    def step() -> None:
        with torch.no_grad():
            net(x)

    return step


@case("nchw_train", "bf16 convolutions in NCHW vs channels_last, training", "layout-conversion")
def _(fixed: bool) -> Step:
    form = torch.channels_last if fixed else torch.contiguous_format
    net = conv_net().to(D, BF).to(memory_format=form)
    x = rand(32, 64, 56, 56).to(memory_format=form)

    def step() -> None:
        net(x).float().mean().backward()
        net.zero_grad()

    return step


@case("transposed_weight", "weight.t().contiguous() before every product vs the view", "layout-conversion")
def _(fixed: bool) -> Step:
    ws = [rand(8192, 8192, scale=0.01) for _ in range(4)]
    x = rand(256, 8192)

    def step() -> torch.Tensor:
        h = x
        for w in ws:
            h = h @ (w.t() if fixed else w.t().contiguous())
        return h

    return step


@case("needed_transpose", "a transpose whose copy the next op needs: removing it only moves it")
def _(fixed: bool) -> Step:
    x = rand(64, 512, 1024)

    def step() -> torch.Tensor:
        h = x.transpose(1, 2)
        return h.reshape(64 * 1024, 512) if fixed else h.contiguous().view(64 * 1024, 512)

    return step


@case("autocast_weights", "fp32 weights cast by autocast in every step vs bf16 weights", "dtype-conversion")
def _(fixed: bool) -> Step:
    net = nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(8)]).to(D)
    x = rand(128, 4096, dtype=torch.float32)
    if fixed:
        net.to(BF)

    def step() -> None:
        with torch.no_grad(), torch.autocast("cuda", BF, enabled=not fixed):
            net(x.to(BF) if fixed else x)

    return step


@case("round_trip", "activations to fp32 and back round every ReLU vs none", "dtype-conversion", "unfused-pointwise")
def _(fixed: bool) -> Step:
    ws = [rand(2048, 2048, scale=0.02) for _ in range(6)]
    x = rand(16384, 2048)

    def step() -> torch.Tensor:
        h = x
        for w in ws:
            h = h @ w
            h = torch.relu(h) if fixed else torch.relu(h.float()).to(BF)
        return h

    return step


# ---- streams, optimizers -------------------------------------------------------------------------------------------
@case("two_chains_bf16", "two independent chains of small bf16 products, one stream vs two", "serial-streams")
def _(fixed: bool) -> Step:
    streams = [torch.cuda.Stream() for _ in range(2)]
    a, w = [rand(512, 4096) for _ in range(2)], rand(4096, 4096, scale=0.01)

    def step() -> None:
        main = torch.cuda.current_stream()
        for k in range(2):
            if fixed:
                streams[k].wait_stream(main)
            with torch.cuda.stream(streams[k]) if fixed else contextlib.nullcontext():
                y = a[k]
                for _ in range(10):
                    y = y @ w
        if fixed:
            for s in streams:
                main.wait_stream(s)

    return step


@case("dependent_chain", "one chain of small fp32 products: nothing to overlap", "launch-bound", gains=False)
def _(_fixed: bool) -> Step:
    a, w = rand(256, 2048, dtype=torch.float32), rand(2048, 2048, dtype=torch.float32, scale=0.02)
    torch.backends.cuda.matmul.allow_tf32 = True

    def step() -> None:
        torch.backends.cuda.matmul.allow_tf32 = True
        y = a
        for _ in range(24):
            y = y @ w

    return step


def parameters(count: int, *shape: int) -> list[nn.Parameter]:
    made = [nn.Parameter(rand(*shape, dtype=torch.float32)) for _ in range(count)]
    for p in made:
        p.grad = torch.randn_like(p)
    return made


@case("adam_foreach", "AdamW foreach (the default) over 300 small parameters vs fused", "unfused-optimizer")
def _(fixed: bool) -> Step:
    opt = torch.optim.AdamW(parameters(300, 128, 128), fused=True if fixed else None)
    return lambda: opt.step()


@case("adam_large", "AdamW foreach over 400 MB of parameters vs fused", "unfused-optimizer")
def _(fixed: bool) -> Step:
    opt = torch.optim.AdamW(parameters(24, 2048, 2048), fused=True if fixed else None)
    return lambda: opt.step()


@case("sgd_loop", "SGD with momentum, one parameter at a time, vs fused", "unfused-optimizer")
def _(fixed: bool) -> Step:
    how = {"fused": True} if fixed else {"foreach": False}
    opt = torch.optim.SGD(parameters(200, 64, 64), lr=0.1, momentum=0.9, **how)
    return lambda: opt.step()


@case("train_adam_loop", "AdamW foreach=False in a training step vs fused", "unfused-optimizer")
def _(fixed: bool) -> Step:
    net = nn.Sequential(*[m for _ in range(12) for m in (nn.Linear(512, 512), nn.LayerNorm(512), nn.GELU())]).to(D)
    opt = (
        torch.optim.AdamW(net.parameters(), fused=True) if fixed else torch.optim.AdamW(net.parameters(), foreach=False)
    )
    x = rand(256, 512, dtype=torch.float32)

    def step() -> None:
        net(x).square().mean().backward()
        opt.step()
        opt.zero_grad()

    return step


@case("layer_norm_healthy", "bf16 blocks of library ops with channels-last friendly sizes: nothing to fix")
def _(_fixed: bool) -> Step:
    layer = nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, norm_first=True).to(D, BF)
    x = rand(16, 1024, 1024)

    def step() -> None:
        layer(x).float().mean().backward()
        layer.zero_grad()

    return step


# ---- a second set, recorded after the rules' constants were chosen ----------------------------------------------------
@case("swiglu_blocks", "gate, residual and LayerNorm written out between GEMMs, vs compiled", "unfused-pointwise")
def _(fixed: bool) -> Step:
    w1, w2 = rand(2048, 8192, scale=0.02), rand(4096, 2048, scale=0.02)
    x = rand(8192, 2048)

    def gate(h: torch.Tensor) -> torch.Tensor:
        a, b = h.chunk(2, dim=-1)
        return a * torch.sigmoid(a) * b

    def norm(x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        y = (x + 0.5 * h).float()
        y = (y - y.mean(-1, keepdim=True)) / (y.var(-1, keepdim=True) + 1e-5).sqrt()
        return y.to(x.dtype)

    g, n = (torch.compile(gate), torch.compile(norm)) if fixed else (gate, norm)

    def step() -> torch.Tensor:
        h = x
        for _ in range(4):
            h = n(h, g(h @ w1) @ w2)
        return h

    return step


@case("image_prepare", "images to float, scale, normalise, clamp: one kernel each, vs compiled", "unfused-pointwise")
def _(fixed: bool) -> Step:
    raw = torch.randint(0, 256, (64, 3, 512, 512), device=D, dtype=torch.uint8)
    mean, std = rand(3, 1, 1, dtype=torch.float32), rand(3, 1, 1, dtype=torch.float32).abs() + 1

    def f(image: torch.Tensor) -> torch.Tensor:
        y = image.float() / 255
        y = (y - mean) / std
        return y.clamp(-3, 3).pow(2).mul(0.5).to(BF)

    g = torch.compile(f) if fixed else f
    return lambda: g(raw)


@case("mish_train", "Mish written out in a small network, training, vs compiled", "unfused-pointwise")
def _(fixed: bool) -> Step:
    ws = [nn.Parameter(rand(2048, 2048, scale=0.02)) for _ in range(4)]
    x = rand(8192, 2048)

    def act(h: torch.Tensor) -> torch.Tensor:
        return h * torch.tanh(torch.log1p(torch.exp(h.clamp(max=20)))) * 1.01 + 0.1

    a = torch.compile(act) if fixed else act

    def step() -> None:
        h = x
        for w in ws:
            h = a(h @ w)
        h.float().mean().backward()
        for w in ws:
            w.grad = None

    return step


@case(
    "attention_causal_2k",
    "causal mask by masked_fill, head size 128, 2048 tokens, training, vs SDPA",
    "unfused-attention",
)
def _(fixed: bool) -> Step:
    q, k, v = (rand(2, 16, 2048, 128).requires_grad_() for _ in range(3))
    mask = torch.ones(2048, 2048, device=D, dtype=torch.bool).triu(1)

    def step() -> None:
        if fixed:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            s = (q @ k.transpose(-1, -2)) * 128**-0.5
            y = s.masked_fill(mask, float("-inf")).softmax(-1) @ v
        y.sum().backward()
        q.grad = k.grad = v.grad = None

    return step


@case(
    "attention_padding",
    "padding mask by masked_fill, 12 heads of 64, inference, with its projections",
    "unfused-attention",
)
def _(fixed: bool) -> Step:
    ws = [rand(768, 768, scale=0.03) for _ in range(4)]
    x, pad = rand(32, 384, 768), torch.zeros(32, 1, 1, 384, device=D, dtype=torch.bool)
    pad[..., 300:] = True

    def step() -> torch.Tensor:
        h = x
        for _ in range(4):
            q, k, v = ((h @ w).view(32, 384, 12, 64).transpose(1, 2) for w in ws[:3])
            if fixed:
                y = F.scaled_dot_product_attention(q, k, v, attn_mask=~pad)
            else:
                y = ((q @ k.transpose(-1, -2)) / 8).masked_fill(pad, float("-inf")).softmax(-1) @ v
            h = y.transpose(1, 2).reshape(32, 384, 768) @ ws[3]
        return h

    return step


@case("fp32_conv1d", "fp32 1-d convolutions, TF32 off vs on", "fp32-matmul")
def _(fixed: bool) -> Step:
    net = nn.Sequential(*[m for _ in range(4) for m in (nn.Conv1d(256, 256, 5, padding=2), nn.ReLU())]).to(D)
    x = rand(64, 256, 2048, dtype=torch.float32)

    def step() -> None:
        torch.backends.cudnn.allow_tf32 = fixed
        with torch.no_grad():
            net(x)

    return step


@case("fp32_transformer", "fp32 encoder layer, training, TF32 off vs on", "fp32-matmul")
def _(fixed: bool) -> Step:
    layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True).to(D)
    x = rand(16, 512, 512, dtype=torch.float32)

    def step() -> None:
        torch.backends.cuda.matmul.allow_tf32 = fixed
        layer(x).mean().backward()
        layer.zero_grad()

    return step


@case(
    "nhwc_images",
    "images permuted to NCHW and made contiguous before bf16 convolutions, vs channels_last",
    "layout-conversion",
)
def _(fixed: bool) -> Step:
    form = torch.channels_last if fixed else torch.contiguous_format
    net = nn.Sequential(
        nn.Conv2d(64, 64, 3, 1, 1), nn.ReLU(), nn.Conv2d(64, 64, 3, 1, 1), nn.ReLU(), nn.Conv2d(64, 64, 1)
    )
    net.to(D, BF).to(memory_format=form)
    x = rand(32, 128, 128, 64)

    def step() -> None:
        h = x.permute(0, 3, 1, 2)
        with torch.no_grad():
            net(h if fixed else h.contiguous())

    return step


@case("heads_contiguous", "q, k, v made contiguous before a product that takes strides", "layout-conversion")
def _(fixed: bool) -> Step:
    qs = [rand(64, 1024, 16, 64) for _ in range(4)]
    w = rand(64)

    def step() -> None:
        for q in qs:
            h = q.transpose(1, 2)
            (h * 1.5 if fixed else h.contiguous() * 1.5) + w

    return step


@case("norm_contiguous", "a contiguous() before LayerNorm, which would copy anyway")
def _(fixed: bool) -> Step:
    ln = nn.LayerNorm(1024).to(D, BF)
    x = rand(64, 1024, 1024)

    def step() -> None:
        h = x.transpose(1, 2)
        with torch.no_grad():
            ln(h if fixed else h.contiguous())

    return step


@case(
    "half_weights_fp32", "fp16 weights cast to fp32 for F.linear, TF32 off, vs fp16", "dtype-conversion", "fp32-matmul"
)
def _(fixed: bool) -> Step:
    ws = [rand(2048, 2048, dtype=torch.float16, scale=0.02) for _ in range(6)]
    x = rand(256, 2048, dtype=torch.float16)

    def step() -> None:
        h = x if fixed else x.float()
        for w in ws:
            h = F.linear(h, w if fixed else w.float())

    return step


@case(
    "float_softplus",
    "bf16 activations through float() round softplus and scale",
    "dtype-conversion",
    "unfused-pointwise",
)
def _(fixed: bool) -> Step:
    ws = [rand(4096, 4096, scale=0.01) for _ in range(3)]
    x = rand(8192, 4096)

    def step() -> None:
        h = x
        for w in ws:
            h = h @ w
            h = F.softplus(h) * 0.7 if fixed else (F.softplus(h.float()) * 0.7).to(BF)

    return step


@case(
    "two_small_towers",
    "two independent chains of small fp32 products, one stream vs two",
    "serial-streams",
    "fp32-matmul",
)
def _(fixed: bool) -> Step:
    streams = [torch.cuda.Stream() for _ in range(2)]
    a, w = [rand(768, 768, dtype=torch.float32) for _ in range(2)], rand(768, 768, dtype=torch.float32, scale=0.03)

    def step() -> None:
        main = torch.cuda.current_stream()
        for k in range(2):
            if fixed:
                streams[k].wait_stream(main)
            with torch.cuda.stream(streams[k]) if fixed else contextlib.nullcontext():
                y = a[k]
                for _ in range(20):
                    y = torch.relu(y @ w)
        if fixed:
            for s in streams:
                main.wait_stream(s)

    return step


@case(
    "one_small_tower",
    "one chain of small fp32 products, each needing the one before: nothing to overlap",
    "fp32-matmul",
)
def _(fixed: bool) -> Step:
    a, w = rand(768, 768, dtype=torch.float32), rand(768, 768, dtype=torch.float32, scale=0.03)

    def step() -> None:
        torch.backends.cuda.matmul.allow_tf32 = fixed
        y = a
        for _ in range(40):
            y = torch.relu(y @ w)

    return step


@case("adagrad_loop", "Adagrad one parameter at a time vs fused is not there on CUDA: by lists", "unfused-optimizer")
def _(fixed: bool) -> Step:
    opt = torch.optim.Adagrad(parameters(120, 96, 96), lr=0.01, foreach=fixed)
    return lambda: opt.step()


@case("rmsprop_loop", "RMSprop one parameter at a time vs by lists", "unfused-optimizer")
def _(fixed: bool) -> Step:
    opt = torch.optim.RMSprop(parameters(120, 96, 96), lr=0.01, foreach=fixed)
    return lambda: opt.step()


@case("adam_train_big", "Adam by lists in a GPU-bound training step vs fused", "unfused-optimizer")
def _(fixed: bool) -> Step:
    net = nn.Sequential(*[m for _ in range(8) for m in (nn.Linear(4096, 4096), nn.GELU())]).to(D, BF)
    opt = torch.optim.Adam(net.parameters(), fused=True if fixed else None)
    x = rand(512, 4096)

    def step() -> None:
        net(x).float().mean().backward()
        opt.step()
        opt.zero_grad()

    return step


# ---- measuring and recording ---------------------------------------------------------------------------------------
def measure(step: Step, seconds: float = 0.25) -> list[float]:
    """Milliseconds per step, three times, after a warm-up."""
    for _ in range(6):
        step()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    step()
    torch.cuda.synchronize()
    count = max(5, min(400, int(seconds / max(time.perf_counter() - begin, 1e-5))))
    out = []
    for _ in range(3):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(count):
            step()
        torch.cuda.synchronize()
        out.append((time.perf_counter() - begin) / count * 1e3)
    return out


def record(step: Step, path: str) -> None:
    """Three profiled steps with shapes."""
    plan = schedule(wait=1, warmup=2, active=3)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], schedule=plan, record_shapes=True) as p:
        for _ in range(6):
            step()
            p.step()
    p.export_chrome_trace(path[:-3])
    plain = Path(path[:-3])
    with gzip.open(path, "wb", 6) as packed:
        packed.write(plain.read_bytes())
    plain.unlink()


def main() -> None:
    """Record the named cases, or all."""
    out, names = sys.argv[1], sys.argv[2:] or list(CASES)
    Path(out).mkdir(parents=True, exist_ok=True)
    cases: dict[str, object] = {}
    for name in names:
        build, fault, kinds, gains = CASES[name]
        times = {}
        for side in ("before", "after"):
            torch._dynamo.reset()
            gc.collect()
            torch.cuda.empty_cache()
            torch.backends.cuda.matmul.allow_tf32 = False
            step = build(side == "after")
            times[side] = measure(step)
            record(step, f"{out}/{name}.{side}.json.gz")
            torch.backends.cudnn.allow_tf32 = True
            del step
        before, after = times["before"], times["after"]
        middle = statistics.median(before), statistics.median(after)
        ratios = [b / a for b in before for a in after]
        print(f"{name:24s} {middle[0]:9.4f} -> {middle[1]:9.4f} ms  {middle[0] / middle[1]:6.2f}x", flush=True)
        cases[name] = {
            "fault": fault, "kinds": kinds, "gain_kinds": kinds[:1] * gains, "alarm_kinds": kinds[:1] * gains, "where": "",
            "before_ms": middle[0], "after_ms": middle[1], "speedup": middle[0] / middle[1],
            "speedup_range": [min(ratios), max(ratios)], "times": times,
        }  # fmt: skip
        labels = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(), "cases": cases}
        Path(out, "labels.json").write_text(json.dumps(labels, indent=1))


if __name__ == "__main__":
    main()
