// How does a reader move through the timeline? Wheel, drag, pinch and keys; hover and click explain.
import { explain, showTip } from "./detail.ts";
import { copyText, flash } from "./dom.ts";
import { Painter } from "./draw.ts";
import type { Scene } from "./scene.ts";
import { ArrowIndex, hitTest, neighbour, type Hit } from "./find.ts";
import { listenToPointer, listenToWheel, type Moves } from "./gestures.ts";
import { AXIS, layOut, rowOf, rowRanges } from "./layout.ts";
import { extent, type Palette, type Timeline } from "./model.ts";
import { OverviewMap } from "./overview.ts";
import { readTheme } from "./theme.ts";
import { PlaceTour, SearchTour } from "./tours.ts";
import { around, clamp, pan, toHash, toTime, zoom, type View } from "./view.ts";

/** Key -> what it does; see `act`. */
const KEYS: Record<string, string> = {
  w: "in", s: "out", a: "left", d: "right", f: "fit", 0: "all", c: "chain", l: "arrows", "/": "search", n: "next-place",
  p: "last-place", Enter: "closer", Escape: "drop", PageDown: "down", PageUp: "up",
};
const OPEN_ROWS = 10;
const TALLEST = 620;

export class TimelinePanel {
  /** Told whenever the view moves, in time since the panel's zero, so that two panels can move together. */
  onMove: ((view: View) => void) | null = null;
  /** False in a page with two timelines, where a hash would not say which is meant. */
  ownsHash = true;

  readonly scene: Scene;
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
  private readonly matches: SearchTour;
  private readonly places: PlaceTour;
  private pending = 0;
  /** The address stays as it was until the reader has moved. */
  private moved = false;

  constructor(private readonly root: HTMLElement, private readonly t: Timeline, palette: Palette) {
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
    this.matches = new SearchTour(this.scene, this);
    this.places = new PlaceTour(this.scene, this);
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

  /** Let the view reach as far as this, in time since zero. */
  widen(reach: View): void {
    const [low, high] = this.bounds;
    this.bounds = [Math.min(low, reach.start + this.scene.zero), Math.max(high, reach.end + this.scene.zero)];
  }

  pick(box: number): void {
    this.scene.picked = box;
    if (box >= 0) this.reveal(box);
    explain(this.detail, this.scene, box < 0 ? null : { kind: "box", index: box }, this);
    this.redraw();
  }

  /** Show where a finding happens; false if this page carries no place of it. */
  goToFinding(finding: number): boolean {
    this.moved = true;
    this.stage.focus({ preventScroll: true });
    return this.places.toFinding(finding);
  }

  goTo(view: View, box: number): void {
    this.setView(view);
    this.pick(box < this.t.boxes.start.length ? box : -1);
  }

  fit(): void {
    const step = this.t.steps[this.t.focus];
    this.setView(step ? around(step.start, step.end, 0.04) : { start: this.bounds[0], end: this.bounds[1] });
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

  say(text: string): void {
    this.status.textContent = text;
  }

  private hover(event: PointerEvent): void {
    const hit = this.hitAt(event);
    const box = hit?.kind === "box" ? hit.index : -1;
    if (box !== this.scene.hovered) {
      this.scene.hovered = box;
      this.redraw();
    }
    this.canvas.style.cursor = !hit ? "grab" : "pointer";
    showTip(this.tip, this.stage, this.scene, hit, event);
  }

  private hitAt(event: { clientX: number; clientY: number }): Hit {
    const frame = this.canvas.getBoundingClientRect();
    const { scene } = this;
    const y = event.clientY - frame.top;
    if (y < AXIS) return null;
    return hitTest(this.t, scene.layout, scene.view, scene.width, event.clientX - frame.left, y + scene.scroll);
  }


  find(query: string): void {
    this.input.value = query;
    this.matches.find(query);
    this.redraw();
  }

  private listen(): void {
    const { stage, canvas } = this;
    const moves = this.moves();
    listenToWheel(stage, canvas, moves);
    listenToPointer(canvas, moves);
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
    this.input.addEventListener("input", () => this.find(this.input.value));
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.matches.next(event.shiftKey ? -1 : 1);
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

  private moves(): Moves {
    const moving = (move: () => void) => {
      this.moved = true;
      this.tip.hidden = true;
      move();
    };
    return {
      pan: (pixels) => moving(() => this.setView(pan(this.scene.view, pixels / this.scene.width))),
      scroll: (pixels) => moving(() => this.scroll(pixels)),
      zoom: (x, factor) => moving(() => this.setView(zoom(this.scene.view, toTime(this.scene.view, this.scene.width, x), factor))),
      click: (event) => this.click(event),
      hover: (event) => this.hover(event),
      begin: () => {
        this.stage.focus({ preventScroll: true });
        this.tip.hidden = true;
      },
      say: (text) => this.say(text),
    };
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
      explain(this.detail, this.scene, hit, this);
      this.redraw();
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
    const focused = document.activeElement === this.stage;
    const act = KEYS[key] ?? KEYS[key.toLowerCase()];
    this.moved = true;
    if (key.startsWith("Arrow") && focused) this.pick(neighbour(this.t, this.scene.layout, this.scene.picked, key));
    else if (act && (focused || key.length === 1)) this.act(act);
    else return false;
    return true;
  }

  private scroll(by: number): void {
    this.scrollTo(this.scene.scroll + by);
    this.redraw();
  }

  private act(name: string, node?: HTMLElement): void {
    const { view, picked } = this.scene;
    const middle = (view.start + view.end) / 2;
    const { start, dur } = this.t.boxes;
    this.moved = true;
    const acts: Record<string, () => void> = {
      in: () => this.setView(zoom(view, middle, 0.7)),
      out: () => this.setView(zoom(view, middle, 1 / 0.7)),
      left: () => this.setView(pan(view, -0.2)),
      right: () => this.setView(pan(view, 0.2)),
      up: () => this.scroll(-200),
      down: () => this.scroll(200),
      fit: () => this.fit(),
      all: () => this.setView({ start: this.bounds[0], end: this.bounds[1] }),
      search: () => this.input.focus(),
      next: () => this.matches.next(1),
      "next-place": () => this.places.next(1),
      "last-place": () => this.places.next(-1),
      closer: () => {
        if (picked >= 0) this.setView(around(start[picked], start[picked] + dur[picked], 0.6));
      },
      drop: () => this.pick(-1),
      chain: () => this.toggle("chain"),
      arrows: () => this.toggle("arrows"),
      link: () => {
        const address = location.href.replace(/#.*$/, "") + toHash(view, picked);
        void copyText(address).then(() => node && flash(node, "copied"));
      },
    };
    acts[name]?.();
  }

  private toggle(what: "chain" | "arrows"): void {
    this.scene[what] = !this.scene[what];
    this.root.querySelector(`[data-act=${what}]`)?.setAttribute("aria-pressed", String(this.scene[what]));
    this.redraw();
  }
}
