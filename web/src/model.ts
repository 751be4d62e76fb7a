// What the page knows of a timeline: typed arrays of one length per group, text interned in `strings`.

export interface Lane {
  kind: "device" | "stream" | "thread";
  name: string;
  device: number;
  rows: number;
  role: string;
}

export interface Range {
  name: string;
  start: number;
  end: number;
  used: boolean;
}

export interface Boxes {
  start: Float64Array;
  dur: Float64Array;
  lane: Int32Array;
  depth: Int32Array;
  kind: Int32Array;
  name: Int32Array;
  words: Int32Array;
  facts: Int32Array;
}

export interface Strip {
  lane: Int32Array;
  start: Float64Array;
  dur: Float64Array;
  state: Int32Array;
  cause: Int32Array;
  doing: Int32Array;
}

export interface Place {
  finding: number;
  start: number;
  dur: number;
  box: number;
}

export interface Overview {
  start: number;
  end: number;
  families: string[];
  shares: Int32Array[];
}

export interface Timeline {
  strings: string[];
  lanes: Lane[];
  steps: Range[];
  shown: Range[];
  places: Place[];
  focus: number;
  notes: string[];
  boxes: Boxes;
  arrows: { source: Int32Array; target: Int32Array; kind: Int32Array };
  strip: Strip;
  queue: { lane: Int32Array; time: Float64Array; depth: Int32Array };
  chain: { start: Float64Array; dur: Float64Array; box: Int32Array };
  overview: Overview | null;
}

export interface Palette {
  families: Record<string, string>;
  titles: Record<string, string>;
  states: Record<string, string>;
  causes: Record<string, string>;
  boxes: Record<string, string>;
  words: Record<string, string>;
}

/** Index of the first element of `values[from..to)` that is not below `x`. */
export function lowerBound(values: ArrayLike<number>, x: number, from: number, to: number): number {
  while (from < to) {
    const mid = (from + to) >>> 1;
    if (values[mid] < x) from = mid + 1;
    else to = mid;
  }
  return from;
}

/** The extent of everything that carries boxes. */
export function extent(t: Timeline): [number, number] {
  const ranges = t.shown.length ? t.shown : t.steps;
  let low = Infinity;
  let high = -Infinity;
  for (const r of ranges) {
    low = Math.min(low, r.start);
    high = Math.max(high, r.end);
  }
  return low < high ? [low, high] : [0, 1000];
}

/** The colour of a box's kind. */
export function boxColour(palette: Palette, kind: string): string {
  return palette.boxes[kind] ?? palette.boxes[kind.startsWith("kernel") ? "kernel:other" : "op"];
}

/** The family of a device's state, or of the cause of its idle time. */
export function family(palette: Palette, state: string, cause: string): string {
  return (state === "idle" ? palette.causes[cause] : palette.states[state]) ?? "unknown";
}
