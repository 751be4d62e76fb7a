// Where is every lane on the page? Rows from top to bottom; a lane can be folded to its first row.
import { lowerBound, type Timeline } from "./model.ts";

export const AXIS = 26;
export const HEAD = 20;
export const ROW = 17;
export const STRIP = 24;
export const QUEUE = 30;
const SPACE = 8;
const DEEP = 4096;

export interface Row {
  lane: number;
  kind: "boxes" | "strip" | "queue";
  y: number;
  height: number;
  from: number;
  to: number;
}

export interface Head {
  lane: number;
  y: number;
  folded: boolean;
  hidden: number;
}

export interface Layout {
  rows: Row[];
  heads: Head[];
  height: number;
  boxRows: Map<number, Row>;
}

/** Index ranges of `[lane, depth]` rows in columns sorted by (lane, depth). */
export function rowRanges(t: Timeline): Map<string, [number, number]> {
  const ranges = new Map<string, [number, number]>();
  const { lane, depth } = t.boxes;
  for (let i = 0; i < lane.length; ) {
    const from = i;
    while (i < lane.length && lane[i] === lane[from] && depth[i] === depth[from]) i++;
    ranges.set(`${lane[from]}:${depth[from]}`, [from, i]);
  }
  return ranges;
}

/** Lay all lanes out, `limits` says how many rows of a lane are open (all if missing). */
export function layOut(t: Timeline, ranges: Map<string, [number, number]>, limits: Map<number, number>): Layout {
  const rows: Row[] = [];
  const heads: Head[] = [];
  const boxRows = new Map<number, Row>();
  let y = AXIS + 4;
  t.lanes.forEach((lane, index) => {
    const open = Math.min(lane.rows, limits.get(index) ?? lane.rows);
    heads.push({ lane: index, y, folded: open < lane.rows, hidden: lane.rows - open });
    y += HEAD;
    if (lane.kind === "device") {
      const [from, to] = span(t.strip.lane, index);
      rows.push({ lane: index, kind: "strip", y, height: STRIP, from, to });
      y += STRIP + 3;
      const [q0, q1] = span(t.queue.lane, index);
      if (q1 > q0) {
        rows.push({ lane: index, kind: "queue", y, height: QUEUE, from: q0, to: q1 });
        y += QUEUE;
      }
    } else {
      // Room for the marks of a comparison above the GPU's work.
      if (lane.kind === "stream") y += 4;
      for (let depth = 0; depth < open; depth++) {
        const range = ranges.get(`${index}:${depth}`) ?? [0, 0];
        const row: Row = { lane: index, kind: "boxes", y, height: ROW, from: range[0], to: range[1] };
        rows.push(row);
        boxRows.set(index * DEEP + depth, row);
        y += ROW + 1;
      }
    }
    y += SPACE;
  });
  return { rows, heads, height: y, boxRows };
}

function span(lanes: Int32Array, lane: number): [number, number] {
  return [lowerBound(lanes, lane, 0, lanes.length), lowerBound(lanes, lane + 1, 0, lanes.length)];
}

/** The row of a box in a layout, or null while its lane is folded. */
export function rowOf(t: Timeline, layout: Layout, box: number): Row | null {
  return layout.boxRows.get(t.boxes.lane[box] * DEEP + t.boxes.depth[box]) ?? null;
}
