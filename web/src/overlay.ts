// What is painted over the boxes: the critical chain, arrows, and frames around what is hovered or picked.
import { rowOf } from "./layout.ts";
import { lowerBound } from "./model.ts";
import type { Scene } from "./scene.ts";
import { toX } from "./view.ts";

const MANY_ARROWS = 160;

function x(s: Scene, time: number): number {
  return toX(s.view, s.width, time);
}

/** The pieces that decided the step's length, underlined and tied together. */
export function criticalChain(c: CanvasRenderingContext2D, s: Scene): void {
  const { start, dur, box } = s.t.chain;
  let last: { x: number; y: number } | null = null;
  c.strokeStyle = c.fillStyle = s.theme.chain;
  c.lineWidth = 1;
  const first = Math.max(0, lowerBound(start, s.view.start, 0, start.length) - 2);
  for (let i = first; i < start.length && start[i] < s.view.end; i++) {
    const row = box[i] < 0 ? null : rowOf(s.t, s.layout, box[i]);
    if (!row) {
      last = null;
      continue;
    }
    const x0 = x(s, start[i]);
    const x1 = Math.max(x0 + 1, x(s, start[i] + dur[i]));
    const y = row.y + row.height - 1.5;
    c.fillRect(Math.max(-2, x0), y - 1.5, Math.min(s.width + 2, x1) - Math.max(-2, x0), 3);
    if (last && Math.abs(last.y - y) > 2 && x0 > -50) {
      c.globalAlpha = 0.5;
      c.beginPath();
      c.moveTo(last.x, last.y);
      c.lineTo(x0, y);
      c.stroke();
      c.globalAlpha = 1;
    }
    last = { x: x1, y };
  }
}

/** All arrows while they are few, and always those of what is hovered or picked. */
export function links(c: CanvasRenderingContext2D, s: Scene): void {
  const { source, target, kind } = s.t.arrows;
  const { start } = s.t.boxes;
  const seen: number[] = [];
  for (let i = 0; i < source.length && seen.length <= MANY_ARROWS; i++) {
    const a = start[source[i]];
    const b = start[target[i]];
    if (Math.max(a, b) > s.view.start && Math.min(a, b) < s.view.end) seen.push(i);
  }
  if (seen.length <= MANY_ARROWS) for (const i of seen) arrow(c, s, source[i], target[i], kind[i], 0.28);
  for (const box of new Set([s.hovered, s.picked])) {
    if (box >= 0) for (const i of s.near(box)) arrow(c, s, source[i], target[i], kind[i], 0.95);
  }
}

function arrow(c: CanvasRenderingContext2D, s: Scene, from: number, to: number, kind: number, alpha: number): void {
  const a = rowOf(s.t, s.layout, from);
  const b = rowOf(s.t, s.layout, to);
  if (!a || !b) return;
  const { start, dur } = s.t.boxes;
  const x0 = x(s, kind === 1 ? start[from] + dur[from] : start[from] + dur[from] / 2);
  const x1 = x(s, kind === 1 ? start[to] + dur[to] : start[to]);
  const y0 = a.y + (b.y > a.y ? a.height : 0);
  const y1 = b.y + (b.y > a.y ? 0 : b.height);
  const bend = Math.sign(y1 - y0) * Math.min(60, Math.abs(y1 - y0) * 0.6);
  c.globalAlpha = alpha;
  c.strokeStyle = c.fillStyle = kind === 1 ? s.theme.chain : s.theme.pick;
  c.lineWidth = alpha > 0.5 ? 1.6 : 1;
  c.setLineDash(kind === 1 ? [4, 3] : []);
  c.beginPath();
  c.moveTo(x0, y0);
  c.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
  c.stroke();
  c.setLineDash([]);
  const tip = Math.sign(y1 - y0) * 5;
  c.beginPath();
  c.moveTo(x1, y1);
  c.lineTo(x1 - 3.2, y1 - tip);
  c.lineTo(x1 + 3.2, y1 - tip);
  c.fill();
  c.globalAlpha = 1;
}

/** A frame around one box. */
export function outline(c: CanvasRenderingContext2D, s: Scene, box: number, width: number): void {
  const row = box < 0 ? null : rowOf(s.t, s.layout, box);
  if (!row) return;
  const x0 = Math.max(-4, x(s, s.t.boxes.start[box]));
  const x1 = Math.min(s.width + 4, x(s, s.t.boxes.start[box] + s.t.boxes.dur[box]));
  c.strokeStyle = width > 1 ? s.theme.pick : s.theme.ink;
  c.lineWidth = width;
  c.strokeRect(x0 - width / 2, row.y - width / 2, Math.max(2, x1 - x0) + width, row.height + width);
}
