// How do two timelines stand above each other? On one scale, each with the work marked that the other does not have.
import type { Timeline } from "./model.ts";
import type { TimelinePanel } from "./timeline.ts";

const MARGIN = 0.04;

/** Names of the GPU's work. */
function workNames(t: Timeline): Set<string> {
  const { lane, name } = t.boxes;
  const names = new Set<string>();
  for (let i = 0; i < lane.length; i++) if (t.lanes[lane[i]].kind === "stream") names.add(t.strings[name[i]]);
  return names;
}

function mark(panel: TimelinePanel, own: Set<string>, other: Set<string>, gone: boolean): void {
  const { scene } = panel;
  scene.marks = new Uint8Array(scene.t.strings.length);
  scene.t.strings.forEach((text, i) => {
    if (own.has(text) && !other.has(text)) scene.marks![i] = 1;
  });
  scene.gone = gone;
}

/** Tie the two together: one scale, one movement, the difference marked. */
export function pair(before: TimelinePanel, after: TimelinePanel): void {
  const [left, right] = [workNames(before.scene.t), workNames(after.scene.t)];
  mark(before, left, right, true);
  mark(after, right, left, false);
  const [early, late] = [before.reach, after.reach];
  before.widen(late);
  after.widen(early);
  before.onMove = (view) => after.follow(view);
  after.onMove = (view) => before.follow(view);
  before.ownsHash = after.ownsHash = false;
  const longest = Math.max(before.step, after.step);
  before.setView({ start: before.zero - longest * MARGIN, end: before.zero + longest * (1 + MARGIN) });
}
