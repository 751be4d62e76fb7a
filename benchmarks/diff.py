"""How long does `gapless diff` take, against two reports? Whole processes, measured in turns in one run.

    python benchmarks/diff.py [TRACE] [--rounds 3]

Compares the trace with a copy of itself whose content hash differs, so that nothing is skipped for being the same file.
The goal is at most 1.3 times the time of two reports.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIG = ROOT.parent / "shared" / "traces" / "h200" / "big.json.gz"


def seconds(*words: str | Path) -> float:
    """How long one `gapless` process takes."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "gapless", *map(str, words)], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", nargs="?", type=Path, default=BIG)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if not args.trace.exists():
        raise SystemExit(f"{args.trace}: not here; name a large trace of your own")
    flags = ("--no-cache", "--format", "json")
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "after.json.gz"
        other.write_bytes(args.trace.read_bytes() + gzip.compress(b"\n"))
        reports, diffs = [], []
        for _ in range(args.rounds):
            reports.append(seconds("report", args.trace, *flags) + seconds("report", other, *flags))
            diffs.append(seconds("diff", args.trace, other, *flags))
    two, one = statistics.median(reports), statistics.median(diffs)
    print(f"{args.trace.name}, median of {args.rounds} rounds")
    print(f"two reports {two:6.2f} s")
    print(f"one diff    {one:6.2f} s   {one / two:.2f} of two reports")


if __name__ == "__main__":
    main()
