// How does a reader go from one match, or one finding's place, to the next?
import { search, type Found } from "./find.ts";
import type { Scene } from "./scene.ts";
import type { View } from "./view.ts";
import { duration } from "./words.ts";

/** Share of a step that is shown on each side of a finding's place. */
const CONTEXT = 0.02;

/** What a tour can ask the timeline to do. */
export interface Stage {
  setView(view: View): void;
  pick(box: number): void;
  say(text: string): void;
}

/** Boxes found by name, one after the other. */
export class SearchTour {
  private found: Found | null = null;
  private at = -1;

  constructor(private readonly scene: Scene, private readonly stage: Stage) {}

  find(query: string): void {
    this.found = search(this.scene.t, query);
    this.at = -1;
    this.scene.matches = this.found?.names ?? null;
    this.stage.say(this.found ? `${this.found.boxes.length} found` : "");
  }

  /** The next match, at first the first one on screen. */
  next(step: number): void {
    const boxes = this.found?.boxes;
    if (!boxes?.length) return;
    const { start } = this.scene.t.boxes;
    if (this.at < 0) this.at = Math.max(0, boxes.findIndex((b) => start[b] >= this.scene.view.start));
    else this.at = (this.at + step + boxes.length) % boxes.length;
    this.stage.pick(boxes[this.at]);
    this.stage.say(`${this.at + 1} of ${boxes.length}`);
  }
}

/** Places of findings, one after the other. */
export class PlaceTour {
  private at = -1;

  constructor(private readonly scene: Scene, private readonly stage: Stage) {}

  /** Go to a finding's first place; false if this page carries none. */
  toFinding(finding: number): boolean {
    this.at = this.scene.t.places.findIndex((p) => p.finding === finding);
    if (this.at >= 0) this.go();
    return this.at >= 0;
  }

  next(step: number): void {
    const count = this.scene.t.places.length;
    if (!count) return;
    this.at = (this.at + step + count) % count;
    this.go();
  }

  private go(): void {
    const { t } = this.scene;
    const place = t.places[this.at];
    const step = t.steps[t.focus];
    const context = Math.max(place.dur * 2.5, step ? (step.end - step.start) * CONTEXT : 0);
    this.stage.setView({ start: place.start - context, end: place.start + place.dur + context });
    this.stage.pick(place.box);
    const none = place.box < 0 ? `: ${duration(place.dur)}, no single event stands for it` : "";
    this.stage.say(`finding ${place.finding + 1}${none}`);
  }
}
