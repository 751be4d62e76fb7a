// What lies at a point, and which boxes have a name like this?
import { AXIS, HEAD, type Layout } from "./layout.ts";
import { lowerBound, type Timeline } from "./model.ts";
import { toTime, type View } from "./view.ts";

export type Hit =
  | { kind: "box" | "strip" | "queue"; index: number }
  | { kind: "head"; index: number }
  | null;

const NEAR = 3;

/** What is under the point `(x, y)`; y counts from the top of the scrolled content. Near misses of thin boxes count. */
export function hitTest(t: Timeline, layout: Layout, view: View, width: number, x: number, y: number): Hit {
  if (y < AXIS) return null;
  for (const head of layout.heads) if (y >= head.y && y < head.y + HEAD) return { kind: "head", index: head.lane };
  const row = layout.rows.find((r) => y >= r.y - 1 && y < r.y + r.height + 1);
  if (!row) return null;
  const time = toTime(view, width, x);
  if (row.kind === "queue") {
    const i = lowerBound(t.queue.time, time, row.from, row.to) - 1;
    return i >= row.from ? { kind: "queue", index: i } : null;
  }
  const { start, dur } = row.kind === "boxes" ? t.boxes : t.strip;
  const after = lowerBound(start, time, row.from, row.to);
  const slack = ((view.end - view.start) / width) * NEAR;
  const kind = row.kind === "boxes" ? "box" : "strip";
  if (after > row.from && time <= start[after - 1] + dur[after - 1]) return { kind, index: after - 1 };
  const before = after > row.from ? time - start[after - 1] - dur[after - 1] : Infinity;
  const ahead = after < row.to ? start[after] - time : Infinity;
  if (Math.min(before, ahead) > slack) return null;
  return { kind, index: before <= ahead ? after - 1 : after };
}

export interface Found {
  names: Uint8Array;
  boxes: Int32Array;
}

/** Boxes whose name holds every word of the query, in time order; null for an empty query. */
export function search(t: Timeline, query: string): Found | null {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return null;
  const names = new Uint8Array(t.strings.length);
  t.strings.forEach((text, i) => {
    const low = text.toLowerCase();
    if (words.every((w) => low.includes(w))) names[i] = 1;
  });
  const { name, start } = t.boxes;
  const list: number[] = [];
  for (let i = 0; i < name.length; i++) if (names[name[i]] === 1) list.push(i);
  list.sort((a, b) => start[a] - start[b]);
  return { names, boxes: Int32Array.from(list) };
}

/** For each box the arrows that touch it. */
export class ArrowIndex {
  private readonly first: Int32Array;
  private readonly list: Int32Array;

  constructor(t: Timeline) {
    const { source, target } = t.arrows;
    const count = new Int32Array(t.boxes.start.length + 1);
    for (let i = 0; i < source.length; i++) {
      count[source[i] + 1]++;
      count[target[i] + 1]++;
    }
    for (let i = 1; i < count.length; i++) count[i] += count[i - 1];
    this.first = count.slice();
    this.list = new Int32Array(source.length * 2);
    for (let i = 0; i < source.length; i++) {
      this.list[count[source[i]]++] = i;
      this.list[count[target[i]]++] = i;
    }
  }

  of = (box: number): number[] => [...this.list.subarray(this.first[box], this.first[box + 1])];
}

/** The box to step to from one with an arrow key: beside it in its row, or above and below at the same time. */
export function neighbour(t: Timeline, layout: Layout, box: number, key: string): number {
  const rows = layout.rows.filter((r) => r.kind === "boxes" && r.to > r.from);
  const at = rows.findIndex((r) => box >= r.from && box < r.to);
  if (at < 0) return rows.length ? rows[0].from : -1;
  if (key === "ArrowRight") return Math.min(box + 1, rows[at].to - 1);
  if (key === "ArrowLeft") return Math.max(box - 1, rows[at].from);
  const row = rows[at + (key === "ArrowDown" ? 1 : -1)];
  if (!row) return box;
  const middle = t.boxes.start[box] + t.boxes.dur[box] / 2;
  return Math.max(row.from, lowerBound(t.boxes.start, middle, row.from, row.to) - 1);
}
