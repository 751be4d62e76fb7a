"""Does `gapless run` record well on a real GPU? Its baseline against scripts' own times, its cost, and real models.

Usage: python run_h200.py [CASES.py ...] [--only PART ...] [--seconds S]. Writes everything into $OUT and ends with a
table. CASES.py are files of cases for jobs/case_loop.py. Parts: calibrate, overhead, cases, neighbours, alternate, models, ranks, pairs.
Without a GPU all parts run on small sizes, which only shows that the script works.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
JOBS = ROOT / "benchmarks" / "gpu" / "jobs"
OUT = Path(os.environ.get("OUT", "out"))
TRACES = OUT / "run"
PARTS = ("calibrate", "overhead", "cases", "neighbours", "alternate", "models", "ranks", "pairs")
BEGAN = time.monotonic()
WITHOUT_SOURCE = {"matmul64", "matmul4096", "bool_mask", "pointwise_chain", "serial_streams", "queue_full"}
"""Cases in which nothing repeats that could be heard: the script's own function is named instead."""
ROUGH_MS = {
    "matmul64": 0.07, "matmul4096": 0.26, "item_sync": 2.0, "layer_sync": 0.7, "bool_mask": 2.2, "pageable_h2d": 7,
    "dataloader": 50, "pointwise_chain": 0.35, "optimizer_loop": 12, "decode_launch_bound": 2.2, "naive_attention": 10,
    "serial_streams": 1.43, "feature_readback": 40, "fp32_conv": 10, "gc_each_step": 150, "pin_large": 40, "queue_full": 40,
    "sleep_in_step": 12, "explicit_breaks": 0.6,
}  # fmt: skip
"""About how long a step takes (2 ms where nothing is said), to choose how many to run."""
LEFT_OUT = {"recompile"}
"""Its steps grow without end, so no two runs measure the same."""


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
    return {**os.environ, "PYTHONPATH": path, "GAPLESS_CACHE_DIR": str(OUT / "cache"), "HF_HUB_OFFLINE": "1", **more}


def call(command: list[str], seconds: float = 120, **more: str) -> tuple[str, str, float]:
    start = time.monotonic()
    try:
        done = subprocess.run(command, env=environment(**more), capture_output=True, text=True, timeout=seconds)
        out, err, code = done.stdout, done.stderr, done.returncode
    except subprocess.TimeoutExpired as late:
        out, err, code = str(late.stdout or ""), f"stopped after {seconds} s", -1
    if code:
        print(f"  exit {code}: {' '.join(command[-3:])}: {err[-600:]}", flush=True)
    return out, err, time.monotonic() - start


def gapless(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "gapless", *arguments]


def recorded(name: str, job: list[str], *flags: str, seconds: float = 120) -> tuple[dict[str, object], str, str]:
    """Run a job under `gapless run`; its metadata, standard output and standard error."""
    folder = TRACES / name
    out, err, _ = call(gapless("run", "--no-report", "-o", str(folder), *flags, *job), seconds)
    (folder if folder.is_dir() else OUT).joinpath("stderr.txt").write_text(err)
    files = [p for p in sorted(folder.glob("*.json.gz")) if ".stack." not in p.name] if folder.is_dir() else []
    record = json.loads(gzip.decompress(files[0].read_bytes()))["gapless"] if files else {}
    return record, out, err


def rows(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def calibrate() -> None:
    out, _, seconds = call(gapless("calibrate"))
    print(f"calibrate: {seconds:.1f} s\n{out}")


def overhead(repeats: int) -> None:
    """Nanoseconds per step that listening adds, before the window opens and after it has closed."""
    print("overhead per step, ns: plain | hooks installed, window closed | after the window")
    result = {}
    for source in ("optimizer", "forward", "dataloader", "function"):
        job = [str(JOBS / "tiny_step.py"), source]
        on = "__main__:function" if source == "function" else source
        kinds = {
            "plain": [sys.executable, *job],
            "waiting": gapless(
                "run", "--no-report", "-o", str(OUT / "none"), "--step-on", on, "--skip", "999999999", *job
            ),
            "after": gapless("run", "--no-report", "-o", str(OUT / "tiny"), "--step-on", on, "--skip", "5", *job),
        }
        found: dict[str, list[float]] = {kind: [] for kind in kinds}
        for _ in range(repeats):
            running = {
                kind: subprocess.Popen(
                    command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
                )
                for kind, command in kinds.items()
            }
            for kind, process in running.items():
                text, _ = process.communicate(timeout=120)
                found[kind] += [float(str(row["ns"])) for row in rows(text)]
        best = {kind: min(values) for kind, values in found.items() if values}
        result[source] = found
        print(f"  {source:11s}" + " | ".join(f"{best.get(kind, float('nan')):9.0f}" for kind in kinds), flush=True)
    (OUT / "overhead.json").write_text(json.dumps(result, indent=1))


def cases(files: list[str], until: float, repeats: int) -> None:
    """The baseline that `gapless run` writes against the step time that the script measures without it."""
    print("case: script alone | gapless baseline before, after | script after the window | baseline / script")
    table = {}
    for file in files:
        names = [n for n in re.findall(r'^@case\("(\w+)"', Path(file).read_text(), re.M) if n not in LEFT_OUT]
        job = [sys.executable, str(JOBS / "case_loop.py"), file]
        alone: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(repeats):
            text, _, _ = call([*job, *names], 150)
            for row in rows(text):
                alone[str(row["case"])].append(float(str(row["ms"])))
        for name in names:
            if time.monotonic() - BEGAN > until:
                print("  out of time")
                break
            flags = ["--step-on", "__main__:one_step"] if name in WITHOUT_SOURCE else []
            record, out, _ = recorded(name, [*job[1:], name], *flags)
            baseline = record.get("baseline") or {}
            before, after = baseline.get("before_ms", []), baseline.get("after_ms", [])
            clean = [ms for side in baseline.get("clean", []) for ms in baseline.get(side, [])]
            late = [float(str(row["ms"])) for row in rows(out)]
            ratio = median(clean) / median(alone[name]) if clean and alone[name] else float("nan")
            table[name] = {
                "alone": alone[name], "before": before, "after": after, "late": late, "ratio": ratio,
                "on": (record.get("step") or {}).get("definition"), "window": record.get("window"),
            }  # fmt: skip
            shown = [" ".join(f"{v:.4f}" for v in values) for values in (alone[name], before, after, late)]
            print(f"  {name:22s}{shown[0]} | {shown[1]}; {shown[2]} | {shown[3]} | {ratio:.3f}", flush=True)
    (OUT / "baselines.json").write_text(json.dumps(table, indent=1))


def neighbours(files: list[str], until: float) -> None:
    """The baseline against the script's own timing of the steps just before it, in the same process."""
    print("case: script's own ms, then the recorder's: ratio | early steps")
    table = {}
    for file in files:
        for name in re.findall(r'^@case\("(\w+)"', Path(file).read_text(), re.M):
            if name in LEFT_OUT or time.monotonic() - BEGAN > until:
                continue
            rough = ROUGH_MS.get(name, 2.0)
            warm, count = (int(min(20_000, max(10, ms / rough))) for ms in (1_000, 300))
            job = [str(JOBS / "neighbours.py"), file, name, str(warm), str(count)]
            flags = ["--stacks", "never", "--step-on", "__main__:one_step", "--skip", str(warm + count + 1)]
            record, out, _ = recorded(f"near_{name}", job, *flags, seconds=60)
            found = rows(out)
            before = (record.get("baseline") or {}).get("before_ms", [])
            if not found or not before:
                print(f"  {name}: no baseline", flush=True)
                continue
            own, ratio = float(str(found[0]["ms"])), before[0] / float(str(found[0]["ms"]))
            table[name] = {"own_ms": own, "baseline_ms": before[0], "ratio": ratio, "early": found[0]["early"]}
            print(f"  {name:22s}{own:9.4f} {before[0]:9.4f} {ratio:7.3f} | {found[0]['early']}", flush=True)
    near = [row for row in table.values() if abs(float(str(row["ratio"])) - 1) <= 0.03]
    print(f"  within 3 %: {len(near)} of {len(table)}")
    (OUT / "neighbours.json").write_text(json.dumps(table, indent=1))


def alternate(files: list[str], until: float) -> None:
    """The baseline's clock and the script's own in turn, many times in one process, under `gapless run`'s hooks."""
    print("case: script's own ms | recorder's / own: median (quartiles) | own timing / the one before it: off by")
    table = {}
    for file in files:
        for name in re.findall(r'^@case\("(\w+)"', Path(file).read_text(), re.M):
            if name in LEFT_OUT or time.monotonic() - BEGAN > until:
                continue
            job = [str(JOBS / "alternate.py"), file, name]
            flags = ["--step-on", "__main__:one_step", "--skip", "999999999"]
            _, out, _ = recorded(f"turn_{name}", job, *flags, seconds=60)
            for row in rows(out):
                table[name] = row
                print(
                    "  {case:22s}{ms:10.4f} | {ratio:.3f} ({low:.3f} to {high:.3f}) | {own_drift:.1%}".format(**row),
                    flush=True,
                )
    near = [row for row in table.values() if abs(float(str(row["ratio"])) - 1) <= 0.03]
    print(f"  within 3 %: {len(near)} of {len(table)}")
    (OUT / "alternate.json").write_text(json.dumps(table, indent=1))


def models() -> None:
    jobs = {
        "trainer": ["train_trainer.py"], "generate": ["generate.py"],
        "lightning": ["train_lightning.py"], "resnet": ["train_resnet.py"] + ([] if _has_gpu() else ["--batch", "2", "--steps", "30"]),
    }  # fmt: skip
    for name, job in jobs.items():
        path = [str(JOBS / job[0]), *job[1:]]
        record, out, err = recorded(name, path, seconds=150)
        baseline = record.get("baseline") or {}
        print(f"{name}: the script itself, after the window: {out.strip()[-60:]!r}")
        print(f"  step {record.get('step')}\n  before {baseline.get('before_ms')} after {baseline.get('after_ms')}")
        print(f"  window {record.get('window')}")
        print("  " + "\n  ".join(line for line in err.splitlines() if line.startswith("gapless")), flush=True)
    for name in ("trainer", "lightning"):
        folder = TRACES / f"{name}_callback"
        call([sys.executable, str(JOBS / f"train_{name}.py"), str(folder)], 150)
        print(f"{name} callback wrote", sorted(p.name for p in folder.glob("*.gz")), flush=True)


def ranks() -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29533"]
    flags = ["-m", "gapless", "run", "--no-report", "-o", str(TRACES / "ranks"), "--steps", "3"]
    out, err, _ = call([*command, *flags, str(JOBS / "two_ranks.py")], 120)
    print("ranks:", out.count("rank done"), "done;", sorted(p.name for p in (TRACES / "ranks").glob("*.gz")))
    print("  " + "\n  ".join(line for line in err.splitlines() if "gapless" in line)[:1500], flush=True)


def pairs() -> None:
    out, err, _ = call([sys.executable, str(ROOT / "benchmarks" / "pairs" / "models.py"), str(OUT / "pairs")], 240)
    print("pairs:\n" + out + err[-1500:], flush=True)


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--only", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--repeats", type=int, default=2, help="processes that time each case without the recorder")
    arguments = parser.parse_args()
    TRACES.mkdir(parents=True, exist_ok=True)
    parts = {
        "calibrate": calibrate, "models": models, "pairs": pairs,
        "cases": lambda: cases(arguments.cases, arguments.seconds, arguments.repeats),
        "neighbours": lambda: neighbours(arguments.cases, arguments.seconds),
        "alternate": lambda: alternate(arguments.cases, arguments.seconds),
        "ranks": ranks, "overhead": lambda: overhead(arguments.repeats),
    }  # fmt: skip
    for name, part in parts.items():
        if name in arguments.only:
            start = time.monotonic()
            try:
                part()
            except Exception as error:  # one part must not cost the others
                print(f"{name}: {type(error).__name__}: {error}", flush=True)
            print(
                f"[{name} took {time.monotonic() - start:.0f} s, {time.monotonic() - BEGAN:.0f} s in all]", flush=True
            )


if __name__ == "__main__":
    main()
