"""Which speed-ups do fixes of waits, copies, loading and compilation really bring? Pairs with measured times, and traps.

Usage: python host_work.py OUT [CASE ...]. Needs a CUDA GPU and torch. Writes as `gpu_work` does: OUT/CASE.{before,
after}.json.gz and OUT/labels.json. A case without a kind is healthy or a trap: its fix gains nothing worth naming.
"""

from __future__ import annotations

import gc
import json
import sys
import time

import gpu_work
import torch
from gpu_work import BF, Step, case, rand
from torch import nn

gpu_work.CASES.clear()
D = "cuda"


def net(width: int = 1024, depth: int = 6, dtype: torch.dtype = BF) -> nn.Sequential:
    return nn.Sequential(*[m for _ in range(depth) for m in (nn.Linear(width, width), nn.GELU())]).to(D, dtype)


# ---- hidden waits --------------------------------------------------------------------------------------------------
@case("grad_norm_items", "one .item() a parameter to log gradient norms vs one tensor of norms", "hidden-sync")
def _(fixed: bool) -> Step:
    m, x = net(512, 12), rand(128, 512)

    def step() -> object:
        m(x).float().square().mean().backward()
        norms = [p.grad.norm() for p in m.parameters()]
        out = torch.stack(norms) if fixed else [n.item() for n in norms]
        m.zero_grad()
        return out

    return step


@case("print_tensor", "print of a CUDA tensor in every step vs none", "hidden-sync")
def _(fixed: bool) -> Step:
    m, x = net(1024, 6), rand(256, 1024)

    def step() -> None:
        with torch.no_grad():
            y = m(x)
            if not fixed:
                str(y[0, :8])

    return step


@case("mask_between_layers", "boolean masks between layers vs torch.where", "hidden-sync")
def _(fixed: bool) -> Step:
    m, x = net(1024, 8), rand(512, 1024)

    def step() -> None:
        h = x
        with torch.no_grad():
            for layer in m:
                h = layer(h)
                if fixed:
                    h = torch.where(h < 0, h * 0.1, h)
                else:
                    h = h.clone()
                    h[h < 0] = h[h < 0] * 0.1

    return step


@case(
    "token_loop",
    "greedy decoding that reads each token with .item() vs tokens kept on the GPU",
    "hidden-sync",
    "launch-bound",
)
def _(fixed: bool) -> Step:
    e, m, head = nn.Embedding(4096, 512).to(D, BF), net(512, 8), nn.Linear(512, 4096).to(D, BF)

    def step() -> None:
        token = torch.zeros(1, dtype=torch.long, device=D)
        with torch.no_grad():
            for _ in range(8):
                token = head(m(e(token))).argmax(-1)
                if not fixed and token.item() == -1:
                    break

    return step


@case("repeat_interleave", "repeat_interleave without output_size in every layer vs with it", "hidden-sync")
def _(fixed: bool) -> Step:
    m, x = net(1024, 4), rand(256, 1024)
    n = torch.full((256,), 2, device=D)

    def step() -> None:
        h = x
        with torch.no_grad():
            for layer in m:
                h = layer(h)
                h = torch.repeat_interleave(h, n, 0, output_size=512 if fixed else None)[:256]

    return step


@case("sync_gpu_bound", "trap: loss.item() once in a GPU-bound step of large GEMMs gains next to nothing")
def _(fixed: bool) -> Step:
    ws = [rand(8192, 8192, scale=0.01) for _ in range(6)]
    x = rand(8192, 8192)

    def step() -> object:
        h = x
        for w in ws:
            h = h @ w
        s = h.float().mean()
        return s if fixed else s.item()

    return step


@case("wait_moves", "trap: two waits a step, removing the first only moves its time to the second")
def _(fixed: bool) -> Step:
    ws = [rand(4096, 4096, scale=0.01) for _ in range(8)]
    x = rand(4096, 4096)

    def step() -> float:
        h = x
        for i, w in enumerate(ws):
            h = h @ w
            if i == 3 and not fixed:
                float(h[0, 0])
        return float(h[0, 0])

    return step


@case("event_sync", "an event waited for on the host after each of four parts vs none", "explicit-sync")
def _(fixed: bool) -> Step:
    parts, x = [net(1024, 3) for _ in range(4)], rand(128, 1024)

    def step() -> None:
        h = x
        with torch.no_grad():
            for p in parts:
                h = p(h)
                if not fixed:
                    e = torch.cuda.Event()
                    e.record()
                    e.synchronize()

    return step


# ---- copies ----------------------------------------------------------------------------------------------------------
@case("pageable_nonblocking", "non_blocking=True from pageable memory vs pinned", "pageable-copy")
def _(fixed: bool) -> Step:
    m = net(2048, 6)
    src = torch.randn(4096, 2048)
    src = src.pin_memory() if fixed else src

    def step() -> None:
        with torch.no_grad():
            m(src.to(D, non_blocking=True).to(BF))

    return step


@case("scalar_uploads", "torch.tensor(float, device=cuda) per layer vs torch.full", "small-upload")
def _(fixed: bool) -> Step:
    m, x = net(1024, 8), rand(128, 1024)

    def step() -> None:
        h = x
        with torch.no_grad():
            for i, layer in enumerate(m):
                s = torch.full((), 0.5 + i, device=D) if fixed else torch.tensor(0.5 + i, device=D)
                h = layer(h) * s

    return step


@case("logits_to_cpu", "logits to the CPU for an argmax in NumPy vs argmax on the GPU", "readback")
def _(fixed: bool) -> Step:
    m, head, x = net(1024, 4), nn.Linear(1024, 32000).to(D, BF), rand(512, 1024)

    def step() -> object:
        with torch.no_grad():
            y = head(m(x))
            return y.argmax(-1) if fixed else y.float().cpu().numpy().argmax(-1)

    return step


# ---- allocation, loading, stalls ----------------------------------------------------------------------------------
@case("empty_cache_train", "empty_cache() after every training step vs none", "allocator-churn")
def _(fixed: bool) -> Step:
    m, x = net(2048, 6), rand(2048, 2048)

    def step() -> None:
        m(x).float().mean().backward()
        m.zero_grad()
        if not fixed:
            torch.cuda.empty_cache()

    return step


class Slow(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, i: int) -> torch.Tensor:
        g = torch.Generator().manual_seed(i)
        return torch.randn(3, 128, 128, generator=g).sort(-1).values


@case("loader_light", "a light dataset without workers vs 8 workers", "input-bound")
def _(fixed: bool) -> Step:
    how = {"num_workers": 8, "pin_memory": True, "persistent_workers": True, "prefetch_factor": 4} if fixed else {}
    it = iter(torch.utils.data.DataLoader(Slow(), batch_size=8, **how))
    c = nn.Sequential(nn.Conv2d(3, 64, 3, 2, 1), nn.ReLU(), nn.Conv2d(64, 128, 3, 2, 1), nn.ReLU()).to(D)

    def step() -> None:
        c(next(it).to(D, non_blocking=True)).mean().backward()
        c.zero_grad()

    return step


@case("numpy_in_step", "4 ms of NumPy in every step vs none", "host-stall")
def _(fixed: bool) -> Step:
    import numpy as np

    m, x, a = net(2048, 8), rand(4096, 2048), np.random.rand(400_000)

    def step() -> None:
        m(x).float().mean().backward()
        m.zero_grad()
        if not fixed:
            for _ in range(2):
                np.sort(a)

    return step


@case("sleep_hidden", "trap: 1 ms of sleep behind 6 ms of queued GEMMs costs nothing")
def _(fixed: bool) -> Step:
    ws = [rand(8192, 8192, scale=0.01) for _ in range(5)]
    x = rand(8192, 8192)

    def step() -> None:
        h = x
        for w in ws:
            h = h @ w
        if not fixed:
            time.sleep(0.001)

    return step


@case("gc_light", "gc.collect() in every step with 30,000 containers vs none", "gc-pause", "host-stall")
def _(fixed: bool) -> Step:
    m, x, keep = net(1024, 8), rand(512, 1024), [{"i": i} for i in range(30_000)]

    def step() -> object:
        m(x).float().mean().backward()
        m.zero_grad()
        if not fixed:
            gc.collect()
        return keep

    return step


# ---- compilation -----------------------------------------------------------------------------------------------------
@case("break_by_item", "torch.compile cut by .item() in every block vs none", "graph-break", "hidden-sync")
def _(fixed: bool) -> Step:
    ws = [rand(512, 512, scale=0.05) for _ in range(6)]
    x = rand(256, 512)

    def f(h: torch.Tensor) -> torch.Tensor:
        for w in ws:
            h = torch.tanh(h @ w) * 1.1 + 0.1
            if not fixed and h.mean().item() > 100:
                h = h / 2
        return h

    g = torch.compile(f)

    def step() -> None:
        with torch.no_grad():
            g(x)

    return step


@case(
    "tiny_compiled",
    "thirty calls of a small compiled function vs one compiled loop",
    "compile-overhead",
    "launch-bound",
)
def _(fixed: bool) -> Step:
    x = rand(256, 256)

    def one(h: torch.Tensor) -> torch.Tensor:
        return torch.tanh(h * 1.01) + 0.1

    def loop(h: torch.Tensor) -> torch.Tensor:
        for _ in range(30):
            h = one(h)
        return h

    small, whole = torch.compile(one), torch.compile(loop)

    def eager(h: torch.Tensor) -> torch.Tensor:
        for _ in range(30):
            h = small(h)
        return h

    return (lambda: whole(x)) if fixed else (lambda: eager(x))


@case("recompile_int", "a Python int that changes is compiled in anew vs passed as a tensor", "recompilation")
def _(fixed: bool) -> Step:
    x, n = rand(256, 256), [0]
    torch._dynamo.config.recompile_limit = 10_000
    torch._dynamo.config.accumulated_recompile_limit = 10_000
    torch._dynamo.config.specialize_float = True
    f = torch.compile(lambda h, k: torch.sin(h) * k + 1)

    def step() -> None:
        n[0] += 1
        k = float(n[0])
        f(x, torch.full((), k, device=D) if fixed else k)

    return step


# ---- several at once -------------------------------------------------------------------------------------------------
@case("three_faults", ".item(), a pageable batch and a single-tensor optimizer together vs none", "unfused-optimizer",
      "pageable-copy", "hidden-sync")  # fmt: skip
def _(fixed: bool) -> Step:
    m, src = net(1024, 8, torch.float32), torch.randn(2048, 1024)
    src = src.pin_memory() if fixed else src
    opt = torch.optim.AdamW(m.parameters(), **({"fused": True} if fixed else {"foreach": False}))

    def step() -> None:
        loss = m(src.to(D, non_blocking=fixed)).square().mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        if not fixed:
            loss.item()

    return step


@case("late_fault", "a wait that matters only once the slow fp32 products are gone", "fp32-matmul")
def _(fixed: bool) -> Step:
    ws = [rand(2048, 2048, dtype=torch.float32, scale=0.02) for _ in range(10)]
    x = rand(4096, 2048, dtype=torch.float32)

    def step() -> None:
        torch.backends.cuda.matmul.allow_tf32 = fixed
        h = x
        for w in ws:
            h = h @ w
            if not fixed:
                torch.cuda.synchronize()

    return step


@case("decode_graph", "healthy: a CUDA graph replays the whole decode step")
def _(_: bool) -> Step:
    m, x = net(512, 24), rand(8, 512)
    with torch.no_grad():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                m(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            m(x)
    return lambda: graph.replay()


@case("decode_eager", "a small model decoded op by op vs a CUDA graph", "launch-bound")
def _(fixed: bool) -> Step:
    m, x = net(512, 24), rand(8, 512)

    def eager() -> None:
        with torch.no_grad():
            m(x)

    if not fixed:
        return eager
    with torch.no_grad():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                eager()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            m(x)
    return lambda: graph.replay()


def main() -> None:
    """Record the named cases, or all; a case that fails is named and left out."""
    out, names = sys.argv[1], sys.argv[2:] or list(gpu_work.CASES)
    kept: dict[str, object] = {}
    for name in names:
        sys.argv = [sys.argv[0], out, name]
        try:
            gpu_work.main()
        except Exception as error:  # one case must not cost the others
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
            continue
        with open(f"{out}/labels.json") as file:
            labels = json.load(file)
        kept |= labels["cases"]
        with open(f"{out}/labels.json", "w") as file:
            json.dump({**labels, "cases": kept}, file, indent=1)


if __name__ == "__main__":
    main()
