// A timeline small enough to know by heart: a device, a stream and a thread.
import type { Timeline } from "../src/model";

export function example(): Timeline {
  const ints = (...values: number[]) => Int32Array.from(values);
  const times = (...values: number[]) => Float64Array.from(values);
  return {
    strings: ["", "kernel:gemm", "gemm", "op", "aten::mm", "aten::add", "compute", "idle", "dispatch", "It waits for 2 ms.", "bytes: 4\nvalues: a: b"],
    lanes: [
      { kind: "device", name: "GPU 0", device: 0, rows: 1, role: "" },
      { kind: "stream", name: "stream 7", device: 0, rows: 1, role: "" },
      { kind: "thread", name: "main", device: -1, rows: 1, role: "host" },
    ],
    steps: [{ name: "step", start: 0, end: 1_000, used: true }],
    shown: [{ name: "step", start: 0, end: 1_000 , used: true }],
    places: [],
    focus: 0,
    notes: [],
    boxes: {
      start: times(100, 100, 500), dur: times(100, 200, 300), lane: ints(1, 2, 2), depth: ints(0, 0, 0),
      kind: ints(1, 3, 3), name: ints(2, 4, 5), words: ints(0, 0, 9), facts: ints(0, 0, 10),
    },
    arrows: { source: ints(1, 2), target: ints(0, 1), kind: ints(0, 1) },
    strip: { lane: ints(0, 0), start: times(0, 400), dur: times(400, 600), state: ints(6, 7), cause: ints(0, 8), doing: ints(0, 4) },
    queue: { lane: ints(0, 0), time: times(0, 500), depth: ints(0, 2) },
    chain: { start: times(), dur: times(), box: ints() },
    overview: null,
  };
}
