"""Which speed-ups do fixes of torch.compile's faults really bring? Pairs with measured times, and healthy ones.

Usage: python compile_work.py OUT [CASE ...]. Needs a CUDA GPU and torch. Writes as `gpu_work` does: OUT/CASE.{before,
after}.json.gz and OUT/labels.json. Cases without a kind are healthy on both sides.
"""

from __future__ import annotations

import gpu_work
import host_work
import torch
from gpu_work import BF, Step, case, rand
from torch import nn

gpu_work.CASES.clear()
D = "cuda"


def unlimited() -> None:
    """Let Dynamo compile as often as it likes."""
    torch._dynamo.config.recompile_limit = 10_000
    torch._dynamo.config.accumulated_recompile_limit = 10_000


class Block(nn.Module):
    """A feed-forward block; `broken` names what cuts its graph."""

    def __init__(self, width: int, broken: str) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.broken = broken

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.nn.functional.gelu(self.up(self.norm(x)))
        if self.broken == "item" and h.mean().item() > 100:
            h = h / 2
        if self.broken == "graph_break":
            torch._dynamo.graph_break()
        if self.broken == "numpy":
            h = h * float(h[0, 0].float().cpu().numpy().clip(1, 1))
        return x + self.down(h) * 0.5 + 0.1


def blocks(width: int, depth: int, broken: str) -> nn.Sequential:
    return nn.Sequential(*[Block(width, broken) for _ in range(depth)]).to(D, BF)


# ---- graph breaks ----------------------------------------------------------------------------------------------------
@case("break_straight", "three graph breaks in straight-line code vs none", "graph-break")
def _(fixed: bool) -> Step:
    x = rand(512, 512)

    def part(h: torch.Tensor) -> torch.Tensor:
        return torch.tanh(h * 1.1 + 0.1) * 0.9

    def f(h: torch.Tensor) -> torch.Tensor:
        h = part(h)
        if not fixed:
            torch._dynamo.graph_break()
        h = part(h)
        if not fixed:
            torch._dynamo.graph_break()
        h = part(h)
        if not fixed:
            torch._dynamo.graph_break()
        return part(h)

    g = torch.compile(f)
    return lambda: g(x)


@case(
    "break_item_straight",
    "two .item() branches in straight-line compiled code vs torch.where",
    "graph-break",
    "hidden-sync",
)
def _(fixed: bool) -> Step:
    x, w = rand(512, 512), rand(512, 512, scale=0.05)

    def half(h: torch.Tensor) -> torch.Tensor:
        if fixed:
            return torch.where(h.mean() > 100, h / 2, h)
        if h.mean().item() > 100:
            h = h / 2
        return h

    def f(h: torch.Tensor) -> torch.Tensor:
        h = half(torch.tanh(h @ w) + 0.1)
        h = half(torch.tanh(h @ w) + 0.1)
        return torch.tanh(h @ w) + 0.1

    g = torch.compile(f)

    def step() -> None:
        with torch.no_grad():
            g(x)

    return step


@case("break_item_blocks", ".item() in each of eight compiled blocks (inference) vs none", "graph-break", "hidden-sync")
def _(fixed: bool) -> Step:
    m, x = torch.compile(blocks(512, 8, "" if fixed else "item")), rand(256, 512)

    def step() -> None:
        with torch.no_grad():
            m(x)

    return step


@case(
    "break_blocks_train", "a graph break in each of six compiled blocks, forward and backward, vs none", "graph-break"
)
def _(fixed: bool) -> Step:
    m, x = torch.compile(blocks(512, 6, "" if fixed else "graph_break")), rand(256, 512)

    def step() -> None:
        m(x).float().square().mean().backward()
        m.zero_grad()

    return step


@case("break_loop_modules", ".item() in the loop over compiled blocks: the loop runs eagerly, each block is compiled", "graph-break",
      "hidden-sync", "compile-overhead")  # fmt: skip
def _(fixed: bool) -> Step:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = blocks(512, 8, "")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for block in self.blocks:
                x = block(x)
                if not fixed and x.mean().item() > 100:
                    x = x / 2
            return x

    m, x = torch.compile(Net()), rand(256, 512)

    def step() -> None:
        with torch.no_grad():
            m(x)

    return step


@case("break_print", "print() of a shape in a compiled function (two breaks) vs none", "graph-break")
def _(fixed: bool) -> Step:
    import os

    sink = open(os.devnull, "w")  # noqa: SIM115
    x = rand(512, 512)

    def f(h: torch.Tensor) -> torch.Tensor:
        h = torch.sin(h) * 1.1 + 0.2
        if not fixed:
            print(h.shape, file=sink)
        h = torch.cos(h) * 1.1 + 0.2
        if not fixed:
            print(h.shape, file=sink)
        return torch.tanh(h) * 1.1 + 0.2

    g = torch.compile(f)
    return lambda: g(x)


@case("break_disabled", "a call of torch.compiler.disable'd code in the middle vs none", "graph-break")
def _(fixed: bool) -> Step:
    x = rand(512, 512)

    def scale(h: torch.Tensor) -> torch.Tensor:
        return h * 1.01 + 0.01

    inner = scale if fixed else torch.compiler.disable(scale)

    def f(h: torch.Tensor) -> torch.Tensor:
        h = torch.sin(h) * 1.1 + 0.2
        h = inner(h)
        return torch.tanh(h) * 1.1 + 0.2

    g = torch.compile(f)
    return lambda: g(x)


# ---- guards and prologues --------------------------------------------------------------------------------------------
@case("small_regions", "twelve different small compiled functions vs one", "compile-overhead", "launch-bound")
def _(fixed: bool) -> Step:
    x = rand(256, 256)
    makers = [lambda h, k=k: torch.tanh(h * (1 + k / 100)) + 0.1 for k in range(12)]

    def whole(h: torch.Tensor) -> torch.Tensor:
        for one in makers:
            h = one(h)
        return h

    small, big = [torch.compile(one) for one in makers], torch.compile(whole)

    def step() -> None:
        h = x
        for one in small:
            h = one(h)

    return (lambda: big(x)) if fixed else step


@case("compiled_layers", "each of 16 layers compiled by itself vs the whole model", "compile-overhead", "launch-bound")
def _(fixed: bool) -> Step:
    m, x = blocks(256, 16, ""), rand(64, 256)
    if fixed:
        m = torch.compile(m)
    else:
        for one in m:
            one.compile()

    def step() -> None:
        with torch.no_grad():
            m(x)

    return step


@case("compiled_single_add", "one element-wise op compiled between eager ops vs left eager", "compile-overhead")
def _(fixed: bool) -> Step:
    x, w = rand(256, 256), rand(256, 256, scale=0.05)

    def add(h: torch.Tensor) -> torch.Tensor:
        return h + 1

    one = add if fixed else torch.compile(add)

    def step() -> None:
        h = x
        with torch.no_grad():
            for _ in range(10):
                h = one(h @ w)

    return step


@case(
    "many_guards",
    "a compiled model with 200 parameters (guards on each) vs CUDA graphs",
    "launch-bound",
    "compile-overhead",
)
def _(fixed: bool) -> Step:
    m, x = nn.Sequential(*[nn.Linear(128, 128) for _ in range(100)]).to(D, BF), rand(8, 128)
    f = torch.compile(m, mode="reduce-overhead" if fixed else "default")

    def step() -> None:
        with torch.no_grad():
            f(x)

    return step


# ---- compiling again ---------------------------------------------------------------------------------------------------
@case("recompile_train", "a training step that is compiled anew for each batch size vs dynamic shapes", "recompilation")
def _(fixed: bool) -> Step:
    unlimited()
    m, n = blocks(256, 2, ""), [16]
    f = torch.compile(m, dynamic=fixed)

    def step() -> None:
        n[0] += 8
        f(rand(n[0], 256)).float().mean().backward()
        m.zero_grad()

    return step


@case("recompile_attribute", "a counter attribute that changes in each call vs one that stays", "recompilation")
def _(fixed: bool) -> Step:
    unlimited()

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.name = nn.Linear(256, 256), "0"

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.layer(x)) * (2 if self.name == "never" else 1)

    m, x, n = Net().to(D, BF), rand(64, 256), [0]
    f = torch.compile(m)

    def step() -> None:
        n[0] += 1
        m.name = "0" if fixed else str(n[0])
        with torch.no_grad():
            f(x)

    return step


@case("recompile_limit", "the recompile limit was reached, so the function runs eagerly, vs dynamic shapes", "recompilation", "graph-break",
      "launch-bound", "unfused-pointwise")  # fmt: skip
def _(fixed: bool) -> Step:
    torch._dynamo.config.recompile_limit = 8
    x, n = rand(512, 512), [0]
    f = torch.compile(lambda h, k: torch.tanh(torch.sin(h) * 1.1 + 0.1) * torch.cos(h) + len(k))

    def step() -> None:
        n[0] += 1
        f(x, "a" if fixed else "a" * n[0])

    return step


@case(
    "cudagraph_shapes",
    "reduce-overhead records a new graph for each shape vs one shape",
    "recompilation",
    "compile-overhead",
)
def _(fixed: bool) -> Step:
    unlimited()
    m, n = blocks(256, 2, ""), [16]
    f = torch.compile(m, mode="reduce-overhead", dynamic=True)

    def step() -> None:
        n[0] += 0 if fixed else 8
        with torch.no_grad():
            f(rand(n[0], 256))

    return step


@case("cudagraph_skipped", "reduce-overhead skips CUDA graphs because an input is changed in place vs a copy", "launch-bound",
      "compile-overhead")  # fmt: skip
def _(fixed: bool) -> Step:
    m, x, state = blocks(256, 12, ""), rand(16, 256), rand(16, 256)

    def forward(h: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        y = m(h)
        if fixed:
            return y + s
        s.add_(y)
        return y

    f = torch.compile(forward, mode="reduce-overhead")

    def step() -> None:
        with torch.no_grad():
            f(x, state)

    return step


# ---- tuning ------------------------------------------------------------------------------------------------------------
@case("autotune_triton", "a Triton kernel tuned in each step, as its key is always new, vs one key", "autotuning")
def _(fixed: bool) -> Step:
    from triton_scale import scale

    x, n = rand(1 << 20), [1 << 19]

    def step() -> None:
        n[0] += 0 if fixed else 1024
        scale(x, n[0])

    return step


@case(
    "cudnn_benchmark", "cudnn.benchmark tries algorithms in each step, as the shape is always new, vs off", "autotuning"
)
def _(fixed: bool) -> Step:
    torch.backends.cudnn.benchmark = not fixed
    net, n = nn.Sequential(nn.Conv2d(64, 64, 3, 1, 1), nn.ReLU(), nn.Conv2d(64, 64, 3, 1, 1)).to(D, BF), [32]

    def step() -> None:
        n[0] += 1
        with torch.no_grad():
            net(torch.zeros(8, 64, n[0], 32, device=D, dtype=BF))

    return step


# ---- healthy ---------------------------------------------------------------------------------------------------------
@case("healthy_train", "healthy: a compiled model, eager loss, compiled optimizer")
def _(_: bool) -> Step:
    m, x = blocks(2048, 6, ""), rand(8192, 2048)
    opt = torch.optim.AdamW(m.parameters(), fused=True)
    f = torch.compile(m)

    def step() -> None:
        f(x).float().square().mean().backward()
        opt.step()
        opt.zero_grad()

    return step


@case("healthy_regional", "healthy: each large block compiled by itself, GPU-bound")
def _(_: bool) -> Step:
    m, x = blocks(4096, 6, ""), rand(8192, 4096)
    for one in m:
        one.compile()

    def step() -> None:
        with torch.no_grad():
            m(x)

    return step


@case("break_gpu_bound", "trap: a graph break in each large block costs next to nothing, as the GPU is busy")
def _(fixed: bool) -> Step:
    m, x = torch.compile(blocks(4096, 6, "" if fixed else "graph_break")), rand(8192, 4096)

    def step() -> None:
        with torch.no_grad():
            m(x)

    return step


if __name__ == "__main__":
    host_work.main()
