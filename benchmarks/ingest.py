"""How fast does gapless read a trace, and in how much memory? Ratios measured in turns in one run.

    python benchmarks/ingest.py [TRACE] [--rounds 3] [--linear 10,100,500,2500]

`least` is what anybody must do: unpack with isal and parse with pysimdjson. `process` is the wall time of a whole
process with its start and imports, `inside` that of the work alone, all libraries imported before; both the best of
the rounds. `--linear` reads files of so many MB of JSON, made of copies of the trace shifted in time. Memory is the
proportional set size of the process and its children together, looked at every 20 ms.
"""

from __future__ import annotations

import argparse
import gzip
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

BIG = Path(__file__).resolve().parents[2] / "shared" / "traces" / "h200" / "big.json.gz"

CLOCK = """
import sys, time
from pathlib import Path
from isal import igzip
begin = time.perf_counter()
{work}
print(time.perf_counter() - begin)
"""
LEAST = "import simdjson" + CLOCK.format(
    work="simdjson.Parser().parse(igzip.decompress(Path(sys.argv[1]).read_bytes()))"
)
UNPACK = CLOCK.format(work="igzip.decompress(Path(sys.argv[1]).read_bytes())")
READ = "from gapless import ingest, store" + CLOCK
FRESH = READ.format(work="ingest.read(sys.argv[1])")
WARM = "import polars, gapless.ingest.finish, gapless.store.entry\n"
ALONE = WARM + READ.format(work="ingest.read(sys.argv[1], fork=False)")
PAIR = WARM + READ.format(work="ingest.read(sys.argv[1])")
CACHED = WARM + READ.format(work="store.load(sys.argv[1], cache_dir=Path(sys.argv[2]))")
TIMES = re.compile(r'"ts": ([0-9.]+)')
IDS = re.compile(r'"(correlation|Python id|Python parent id)": ([0-9]+)')


@dataclass
class Cost:
    """Wall time of a process and of the work inside it, and the largest memory."""

    process: float
    inside: float
    bytes: int


def memory(pid: int) -> int:
    """Proportional set size of a process and its children, in bytes; 0 where it cannot be read."""
    total = 0
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            total += memory(int(child))
    except (OSError, ValueError):
        return total
    return total


def run(script: str, *args: str) -> Cost:
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", script, *args], stdout=subprocess.PIPE, text=True)
    most = 0
    while process.poll() is None:
        most = max(most, memory(process.pid))
        time.sleep(0.02)
    if process.returncode:
        raise SystemExit(f"failed: {script}")
    assert process.stdout is not None
    return Cost(time.perf_counter() - begin, float(process.stdout.read()), most)


def best(costs: list[Cost]) -> Cost:
    return Cost(min(c.process for c in costs), min(c.inside for c in costs), max(c.bytes for c in costs))


def moved(events: str, copy: int, window_us: int) -> str:
    """The events, so many windows later, with ids of their own."""
    if copy == 0:
        return events
    later = TIMES.sub(lambda found: f'"ts": {float(found[1]) + copy * window_us:.3f}', events)
    return IDS.sub(lambda found: f'"{found[1]}": {int(found[2]) + copy * 10_000_000}', later)


def shifted(trace: Path, megabytes: int, target: Path) -> int:
    """Write a trace of about so many MB: copies of the events, each later than the one before; returns its size."""
    text = gzip.decompress(trace.read_bytes()).decode()
    first, last = text.index('"traceEvents"'), text.rindex("]")
    begin = text.index("[", first) + 1
    events = text[begin:last]
    wanted = megabytes * 1_000_000
    if wanted < len(events):
        events = events[: events.index("\n  },\n  {", wanted) + 4]
    starts = [float(t) for t in TIMES.findall(events)]
    window = int(max(starts) - min(starts)) + 10_000
    size = 0
    with target.open("w") as file:
        size += file.write(text[:begin])
        for copy in range(max(1, round(wanted / len(events)))):
            size += file.write(("," if copy else "") + moved(events, copy, window))
        size += file.write(text[last:])
    return size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", nargs="?", type=Path, default=BIG)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--linear", default="", help="sizes in MB, such as 10,100,500,2500")
    options = parser.parse_args()
    trace = str(options.trace)
    data = options.trace.read_bytes()
    raw_bytes = len(gzip.decompress(data)) if data[:2] == b"\x1f\x8b" else len(data)

    with tempfile.TemporaryDirectory() as folder:
        run(CACHED, trace, folder)
        scripts = {"unpack": (UNPACK,), "least": (LEAST,), "read": (FRESH,), "read, warm": (PAIR,),
                   "read, one process": (ALONE,), "cached, warm": (CACHED, folder)}  # fmt: skip
        costs: dict[str, list[Cost]] = {name: [] for name in scripts}
        for _ in range(options.rounds):
            for name, (script, *args) in scripts.items():
                costs[name].append(run(script, trace, *args))
        found = {name: best(several) for name, several in costs.items()}
        least = found["least"]
        print(f"{options.trace.name}: {raw_bytes / 1e6:.0f} MB of JSON, best of {options.rounds}")
        print(f"{'':20}{'process':>9}{'of least':>10}{'inside':>9}{'of least':>10}{'memory':>12}{'of JSON':>9}")
        for name, cost in found.items():
            print(
                f"{name:20}{cost.process:8.2f}s{cost.process / least.process:9.2f}x"
                f"{cost.inside:8.2f}s{cost.inside / least.inside:9.2f}x"
                f"{cost.bytes / 1e6:9.0f} MB{cost.bytes / raw_bytes:8.2f}x"
            )
        times = found["read, warm"].inside / found["cached, warm"].inside
        print(f"a second read is {times:.1f} times faster than the first", flush=True)

        for megabytes in [int(size) for size in options.linear.split(",") if size]:
            target = Path(folder) / "copies.json"
            size = shifted(options.trace, megabytes, target)
            cost = run(FRESH, str(target))
            print(
                f"{size / 1e6:6.0f} MB: {cost.process:7.2f} s, {size / 1e6 / cost.process:5.0f} MB/s, "
                f"memory {cost.bytes / 1e6:5.0f} MB, {cost.bytes / size:5.2f}x of the JSON",
                flush=True,
            )


if __name__ == "__main__":
    main()
