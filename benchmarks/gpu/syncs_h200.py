"""Do the sync watch, the race guard and the stream helpers keep their promises on a real GPU?

Run as `PYTHONPATH=src python benchmarks/gpu/syncs_h200.py [part ...]`; a short table on stdout, everything as JSON to $OUT.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

import torch
from torch import nn

from gapless.model.sync_fixes import SYNC_FIXES
from gapless.runtime import streams
from gapless.runtime.syncs import watch_syncs

ROOT = Path(__file__).resolve().parents[2]
DEVICE = torch.device("cuda")
SPIN = 20_000_000
RESULT: dict[str, object] = {}


def put(key, value):
    RESULT[key] = value
    print(f"{key}: {value}", flush=True)


def per_call_us(fn, calls=2000, rounds=5):
    best = float("inf")
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            fn()
        best = min(best, time.perf_counter() - begin)
        torch.cuda.synchronize()
    return round(best / calls * 1e6, 3)


def costs():
    """What watching costs a call, and what stays behind once the trace hooks are on (they cannot be turned off)."""
    small, event = torch.randn(64, device=DEVICE), torch.cuda.Event()
    calls = {
        "add_": lambda: small.add_(1),
        "add (allocates)": lambda: small + 1,
        "event.record": event.record,
    }
    before = {name: per_call_us(fn) for name, fn in calls.items()}
    with watch_syncs() as watch:
        during = {name: per_call_us(fn, 500) for name, fn in calls.items()}
    light = watch_syncs(layers="CD")
    with light:
        during_cd = {name: per_call_us(fn, 500) for name, fn in calls.items()}
    after = {name: per_call_us(fn) for name, fn in calls.items()}
    reported = watch.report().overhead.per_call_ns / 1e3
    put("cost us a call", {"before": before, "watched": during, "watched CD": during_cd, "after": after,
                           "reported": round(reported, 2)})  # fmt: skip


def idioms():
    """Every row of the coverage table: does it stall unwatched, and does the watch find it, with the right line?"""
    x = torch.randn(1 << 20, device=DEVICE)
    m, i = x > 0, torch.zeros(8, dtype=torch.long, device=DEVICE)
    page, pin = torch.empty(1 << 20), torch.empty(1 << 20, pin_memory=True)
    table, k = torch.randn(64), torch.tensor(3, device=DEVICE)
    other, host_index, host_mask = x.clone(), torch.tensor([0, 2]), torch.zeros(1 << 20, dtype=torch.bool)
    event, weight = torch.cuda.Event(), nn.Parameter(torch.randn(64, 64, device=DEVICE))
    weight.grad = torch.randn_like(weight)
    functional = torch.nn.functional
    return {
        "item": lambda: x[0].item(),
        "if": lambda: bool(x[0] > 0),
        "float": lambda: float(x[0]),
        "tolist": lambda: x[:3].tolist(),
        "x[0-d]": lambda: x[k],
        "contains": lambda: 1.0 in x,
        "nonzero": lambda: x.nonzero(),
        "where(c)": lambda: torch.where(m),
        "x[mask]": lambda: x[m],
        "masked_select": lambda: x.masked_select(m),
        "x[mask]=scalar": lambda: x.__setitem__(m, 1.0),
        "x[mask]=tensor": lambda: x.__setitem__(m, x[m]),
        "masked_fill": lambda: x.masked_fill(m, 0.0),
        "unique": lambda: i.unique(),
        "multinomial": lambda: torch.multinomial(x.abs()[:100], 4),
        "repeat_interleave": lambda: i.repeat_interleave(i + 1),
        "repeat_interleave+size": lambda: i.repeat_interleave(i + 1, output_size=8),
        "bincount": lambda: torch.bincount(i),
        "one_hot": lambda: functional.one_hot(i),
        "equal": lambda: torch.equal(x, other),
        "allclose": lambda: torch.allclose(x, x),
        "any()": lambda: x.any(),
        "list index": lambda: x[[0, 2, 4]],
        "cpu index": lambda: x[host_index],
        "cpu mask": lambda: x[host_mask],
        "x[cpu mask]=scalar": lambda: x.__setitem__(host_mask, 1.0),
        "cpu table[gpu scalar]": lambda: table[k],
        "linalg.inv": lambda: torch.linalg.inv(weight.detach()),
        "cpu()": lambda: x.cpu(),
        "numpy()": lambda: x[:8].cpu().numpy(),
        "to cpu, nb": lambda: x.to("cpu", non_blocking=True),
        "pageable.copy_(gpu, nb)": lambda: page.copy_(x, non_blocking=True),
        "pinned.copy_(gpu, nb)": lambda: pin.copy_(x, non_blocking=True),
        "pinned.copy_(gpu)": lambda: pin.copy_(x),
        "H2D pageable": lambda: page.to(DEVICE),
        "H2D pageable, nb": lambda: page.to(DEVICE, non_blocking=True),
        "H2D pageable 1 KB, nb": lambda: page[:256].to(DEVICE, non_blocking=True),
        "H2D pinned, nb": lambda: pin.to(DEVICE, non_blocking=True),
        "H2D pinned": lambda: pin.to(DEVICE),
        "torch.tensor(list)": lambda: torch.tensor([1.0, 2.0], device=DEVICE),
        "as_tensor(scalar)": lambda: torch.as_tensor(3.0, device=DEVICE),
        "full": lambda: torch.full((4,), 2.0, device=DEVICE),
        "clip_grad_norm_": lambda: nn.utils.clip_grad_norm_([weight], 1.0),
        "clip_grad_norm_ checked": lambda: nn.utils.clip_grad_norm_([weight], 1.0, error_if_nonfinite=True),
        "print": lambda: repr(x[:3]),
        "format": lambda: f"{x[0]:.3f}",
        "cuda.synchronize": lambda: torch.cuda.synchronize(),
        "accelerator.synchronize": lambda: torch.accelerator.synchronize(),
        "stream.synchronize": lambda: torch.cuda.current_stream().synchronize(),
        "event.synchronize": lambda: (event.record(), event.synchronize()),
        "event.query": lambda: (event.record(), event.query()),
        "pin_memory": lambda: page.pin_memory(),
        "empty_cache": lambda: torch.cuda.empty_cache(),
    }


def coverage():
    rows, wrong = {}, []
    for name, fn in idioms().items():
        fn()
        torch.cuda.synchronize()
        torch.cuda._sleep(SPIN)
        begin = time.perf_counter()
        fn()
        host_ms = (time.perf_counter() - begin) * 1e3
        drained = torch.cuda.current_stream().query()
        torch.cuda.synchronize()
        with watch_syncs() as watch:
            torch.cuda._sleep(SPIN)
            fn()
        report = watch.report()
        torch.cuda.synchronize()
        found = report.hidden + report.explicit
        line = fn.__code__.co_firstlineno
        rows[name] = {
            "host_ms": round(host_ms, 2),
            "found": [
                f"{f.kind} {f.fix_key} {f.evidence} x{sum(f.counts)} {f.stall_ms:.1f}ms waited {f.waited_ms}"
                for f in found
            ],
            "explicit": bool(report.explicit),
            "races": len(report.races),
        }
        # pin_memory takes as long, but at locking pages: the GPU goes on meanwhile.
        stalled = host_ms > 5 and drained
        lines_right = all(f.line == line and f.file == __file__ for f in found)
        costly = [f for f in found if f.stall_ms > 5]
        if stalled != bool(costly) or not lines_right or report.races or (not stalled and found):
            wrong.append(name)
        print(f"  {name:26} {host_ms:6.2f} ms  {'STALL' if stalled else '-':5}  {rows[name]['found']}", flush=True)
    put("coverage rows", len(rows))
    put("coverage wrong", wrong)
    RESULT["coverage"] = rows


def races():
    x, pin = torch.ones(1 << 18, device=DEVICE), torch.ones(1 << 18, pin_memory=True)

    def early_read():
        torch.cuda._sleep(10_000_000)
        return x.to("cpu", non_blocking=True)[-1].item()

    def early_write():
        torch.cuda._sleep(10_000_000)
        pin.to(DEVICE, non_blocking=True)
        pin.fill_(2)

    def right_read():
        torch.cuda._sleep(10_000_000)
        host = x.to("cpu", non_blocking=True)
        torch.cuda.current_stream().record_event().synchronize()
        return host[-1].item()

    def right_write():
        torch.cuda._sleep(10_000_000)
        pin.to(DEVICE, non_blocking=True)
        torch.cuda.current_stream().synchronize()
        pin.fill_(2)

    def right_handle():
        torch.cuda._sleep(10_000_000)
        return streams.to_host(x).result()[-1].item()

    def right_polled():
        torch.cuda._sleep(10_000_000)
        host = x.to("cpu", non_blocking=True)
        done = torch.cuda.current_stream().record_event()
        while not done.query():
            pass
        return host.sum()

    caught = {}
    for fn in (early_read, early_write, right_read, right_write, right_handle, right_polled):
        hits = 0
        for _ in range(100):
            with watch_syncs() as watch:
                fn()
            hits += bool(watch.report().races)
            torch.cuda.synchronize()
        caught[fn.__name__] = hits
    put("races caught of 100", caught)


class Fixed:
    """A loader whose batches cost nothing to make."""

    def __init__(self, batch, count):
        self.batch, self.count = batch, count

    def __iter__(self):
        return iter([self.batch] * self.count)


def prefetching():
    net = nn.Sequential(
        nn.Conv2d(3, 64, 3, 2, 1), nn.ReLU(), nn.Conv2d(64, 128, 3, 2, 1), nn.ReLU(), nn.Conv2d(128, 128, 3, 1, 1)
    ).to(DEVICE)
    src = torch.randn(64, 3, 256, 256)
    pin = src.pin_memory()
    side = torch.cuda.Stream()

    def loop(batches, move):
        with torch.no_grad():
            for batch in batches:
                net(move(batch))

    def by_hand(count):
        def fetch():
            with torch.cuda.stream(side):
                return pin.to(DEVICE, non_blocking=True)

        following = fetch()
        with torch.no_grad():
            for _ in range(count):
                torch.cuda.current_stream().wait_stream(side)
                x = following
                x.record_stream(torch.cuda.current_stream())
                following = fetch()
                net(x)

    forms = {
        "pageable .to": lambda n: loop(Fixed(src, n), lambda b: b.to(DEVICE)),
        "pinned .to nb": lambda n: loop(Fixed(pin, n), lambda b: b.to(DEVICE, non_blocking=True)),
        "by hand": by_hand,
        "prefetch pinned": lambda n: loop(streams.prefetch(Fixed(pin, n), DEVICE), lambda b: b),
        "prefetch unpinned": lambda n: loop(streams.prefetch(Fixed(src, n), DEVICE), lambda b: b),
        "pin_memory().to nb": lambda n: loop(Fixed(src, n), lambda b: b.pin_memory().to(DEVICE, non_blocking=True)),
    }
    ms = {name: [] for name in forms}
    peak = {}
    for _ in range(5):
        for name, form in forms.items():
            form(5)
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            begin = time.perf_counter()
            form(60)
            torch.cuda.synchronize()
            ms[name].append((time.perf_counter() - begin) / 60 * 1e3)
            peak[name] = round(torch.cuda.max_memory_allocated() / 2**20)
    median = {name: round(statistics.median(values), 3) for name, values in ms.items()}
    gain = (median["pageable .to"] - median["prefetch pinned"]) / (median["pageable .to"] - median["by hand"])
    put("prefetch ms a step", median)
    put("prefetch peak MB", peak)
    put("prefetch share of the gain by hand", round(gain, 3))


def correctness():
    """Values, order and memory of the helpers under load."""
    bad = 0
    batches = [torch.full((1 << 20,), float(n)).pin_memory() for n in range(50)]
    for n, batch in enumerate(streams.prefetch(batches, DEVICE)):
        torch.cuda._sleep(500_000)
        bad += int((batch != n).any().item()) if n % 7 == 0 else 0
        sums = batch.sum()
        bad += int(sums.item() != n * (1 << 20)) if n % 5 == 0 else 0
    handles = []
    big = torch.zeros(1 << 22, device=DEVICE)
    for n in range(20):
        big.fill_(n)
        torch.cuda._sleep(200_000)
        handles.append(streams.to_host(big))
    big.fill_(-1)
    bad += sum(int((handle.result() != n).any()) for n, handle in enumerate(handles))
    begin = time.perf_counter()
    torch.cuda._sleep(SPIN)
    handle = streams.to_host(big)
    call_ms = (time.perf_counter() - begin) * 1e3
    pending = not handle.done()
    handle.result()
    begin = time.perf_counter()
    streams.to_host(big)
    second_ms = (time.perf_counter() - begin) * 1e3
    for _ in range(50):
        a = torch.randn(1 << 18, device=DEVICE)
        with streams.side_stream(a):
            torch.cuda._sleep(100_000)
            b = a * 2
        del_check = torch.allclose(b, a * 2)
        bad += int(not del_check)
    path = Path(tempfile.mkdtemp()) / "check.pt"
    saving = streams.save_async({"big": big}, path)
    big.zero_()
    bad += int((torch.load(saving.result())["big"] != -1).any())
    path.unlink()
    with streams.timer("spin"):
        torch.cuda._sleep(SPIN)
    unread = streams.timers()["spin"].ready_ms()
    put(
        "helpers",
        {
            "wrong values": bad,
            "to_host call ms": [round(call_ms, 3), round(second_ms, 3)],
            "still running at return": pending,
            "timer ms": [round(v, 2) for v in streams.timers()["spin"].wait_ms()],
            "timer before": unread,
        },
    )


def threads_and_autograd():
    class Check(torch.autograd.Function):
        @staticmethod
        def forward(_ctx, x):
            return x * 1

        @staticmethod
        def backward(_ctx, gradient):
            gradient.sum().item()
            return gradient

    x = torch.randn(1000, device=DEVICE, requires_grad=True)

    def worker():
        x.detach().sum().item()

    found = {}
    with watch_syncs() as watch:
        torch.cuda._sleep(SPIN)
        Check.apply(x).sum().backward()
    found["backward"] = [(f.head(), f.threads, f.evidence) for f in watch.report().hidden]
    with watch_syncs() as watch:
        torch.cuda._sleep(SPIN)
        thread = threading.Thread(target=worker, name="worker-1")
        thread.start()
        thread.join()
    found["thread"] = [(f.head(), f.threads, f.evidence) for f in watch.report().hidden]
    with watch_syncs(layers="CD") as watch:
        torch.cuda._sleep(SPIN)
        thread = threading.Thread(target=worker, name="worker-2")
        thread.start()
        thread.join()
    found["thread CD"] = [(f.head(), f.threads, f.evidence) for f in watch.report().hidden]
    model, scaler = nn.Linear(8, 8).to(DEVICE), torch.amp.GradScaler("cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    with watch_syncs(warmup=1) as watch:
        for _ in range(4):
            with torch.autocast("cuda", dtype=torch.float16):
                loss = model(torch.randn(4, 8, device=DEVICE)).sum()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    found["GradScaler"] = [(f.head(), f.fix_key, f.counts) for f in watch.report().hidden]
    put("threads", found)


def exceptions():
    """An exception that frees GPU tensors on its way must arrive as itself, in the watch and after it."""

    def raising():
        for _ in [torch.ones(3, device=DEVICE) for _ in range(2)]:
            raise KeyError("mine")

    def arrives():
        try:
            raising()
        except BaseException as error:
            return repr(error)
        return "lost"

    got = {}
    with watch_syncs():
        got["watched"] = arrives()
    got["after"] = arrives()
    with watch_syncs(layers="CD"):
        got["layers CD"] = arrives()
    got["after CD"] = arrives()
    put("exceptions", got)


def compiled():
    """With torch.compile layer A goes; what then waits outside any op is still reported."""
    x = torch.randn(1000, device=DEVICE)
    with watch_syncs() as watch:
        fn = torch.compile(lambda t: t.sin() * 2, backend="eager")
        for _ in range(3):
            fn(x)
            torch.tensor([1.0, 2.0], device=DEVICE)
            fn(x).sum().item()
    report = watch.report()
    put("compiled", {"layers": report.layers, "found": [(f.head(), f.evidence) for f in report.hidden]})
    torch._dynamo.reset()


def transformer():
    """Training steps of two Hugging Face models with random weights, watched and unwatched."""
    from transformers import LlamaConfig, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM

    sizes = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 4,
             "num_key_value_heads": 4, "vocab_size": 1000}  # fmt: skip
    made = {
        "llama": lambda: LlamaForCausalLM(LlamaConfig(**sizes)),
        "mixtral": lambda: MixtralForCausalLM(MixtralConfig(**sizes, num_local_experts=8)),
    }
    for name, make in made.items():
        torch.manual_seed(0)
        model = make().to(DEVICE).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        ids = torch.randint(0, 1000, (4, 128))
        mask = torch.ones_like(ids)

        def step(model=model, optimizer=optimizer, ids=ids, mask=mask):
            out = model(input_ids=ids.to(DEVICE), attention_mask=mask.to(DEVICE), labels=ids.to(DEVICE))
            out.loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            return out.loss.item()

        for _ in range(3):
            step()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(5):
            step()
        plain_ms = (time.perf_counter() - begin) / 5 * 1e3
        with watch_syncs() as watch:
            for _ in range(6):
                step()
        report = watch.report()
        print(report.text(8), flush=True)
        put(f"{name} ms a step", {"plain": round(plain_ms, 2), "watched": round(report.wall_ms / report.steps, 2),
                                  "own estimate": round(report.overhead.total_ms / 6, 2)})  # fmt: skip
        RESULT[f"{name} report"] = report.to_dict()
    prompt = torch.randint(0, 1000, (1, 8), device=DEVICE)
    model.eval()
    model.generate(prompt, max_new_tokens=4, do_sample=False, pad_token_id=0)
    with watch_syncs(warmup=0) as watch:
        model.generate(prompt, max_new_tokens=16, do_sample=False, pad_token_id=0)
    print(watch.report().text(8), flush=True)
    RESULT["generate report"] = watch.report().to_dict()


def rewrites():
    """Do the table's rewrites for false dependencies run without torch's detector objecting?"""
    complaints = {}
    for fix in SYNC_FIXES:
        x, model = torch.randn(8, device=DEVICE), nn.Linear(4, 4).to(DEVICE)
        loss = model(torch.randn(2, 4, device=DEVICE)).sum()
        loss.backward()
        names = {
            "torch": torch, "x": x, "y": torch.rand(8, device=DEVICE), "mask": x > 0, "loss": loss, "model": model,
            "i": torch.tensor([0, 1, 2, 1, 0, 0, 1, 3], device=DEVICE), "k": torch.tensor(2, device=DEVICE), "n": 8,
            "batch": torch.randn(4, 2), "table": torch.randn(8).pin_memory(), "device": DEVICE, "step": 1,
            "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        }  # fmt: skip
        code = fix.rewrite.replace("from gapless import streams", "from gapless.runtime import streams")
        try:
            exec(code, dict(names))
            torch.cuda.set_sync_debug_mode("error")
            exec(code, dict(names))
        except Exception as error:
            complaints[fix.key] = f"{type(error).__name__}: {str(error)[:80]}"
        finally:
            torch.cuda.set_sync_debug_mode("default")
    put("rewrites that wait or fail", complaints)


SCRIPT = """
import torch
net = torch.nn.Linear(512, 512).cuda(); opt = torch.optim.SGD(net.parameters(), lr=0.1)
host = torch.randn(4096, 512)
for _ in range(8):
    x = host.to("cuda", non_blocking=True)
    loss = net(x).square().mean(); loss.backward(); opt.step(); opt.zero_grad()
    if loss.item() > 1e9: break
"""


def scripts():
    """The two passes of `gapless syncs --trace`, as the command runs them."""
    out = Path(tempfile.mkdtemp())
    script = out / "script.py"
    script.write_text(SCRIPT)
    texts = {}
    for mode in ("watch", "trace"):
        options = {"result": str(out / f"{mode}.json"), "mode": mode}
        done = subprocess.run(
            [sys.executable, "-m", "gapless.runtime.syncs.script", json.dumps(options), str(script)],
            check=False, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        result = Path(options["result"])
        texts[mode] = json.loads(result.read_text())["text"] if result.exists() else done.stderr[-1500:]
        print(texts[mode], flush=True)
    RESULT["scripts"] = texts


def tests():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/docs/test_sync_guide.py",
         "tests/runtime/streams", "tests/runtime/syncs", "tests/runtime/timing/test_gpu.py",
         "tests/model/test_sync_fixes.py", "--maxfail=10"],
        cwd=ROOT, check=False, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    put("pytest", done.stdout[-2500:])


def main():
    put("machine", {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda})
    parts = (costs, coverage, races, prefetching, correctness, threads_and_autograd, exceptions, rewrites,
             transformer, compiled, scripts, tests)  # fmt: skip
    for part in parts:
        if sys.argv[1:] and part.__name__ not in sys.argv[1:]:
            continue
        begin = time.perf_counter()
        try:
            part()
        except Exception:
            put(f"{part.__name__} failed", traceback.format_exc()[-1500:])
        print(f"-- {part.__name__} {time.perf_counter() - begin:.1f} s", flush=True)
        out = os.environ.get("OUT")
        if out:
            (Path(out) / "syncs_h200.json").write_text(json.dumps(RESULT, indent=1, default=str))


if __name__ == "__main__":
    main()
