"""How fast and how large is `gapless report`? Ratios of whole processes, measured in turns in one run.

    python benchmarks/report_speed.py [TRACE] [--rounds 3] [--linear 10,160,640] [--hta]

Compares with the least that anybody can do (unpack with isal, parse with pysimdjson), with a second read through the
cache, and with `--hta` with HolisticTraceAnalysis 0.5.0 merely loading the file (installed into a folder of its own).
A ratio is the median of those of the rounds. `CPU` is user and system time of the process and its workers: on a
machine that does other things too it says more than the clock. `--linear` reports on files of so many MB of JSON, made
of copies of the trace shifted in time, to see whether cost stays linear.
Memory is the proportional set size of the process and its children, looked at every 20 ms.
"""

from __future__ import annotations

import argparse
import gzip
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass, field
from pathlib import Path

from ingest import memory, shifted

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
    """What one kind of process took, round by round."""

    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)

    def line(self, name: str, least: Runs, raw_bytes: int) -> str:
        """One row of the table."""
        took, cpu = statistics.median(self.seconds), statistics.median(self.cpu)
        ratio = statistics.median(a / b for a, b in zip(self.seconds, least.seconds, strict=False))
        of_cpu = statistics.median(a / b for a, b in zip(self.cpu, least.cpu, strict=False))
        held = max(self.bytes)
        return (
            f"{name:<30}{took:7.2f} s{ratio:7.2f}{cpu:9.2f} s{of_cpu:7.2f}{held / 1e6:9.0f} MB{held / raw_bytes:7.2f}"
        )


def run(runs: Runs, *command: str | Path, watch: bool = False) -> None:
    """Run one process to its end and note what it took: its memory if it is watched, which slows it, else its time."""
    start = time.perf_counter()
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL)
    peak = 0
    pid = 0
    while watch and not pid:
        peak = max(peak, memory(process.pid))
        time.sleep(0.02)
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
    if not watch:
        pid, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} failed with {process.returncode}")
    if watch:
        runs.bytes.append(peak)
    else:
        runs.seconds.append(seconds)
        runs.cpu.append(used.ru_utime + used.ru_stime)


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
    parser.add_argument("--linear", default="", help="sizes in MB, such as 10,160,640")
    parser.add_argument("--hta", action="store_true")
    args = parser.parse_args()
    if not args.trace.exists():
        raise SystemExit(f"{args.trace}: not here; name a large trace of your own")
    data = args.trace.read_bytes()
    raw_bytes = len(gzip.decompress(data)) if data[:2] == b"\x1f\x8b" else len(data)
    gapless = [sys.executable, "-m", "gapless", "report", "--format", "json"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        least, report, again, other = Runs(), Runs(), Runs(), Runs()
        run(Runs(), *gapless, args.trace, "--cache-dir", folder / "cache")
        for number in range(args.rounds + 1):
            watch = number == 0
            run(least, sys.executable, "-c", LEAST, args.trace, watch=watch)
            run(report, *gapless, args.trace, "--no-cache", watch=watch)
            run(again, *gapless, args.trace, "--cache-dir", folder / "cache", watch=watch)
        if args.hta:
            run(other, hta_python(), "-c", HTA, args.trace)
            run(other, hta_python(), "-c", HTA, args.trace, watch=True)
        print(f"{args.trace.name}: {raw_bytes / 1e6:.0f} MB of JSON; median of {args.rounds} rounds\n")
        print(f"{'process':<30}{'time':>9}{'ratio':>7}{'CPU':>11}{'ratio':>7}{'peak':>12}{'/ JSON':>7}")
        print(least.line("isal + pysimdjson, the least", least, raw_bytes))
        print(report.line("gapless report --no-cache", least, raw_bytes))
        print(again.line("gapless report, second time", least, raw_bytes))
        if other.seconds:
            print(other.line("HTA 0.5.0, loading alone", least, raw_bytes))
            faster = other.seconds[0] / statistics.median(report.seconds)
            print(f"\ngapless reports {faster:.1f} times faster than HTA loads")
        for megabytes in [int(size) for size in args.linear.split(",") if size]:
            size = shifted(args.trace, megabytes, folder / "copies.json")
            one = Runs()
            run(one, *gapless, folder / "copies.json", "--no-cache")
            run(one, *gapless, folder / "copies.json", "--no-cache", watch=True)
            print(
                f"{size / 1e6:6.0f} MB: {one.seconds[0]:7.2f} s, CPU {one.cpu[0]:7.2f} s or "
                f"{one.cpu[0] / size * 1e9:5.1f} ms a MB, peak {one.bytes[0] / size:5.2f} of the JSON",
                flush=True,
            )


if __name__ == "__main__":
    main()
