"""What does a page cost: to write for a large trace, to open, and to redraw with half a million boxes?

    python benchmarks/page_speed.py [TRACE] [--boxes 500000] [--redraws 40]

Writing is measured in this process, after the report. Opening and drawing are measured in headless Chromium, which has
no GPU here and so draws in software; the views go from everything down to a thousandth of it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from gapless import api
from gapless.analyses.timeline import timeline
from gapless.model.timeline import Boxes, Lane, Range, Timeline
from gapless.render.html import render_html
from gapless.tables.columns import packed

ROOT = Path(__file__).resolve().parents[1]
BIG = ROOT.parent / "shared" / "traces" / "h200" / "big.json.gz"
LANES, DEPTHS = 6, 8

SCRIPT = """
import { pathToFileURL } from "node:url";
import { ready, withBrowser, finish } from "%s";
const [chromium, redraws, ...files] = process.argv.slice(2);
finish(await withBrowser(chromium, async (open) => {
  const out = [];
  for (const file of files) {
    const { page, context } = await open(pathToFileURL(file).href);
    await ready(page);
    out.push(await page.evaluate((redraws) => {
      const panel = window.gapless.panels[0];
      const reach = panel.reach;
      const times = [];
      for (let i = 0; i < redraws; i++) {
        const span = (reach.end - reach.start) * 10 ** (-3 * (i %% 8) / 7);
        const middle = panel.zero + reach.start + (reach.end - reach.start) * (0.2 + 0.6 * ((i * 0.37) %% 1));
        panel.setView({ start: middle - span / 2, end: middle + span / 2 });
        times.push(panel.redrawNow());
      }
      const shown = performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null;
      return { readyMs: window.gapless.readyMs, firstPaintMs: shown, times };
    }, Number(redraws)));
    await context.close();
  }
  return out;
}));
"""


def synthetic(boxes: int) -> Timeline:
    """Lanes full of boxes whose lengths spread over four powers of ten, as recordings' do."""
    rows = LANES * DEPTHS
    each = boxes // rows
    random = np.random.default_rng(1)
    dur = np.exp(random.uniform(np.log(500), np.log(5_000_000), (rows, each))).astype(np.int64)
    start = np.cumsum(dur + 200, axis=1) - dur
    start = (start / start[:, -1:] * 2e9).astype(np.int64)
    dur = np.minimum(dur, np.diff(start, axis=1, append=start[:, -1:] + 10**6))
    lane, depth = np.divmod(np.repeat(np.arange(rows), each), DEPTHS)
    zero = np.zeros(lane.size, dtype=np.int64)
    names = random.integers(1, 400, lane.size)
    columns = (start.ravel(), dur.ravel(), lane, depth, zero + 401, names, zero, zero)
    end = int((start + dur).max())
    return Timeline(
        strings=["", *(f"aten::operator_{i}" for i in range(400)), "op"],
        lanes=[Lane("thread", f"thread {i}", -1, DEPTHS) for i in range(LANES)],
        steps=[Range("step", 0, end)],
        shown=[Range("step", 0, end)],
        boxes=Boxes(*(packed(values) for values in columns)),
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", nargs="?", type=Path, default=BIG)
    parser.add_argument("--boxes", type=int, default=500_000)
    parser.add_argument("--redraws", type=int, default=40)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = []
        trace = api.load(args.trace)
        view = api.report(trace)
        for name, full in (("default", False), ("full", True)):
            before = time.perf_counter()
            drawn = timeline(trace.study(), view.report.findings, full=full)
            page = render_html(view.report, drawn, full=full)
            took = time.perf_counter() - before
            print(
                f"{name:<10} page of {args.trace.name}: {took:.2f} s beside the report, {len(page) / 1e6:.2f} MB, "
                f"{len(drawn.boxes.lane)} boxes"
            )
            files.append(Path(folder, f"{name}.html"))
            files[-1].write_text(page, "utf-8")
        files.append(Path(folder, "synthetic.html"))
        page = render_html(view.report, synthetic(args.boxes), full=True)
        print(f"synthetic  page: {len(page) / 1e6:.2f} MB, {args.boxes} boxes")
        files[-1].write_text(page, "utf-8")
        script = Path(folder, "measure.mjs")
        script.write_text(SCRIPT % (ROOT / "tests" / "web" / "chromium.mjs").as_uri())
        command = ["node", str(script), shutil.which("chromium") or "chromium", str(args.redraws), *map(str, files)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    for file, seen in zip(files, json.loads(done.stdout.splitlines()[-1]), strict=True):
        times = sorted(seen["times"])
        print(
            f"{file.stem:<10} first paint {seen['firstPaintMs'] or float('nan'):.0f} ms, "
            f"timeline ready {seen['readyMs']:.0f} ms after the script's start, "
            f"redraw median {times[len(times) // 2]:.1f} ms, worst {times[-1]:.1f} ms"
        )


if __name__ == "__main__":
    main()
