// How does a reader move through the timeline? Wheel, drag, pinch and keys; hover and click explain.
import { describe, type Description } from "./describe.ts";
import { button, copyText, el, flash } from "./dom.ts";
import { Painter, type Scene } from "./draw.ts";
import { ArrowIndex, hitTest, neighbour, search, type Found, type Hit } from "./find.ts";
import { AXIS, layOut, rowOf, rowRanges } from "./layout.ts";
import { extent, type Palette, type Timeline } from "./model.ts";
import { OverviewMap } from "./overview.ts";
import { readTheme } from "./theme.ts";
import { around, clamp, pan, toHash, toTime, zoom, type View } from "./view.ts";
import { duration } from "./words.ts";

const OPEN_ROWS = 10;
const TALLEST = 620;
const CLICK_SLACK = 4;
/** Share of a step that is shown on each side of a finding's place. */
const CONTEXT = 0.02;

export class TimelinePanel {
  /** Told whenever the view moves, in time since the panel's zero, so that two panels can move together. */
  onMove: ((view: View) => void) | null = null;
  /** False in a page with two timelines, where a hash would not say which is meant. */
  ownsHash = true;

  private readonly scene: Scene;
  private readonly painter: Painter;
  private readonly map: OverviewMap | null;
  private readonly ranges: Map<string, [number, number]>;
  private readonly limits = new Map<number, number>();
  private bounds: [number, number];
  private readonly stage: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly tip: HTMLElement;
  private readonly detail: HTMLElement;
  private readonly status: HTMLElement;
  private readonly input: HTMLInputElement;
  private found: Found | null = null;
  private foundAt = -1;
  private pending = 0;
  private place = -1;
  /** The address stays as it was until the reader has moved. */
  private moved = false;

  constructor(private readonly root: HTMLElement, private readonly t: Timeline, private readonly palette: Palette) {
    const get = <T extends HTMLElement>(name: string) => root.querySelector<T>(`[data-tl=${name}]`)!;
    this.stage = get("stage");
    this.canvas = get<HTMLCanvasElement>("canvas");
    this.tip = get("tip");
    this.detail = get("detail");
    this.status = get("status");
    this.input = get<HTMLInputElement>("search");
    this.ranges = rowRanges(t);
    t.lanes.forEach((lane, i) => {
      if (lane.rows > OPEN_ROWS) this.limits.set(i, OPEN_ROWS);
    });
    this.bounds = extent(t);
    const focus = t.steps[t.focus] ?? { start: this.bounds[0], end: this.bounds[1] };
    const arrows = new ArrowIndex(t);
    const context = this.canvas.getContext("2d", { alpha: false })!;
    this.scene = {
      t, palette, theme: readTheme(root), layout: layOut(t, this.ranges, this.limits),
      view: clamp(around(focus.start, focus.end, 0.04), ...this.bounds), zero: focus.start,
      width: 0, height: 0, scroll: 0, ratio: 1, picked: -1, hovered: -1, matches: null, marks: null, gone: false,
      chain: t.chain.start.length > 0, arrows: true, near: arrows.of,
    };
    this.painter = new Painter(context, this.scene);
    const map = get<HTMLCanvasElement>("map");
    map.hidden = !t.overview;
    this.map = t.overview ? new OverviewMap(map, t, palette, (middle) => this.centre(middle)) : null;
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.stage);
    for (const query of ["(prefers-color-scheme: dark)", "print"]) {
      matchMedia(query).addEventListener("change", () => {
        this.scene.theme = readTheme(root);
        this.redrawNow();
      });
    }
    this.resize();
  }

  get view(): View {
    return this.scene.view;
  }

  /** Milliseconds that one full redraw takes; for benchmarks. */
  redrawNow(): number {
    const before = performance.now();
    this.painter.paint();
    this.map?.paint(this.scene.view, this.scene.ratio);
    return performance.now() - before;
  }

  setView(view: View, tell = true): void {
    this.scene.view = clamp(view, ...this.bounds);
    this.redraw();
    if (tell && this.onMove) this.onMove({ start: this.scene.view.start - this.scene.zero, end: this.scene.view.end - this.scene.zero });
  }

  /** Follow another panel's view, given in time since zero. */
  follow(view: View): void {
    this.scene.view = { start: view.start + this.scene.zero, end: view.end + this.scene.zero };
    this.redraw();
  }

  /** What can be shown, in time since zero. */
  get reach(): View {
    return { start: this.bounds[0] - this.scene.zero, end: this.bounds[1] - this.scene.zero };
  }

  /** The instant that the axis calls zero. */
  get zero(): number {
    return this.scene.zero;
  }

  /** Length of the step that is shown first. */
  get step(): number {
    const step = this.t.steps[this.t.focus];
    return step ? step.end - step.start : this.bounds[1] - this.bounds[0];
  }

  /** Names of the GPU's work that this panel has. */
  workNames(): Set<string> {
    const { lane, name } = this.t.boxes;
    const names = new Set<string>();
    for (let i = 0; i < lane.length; i++) if (this.t.lanes[lane[i]].kind === "stream") names.add(this.t.strings[name[i]]);
    return names;
  }

  /** Stand beside another panel: the same time scale, and a mark on work whose name the other does not have. */
  beside(other: { reach: View; names: Set<string> }, gone: boolean): void {
    const { start, end } = this.reach;
    this.bounds = [Math.min(start, other.reach.start) + this.scene.zero, Math.max(end, other.reach.end) + this.scene.zero];
    const marks = new Uint8Array(this.t.strings.length);
    for (const name of this.workNames()) if (!other.names.has(name)) marks[this.t.strings.indexOf(name)] = 1;
    this.scene.marks = marks;
    this.scene.gone = gone;
    this.redraw();
  }

  pick(box: number): void {
    this.scene.picked = box;
    if (box >= 0) this.reveal(box);
    this.explain(box < 0 ? null : { kind: "box", index: box });
    this.redraw();
  }

  /** Show where a finding happens; false if this page carries no place of it. */
  goToFinding(finding: number): boolean {
    const places = this.t.places.filter((p) => p.finding === finding);
    if (!places.length) return false;
    this.place = this.t.places.indexOf(places[0]);
    this.moved = true;
    this.goToPlace(this.place);
    return true;
  }

  goTo(view: View, box: number): void {
    this.setView(view);
    this.pick(box < this.t.boxes.start.length ? box : -1);
  }

  fit(): void {
    const step = this.t.steps[this.t.focus];
    this.setView(step ? around(step.start, step.end, 0.04) : { start: this.bounds[0], end: this.bounds[1] });
  }

  private goToPlace(at: number): void {
    const place = this.t.places[at];
    if (!place) return;
    const end = place.start + place.dur;
    const step = this.t.steps[this.t.focus];
    const context = Math.max(place.dur * 2.5, step ? (step.end - step.start) * CONTEXT : 0);
    this.setView({ start: place.start - context, end: end + context });
    this.pick(place.box);
    if (place.box < 0) this.say(`finding ${place.finding + 1}: ${duration(place.dur)} marked, no single event stands for it`);
    this.stage.focus({ preventScroll: true });
  }

  private resize(): void {
    const { scene } = this;
    scene.ratio = Math.min(3, window.devicePixelRatio || 1);
    scene.width = this.stage.clientWidth;
    const room = Math.max(260, Math.min(TALLEST, window.innerHeight * 0.75));
    scene.height = Math.min(scene.layout.height, room);
    this.canvas.style.height = `${scene.height}px`;
    this.canvas.width = Math.round(scene.width * scene.ratio);
    this.canvas.height = Math.round(scene.height * scene.ratio);
    this.scrollTo(scene.scroll);
    this.painter.forget();
    this.redrawNow();
  }

  private redraw(): void {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.redrawNow();
      this.writeHash();
    });
  }

  private writeHash(): void {
    if (!this.ownsHash || !this.moved) return;
    try {
      history.replaceState(null, "", toHash(this.scene.view, this.scene.picked));
    } catch {
      // Browsers limit how often the address may change; the next frame writes it.
    }
  }

  private scrollTo(y: number): void {
    this.scene.scroll = Math.max(0, Math.min(y, this.scene.layout.height - this.scene.height));
  }

  private reveal(box: number): void {
    const lane = this.t.boxes.lane[box];
    const limit = this.limits.get(lane);
    if (limit !== undefined && this.t.boxes.depth[box] >= limit) this.fold(lane, false);
    const row = rowOf(this.t, this.scene.layout, box);
    if (!row) return;
    if (row.y < this.scene.scroll + AXIS + 20) this.scrollTo(row.y - AXIS - 40);
    else if (row.y + row.height > this.scene.scroll + this.scene.height - 10) {
      this.scrollTo(row.y + row.height - this.scene.height + 40);
    }
    const { start, dur } = this.t.boxes;
    const { view } = this.scene;
    if (start[box] > view.end || start[box] + dur[box] < view.start) this.centre(start[box] + dur[box] / 2);
  }

  private centre(time: number): void {
    const half = (this.scene.view.end - this.scene.view.start) / 2;
    this.moved = true;
    this.setView({ start: time - half, end: time + half });
  }

  private fold(lane: number, shut: boolean): void {
    if (shut) this.limits.set(lane, 1);
    else this.limits.delete(lane);
    this.scene.layout = layOut(this.t, this.ranges, this.limits);
    this.resize();
  }

  private say(text: string): void {
    this.status.textContent = text;
  }

  // ---- words -------------------------------------------------------------------------------------------------------

  private explain(hit: Hit): void {
    const said = describe(this.t, this.palette, hit, this.scene.zero);
    this.detail.replaceChildren();
    if (!said || !hit) {
      this.detail.append(el("p", { class: "soft" }, "Click anything to read what it is and why it is there."));
      return;
    }
    this.detail.append(...this.paragraphs(said));
    if (hit.kind !== "box") return;
    const box = hit.index;
    const acts = el("p", { class: "acts" });
    const { start, dur, name } = this.t.boxes;
    acts.append(button("zoom to it", () => this.setView(around(start[box], start[box] + dur[box], 0.6))));
    const { source, target, kind } = this.t.arrows;
    const linked = this.scene.near(box);
    for (const i of linked.slice(0, 6)) {
      const other = source[i] === box ? target[i] : source[i];
      const verb = kind[i] === 1 ? (source[i] === box ? "waited for" : "waited for by") : source[i] === box ? "launched" : "launched by";
      acts.append(button(`${verb} ${short(this.t.strings[name[other]])}`, () => this.pick(other)));
    }
    if (linked.length > 6) acts.append(el("span", { class: "soft" }, `and ${linked.length - 6} more`));
    acts.append(button("find all of this name", () => this.find(this.t.strings[name[box]])));
    this.detail.append(acts);
  }

  private paragraphs(said: Description): HTMLElement[] {
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

  private hover(event: PointerEvent): void {
    const hit = this.hitAt(event);
    const box = hit?.kind === "box" ? hit.index : -1;
    if (box !== this.scene.hovered) {
      this.scene.hovered = box;
      this.redraw();
    }
    this.canvas.style.cursor = !hit ? "grab" : "pointer";
    const said = describe(this.t, this.palette, hit, this.scene.zero);
    this.tip.hidden = !said;
    if (!said) return;
    this.tip.replaceChildren(...this.paragraphs({ ...said, facts: [] }));
    const frame = this.stage.getBoundingClientRect();
    const x = event.clientX - frame.left;
    const y = event.clientY - frame.top;
    const w = this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(4, Math.min(x + 14, frame.width - w - 4))}px`;
    this.tip.style.top = `${y + 18 + this.tip.offsetHeight > frame.height + 60 ? y - this.tip.offsetHeight - 12 : y + 18}px`;
  }

  private hitAt(event: { clientX: number; clientY: number }): Hit {
    const frame = this.canvas.getBoundingClientRect();
    const { scene } = this;
    const y = event.clientY - frame.top;
    if (y < AXIS) return null;
    return hitTest(this.t, scene.layout, scene.view, scene.width, event.clientX - frame.left, y + scene.scroll);
  }

  // ---- search ------------------------------------------------------------------------------------------------------

  find(query: string): void {
    this.input.value = query;
    this.found = search(this.t, query);
    this.foundAt = -1;
    this.scene.matches = this.found?.names ?? null;
    this.say(this.found ? `${this.found.boxes.length} found` : "");
    this.redraw();
  }

  private nextFound(step: number): void {
    const boxes = this.found?.boxes;
    if (!boxes?.length) return;
    this.foundAt =
      this.foundAt < 0 ? Math.max(0, boxes.findIndex((b) => this.t.boxes.start[b] >= this.scene.view.start))
        : (this.foundAt + step + boxes.length) % boxes.length;
    this.moved = true;
    this.pick(boxes[this.foundAt]);
    this.say(`${this.foundAt + 1} of ${boxes.length}`);
  }

  // ---- hands -------------------------------------------------------------------------------------------------------

  private listen(): void {
    const { stage, canvas } = this;
    stage.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    stage.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("dblclick", (event) => {
      const hit = this.hitAt(event);
      if (hit?.kind === "box") {
        const { start, dur } = this.t.boxes;
        this.setView(around(start[hit.index], start[hit.index] + dur[hit.index], 0.6));
      }
    });
    canvas.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
      this.scene.hovered = -1;
      this.redraw();
    });
    this.drags();
    this.input.addEventListener("input", () => this.find(this.input.value));
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.nextFound(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") {
        this.find("");
        stage.focus();
      }
      event.stopPropagation();
    });
    for (const node of this.root.querySelectorAll<HTMLElement>("[data-act]")) {
      node.addEventListener("click", () => this.act(node.dataset.act!, node));
    }
  }

  private drags(): void {
    const { canvas } = this;
    const touches = new Map<number, { x: number; y: number }>();
    let travelled = 0;
    canvas.addEventListener("pointerdown", (event) => {
      this.stage.focus({ preventScroll: true });
      canvas.setPointerCapture(event.pointerId);
      touches.set(event.pointerId, { x: event.clientX, y: event.clientY });
      travelled = 0;
      this.tip.hidden = true;
    });
    canvas.addEventListener("pointermove", (event) => {
      const last = touches.get(event.pointerId);
      if (!last) {
        if (event.pointerType === "mouse") this.hover(event);
        return;
      }
      const dx = event.clientX - last.x;
      const dy = event.clientY - last.y;
      if (touches.size === 2) this.pinch(touches, event);
      else if (travelled > CLICK_SLACK || travelled + Math.abs(dx) + Math.abs(dy) > CLICK_SLACK) {
        this.moved = true;
        this.scrollTo(this.scene.scroll - (event.pointerType === "mouse" ? dy : 0));
        this.setView(pan(this.scene.view, -dx / this.scene.width));
      }
      travelled += Math.abs(dx) + Math.abs(dy);
      touches.set(event.pointerId, { x: event.clientX, y: event.clientY });
    });
    canvas.addEventListener("pointerup", (event) => {
      const alone = touches.size === 1;
      touches.delete(event.pointerId);
      if (alone && travelled <= CLICK_SLACK) this.click(event);
    });
    canvas.addEventListener("pointercancel", (event) => touches.delete(event.pointerId));
  }

  private pinch(touches: Map<number, { x: number; y: number }>, event: PointerEvent): void {
    const [a, b] = [...touches.values()];
    const before = Math.abs(a.x - b.x) || 1;
    const other = [...touches.entries()].find(([id]) => id !== event.pointerId)![1];
    const after = Math.abs(event.clientX - other.x) || 1;
    const frame = this.canvas.getBoundingClientRect();
    const at = toTime(this.scene.view, this.scene.width, (event.clientX + other.x) / 2 - frame.left);
    this.moved = true;
    this.setView(zoom(this.scene.view, at, before / after));
  }

  private click(event: PointerEvent): void {
    const hit = this.hitAt(event);
    this.moved = true;
    if (hit?.kind === "head") {
      const open = this.t.lanes[hit.index].rows;
      if (open > 1) this.fold(hit.index, (this.limits.get(hit.index) ?? open) > 1 && !this.limits.has(hit.index));
      return;
    }
    if (hit?.kind === "box") this.pick(hit.index);
    else {
      this.scene.picked = -1;
      this.explain(hit);
      this.redraw();
    }
  }

  /** The wheel scrolls the page until the timeline has been clicked; then it zooms. */
  private wheel(event: WheelEvent): void {
    const mine = document.activeElement === this.stage || event.ctrlKey || event.metaKey;
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
    if (!mine && !sideways) {
      this.say("click the timeline first, or hold Ctrl, to zoom with the wheel");
      return;
    }
    event.preventDefault();
    this.moved = true;
    this.tip.hidden = true;
    const unit = event.deltaMode === 1 ? 16 : 1;
    if (sideways) {
      const by = (event.deltaX || event.deltaY) * unit;
      this.setView(pan(this.scene.view, by / this.scene.width));
    } else {
      const frame = this.canvas.getBoundingClientRect();
      const at = toTime(this.scene.view, this.scene.width, event.clientX - frame.left);
      this.setView(zoom(this.scene.view, at, Math.exp(Math.max(-1, Math.min(1, event.deltaY * unit * 0.0022)))));
    }
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (!this.press(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Whether the timeline is on screen, so that keys can be meant for it. */
  isVisible(): boolean {
    const frame = this.stage.getBoundingClientRect();
    return frame.top < window.innerHeight * 0.7 && frame.bottom > window.innerHeight * 0.3;
  }

  /** Do what a key stands for; false if it stands for nothing here. */
  press(key: string): boolean {
    const middle = (this.scene.view.start + this.scene.view.end) / 2;
    const { picked } = this.scene;
    const moves: Record<string, () => void> = {
      w: () => this.setView(zoom(this.scene.view, middle, 0.7)),
      s: () => this.setView(zoom(this.scene.view, middle, 1 / 0.7)),
      a: () => this.setView(pan(this.scene.view, -0.2)),
      d: () => this.setView(pan(this.scene.view, 0.2)),
      f: () => this.fit(),
      0: () => this.setView({ start: this.bounds[0], end: this.bounds[1] }),
      c: () => this.act("chain"),
      l: () => this.act("arrows"),
      "/": () => this.input.focus(),
      n: () => this.stepPlace(1),
      p: () => this.stepPlace(-1),
      Enter: () => {
        if (picked >= 0) this.setView(around(this.t.boxes.start[picked], this.t.boxes.start[picked] + this.t.boxes.dur[picked], 0.6));
      },
      Escape: () => this.pick(-1),
      PageDown: () => this.scroll(200),
      PageUp: () => this.scroll(-200),
    };
    const focused = document.activeElement === this.stage;
    const act = moves[key] ?? moves[key.toLowerCase()];
    if (key.startsWith("Arrow") && focused) this.pick(neighbour(this.t, this.scene.layout, picked, key));
    else if (act && (focused || key.length === 1)) act();
    else return false;
    this.moved = true;
    return true;
  }

  private scroll(by: number): void {
    this.scrollTo(this.scene.scroll + by);
    this.redraw();
  }

  private stepPlace(step: number): void {
    const count = this.t.places.length;
    if (!count) return;
    this.place = (this.place + step + count) % count;
    this.goToPlace(this.place);
    this.say(`finding ${this.t.places[this.place].finding + 1}`);
  }

  private act(name: string, node?: HTMLElement): void {
    const middle = (this.scene.view.start + this.scene.view.end) / 2;
    this.moved = true;
    if (name === "in") this.setView(zoom(this.scene.view, middle, 0.6));
    else if (name === "out") this.setView(zoom(this.scene.view, middle, 1 / 0.6));
    else if (name === "fit") this.fit();
    else if (name === "next") this.nextFound(1);
    else if (name === "link" && node) {
      this.writeHash();
      void copyText(location.href.replace(/#.*$/, "") + toHash(this.scene.view, this.scene.picked)).then(() => flash(node, "copied"));
    } else if (name === "chain" || name === "arrows") {
      this.scene[name] = !this.scene[name];
      this.root.querySelector(`[data-act=${name}]`)?.setAttribute("aria-pressed", String(this.scene[name]));
      this.redraw();
    }
  }
}

function short(text: string): string {
  return text.length > 48 ? text.slice(0, 47) + "…" : text;
}
