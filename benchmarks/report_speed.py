"""How fast and how large is `gapless report`? Ratios of whole processes, measured in turns in one run.

    python benchmarks/report_speed.py [TRACE] [--rounds 3] [--copies 1] [--hta]

Compares with the least that anybody can do (unpack with isal, parse with pysimdjson), with a second read through the
cache, and with `--hta` with HolisticTraceAnalysis 0.5.0 merely loading the file (installed into a folder of its own).
`--copies N` makes a file N times as large out of shifted copies of the trace, to see whether cost stays linear.
Memory is the proportional set size of the process and its children, looked at every 20 ms.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIG = ROOT.parent / "shared" / "traces" / "h200" / "big.json.gz"

LEAST = """
import sys, simdjson
from isal import igzip
with igzip.open(sys.argv[1], "rb") as f:
    document = simdjson.Parser().parse(f.read())
print(len(document["traceEvents"]))
"""

HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="")
"""


@dataclass
class Runs:
    """What one kind of process took."""

    seconds: list[float] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)

    def line(self, name: str, unit_s: float, raw_bytes: int) -> str:
        """One row of the table."""
        took, held = statistics.median(self.seconds), max(self.bytes)
        return f"{name:<34}{took:8.2f} s{took / unit_s:8.2f}{held / 1e6:10.0f} MB{held / raw_bytes:8.2f}"


def pss_bytes(pid: int) -> int:
    """Proportional set size of a process and its descendants; 0 for what is gone."""
    total = 0
    try:
        for row in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if row.startswith("Pss:"):
                total += int(row.split()[1]) * 1024
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return total
    return total + sum(pss_bytes(int(child)) for child in children)


def run(runs: Runs, *command: str | Path) -> None:
    """Run one process to its end and note what it took."""
    start = time.perf_counter()
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        peak = max(peak, pss_bytes(process.pid))
        time.sleep(0.02)
    if process.returncode:
        raise SystemExit(f"{command[0]} failed with {process.returncode}")
    runs.seconds.append(time.perf_counter() - start)
    runs.bytes.append(peak)


def copies(trace: Path, times: int, folder: Path) -> tuple[Path, int]:
    """The trace `times` over, each copy after the one before it, gzipped; and its size as JSON text."""
    raw = gzip.decompress(trace.read_bytes()) if trace.suffix == ".gz" else trace.read_bytes()
    if times == 1:
        return trace, len(raw)
    document = json.loads(raw)
    events = document["traceEvents"]
    stamps = [e["ts"] for e in events if e.get("ph") == "X"]
    span = max(stamps) - min(stamps) + 1e4
    target, size = folder / "copies.json.gz", 0
    with gzip.open(target, "wt", compresslevel=1, encoding="utf-8") as out:
        head = json.dumps({k: v for k, v in document.items() if k != "traceEvents"})[:-1]
        size += out.write(head + ', "traceEvents": [\n')
        for copy in range(times):
            for i, event in enumerate(events):
                moved = event | {"ts": event["ts"] + copy * span} if "ts" in event else event
                args = event.get("args", {})
                if copy and "correlation" in args:
                    moved["args"] = args | {"correlation": args["correlation"] + copy * 10_000_000}
                size += out.write((",\n" if copy or i else "") + json.dumps(moved))
        size += out.write("\n]}\n")
    return target, size


def hta_python() -> Path:
    """A Python with HolisticTraceAnalysis, made once inside .venv."""
    home = ROOT / ".venv" / "hta"
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
        packages = ["HolisticTraceAnalysis==0.5.0", "pandas<3"]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    return python


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", nargs="?", type=Path, default=BIG)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--hta", action="store_true")
    args = parser.parse_args()
    if not args.trace.exists():
        raise SystemExit(f"{args.trace}: not here; name a large trace of your own")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trace, raw_bytes = copies(args.trace, args.copies, folder)
        least, report, again, other = Runs(), Runs(), Runs(), Runs()
        gapless = [sys.executable, "-m", "gapless", "report", trace, "--format", "json"]
        run(Runs(), *gapless, "--cache-dir", folder / "cache")
        for _ in range(args.rounds):
            run(least, sys.executable, "-c", LEAST, trace)
            run(report, *gapless, "--no-cache")
            run(again, *gapless, "--cache-dir", folder / "cache")
        if args.hta:
            run(other, hta_python(), "-c", HTA, trace)
    unit = statistics.median(least.seconds)
    print(f"{args.trace.name} x {args.copies}: {raw_bytes / 1e6:.0f} MB of JSON; median of {args.rounds} rounds\n")
    print(f"{'process':<34}{'time':>10}{'ratio':>8}{'peak':>13}{'/ JSON':>8}")
    print(least.line("isal + pysimdjson, the least", unit, raw_bytes))
    print(report.line("gapless report --no-cache", unit, raw_bytes))
    print(again.line("gapless report, second time", unit, raw_bytes))
    if other.seconds:
        print(other.line("HTA 0.5.0, loading alone", unit, raw_bytes))
        faster = other.seconds[0] / statistics.median(report.seconds)
        print(f"\ngapless reports {faster:.1f} times faster than HTA loads")


if __name__ == "__main__":
    main()
