// What stands under the timeline about the thing that was clicked, with ways to go on from there.
import { describe, type Description } from "./describe.ts";
import { button, el } from "./dom.ts";
import type { Hit } from "./find.ts";
import type { Scene } from "./scene.ts";
import { around, type View } from "./view.ts";

const MOST_LINKS = 6;

/** What the detail pane can ask the timeline to do. */
export interface Guide {
  setView(view: View): void;
  pick(box: number): void;
  find(query: string): void;
}

/** A description as elements. */
function paragraphs(said: Description): HTMLElement[] {
  const out = [
    el("p", { class: "what" }, el("strong", {}, said.title), " ", el("span", { class: "soft" }, said.kind)),
    el("p", { class: "when" }, said.time),
  ];
  if (said.words) out.push(el("p", { class: "why" }, said.words));
  if (said.facts.length) {
    const list = el("dl");
    for (const [key, value] of said.facts) list.append(el("dt", {}, key), el("dd", {}, value));
    out.push(list);
  }
  return out;
}

/** Fill the pane for what was hit. */
export function explain(pane: HTMLElement, scene: Scene, hit: Hit, guide: Guide): void {
  const said = describe(scene.t, scene.palette, hit, scene.zero);
  pane.replaceChildren();
  if (!said || !hit) {
    pane.append(el("p", { class: "soft" }, "Click anything to read what it is and why it is there."));
    return;
  }
  pane.append(...paragraphs(said));
  if (hit.kind === "box") pane.append(waysOn(scene, hit.index, guide));
}

/** What hover says, beside the pointer and within the stage. */
export function showTip(tip: HTMLElement, stage: HTMLElement, scene: Scene, hit: Hit, at: PointerEvent): void {
  const said = describe(scene.t, scene.palette, hit, scene.zero);
  tip.hidden = !said;
  if (!said) return;
  tip.replaceChildren(...paragraphs({ ...said, facts: [] }));
  const frame = stage.getBoundingClientRect();
  const [x, y] = [at.clientX - frame.left, at.clientY - frame.top];
  const below = y + 18 + tip.offsetHeight <= frame.height + 60;
  tip.style.left = `${Math.max(4, Math.min(x + 14, frame.width - tip.offsetWidth - 4))}px`;
  tip.style.top = `${below ? y + 18 : y - tip.offsetHeight - 12}px`;
}

function waysOn(scene: Scene, box: number, guide: Guide): HTMLElement {
  const { t } = scene;
  const { start, dur, name } = t.boxes;
  const acts = el("p", { class: "acts" });
  acts.append(button("zoom to it", () => guide.setView(around(start[box], start[box] + dur[box], 0.6))));
  const { source, target, kind } = t.arrows;
  const linked = scene.near(box);
  for (const i of linked.slice(0, MOST_LINKS)) {
    const leads = source[i] === box;
    const other = leads ? target[i] : source[i];
    const verb = kind[i] === 1 ? (leads ? "waited for" : "waited for by") : leads ? "launched" : "launched by";
    acts.append(button(`${verb} ${short(t.strings[name[other]])}`, () => guide.pick(other)));
  }
  if (linked.length > MOST_LINKS) acts.append(el("span", { class: "soft" }, `and ${linked.length - MOST_LINKS} more`));
  acts.append(button("find all of this name", () => guide.find(t.strings[name[box]])));
  return acts;
}

function short(text: string): string {
  return text.length > 48 ? text.slice(0, 47) + "…" : text;
}
