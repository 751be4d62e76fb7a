// What is painted on the canvas? One rectangle per box, or one per pixel where boxes are narrower than that.
import { AXIS, HEAD, type Row } from "./layout.ts";
import { boxColour, family, lowerBound } from "./model.ts";
import { criticalChain, links, outline } from "./overlay.ts";
import type { Scene } from "./scene.ts";
import { hatch, inkOn } from "./theme.ts";
import { tickStep, toX } from "./view.ts";
import { duration, instant } from "./words.ts";

const DIM = 0.16;

export class Painter {
  private readonly fills = new Map<string, CanvasPattern | string>();
  private readonly kindColours: string[];
  private readonly kindHatched: boolean[];
  private letter = 6;
  private fill = "";

  constructor(private readonly c: CanvasRenderingContext2D, private readonly s: Scene) {
    const kinds = new Set(s.t.boxes.kind);
    this.kindColours = [];
    this.kindHatched = [];
    for (const kind of kinds) {
      this.kindColours[kind] = boxColour(s.palette, s.t.strings[kind]);
      this.kindHatched[kind] = s.t.strings[kind] === "wait";
    }
  }

  /** Patterns depend on the screen's pixel ratio. */
  forget(): void {
    this.fills.clear();
  }

  paint(): void {
    const { c, s } = this;
    c.setTransform(s.ratio, 0, 0, s.ratio, 0, 0);
    c.fillStyle = s.theme.paper;
    c.fillRect(0, 0, s.width, s.height);
    c.font = s.theme.font;
    c.textBaseline = "middle";
    this.letter = c.measureText("aten::layer_norm_backward_cuda").width / 30;
    c.save();
    c.beginPath();
    c.rect(0, AXIS, s.width, s.height - AXIS);
    c.clip();
    c.translate(0, -s.scroll);
    this.steps();
    for (const row of s.layout.rows) {
      if (row.y + row.height < s.scroll + AXIS || row.y > s.scroll + s.height) continue;
      if (row.kind === "boxes") {
        this.boxes(row);
        if (s.marks && s.t.lanes[row.lane].kind === "stream") this.differences(row, s.marks);
      }
      else if (row.kind === "strip") this.strip(row);
      else this.queue(row);
    }
    this.missing();
    this.heads();
    if (s.chain) criticalChain(c, s);
    if (s.arrows) links(c, s);
    outline(c, s, s.hovered, 1);
    outline(c, s, s.picked, 2);
    c.restore();
    this.axis();
  }

  private x(time: number): number {
    return toX(this.s.view, this.s.width, time);
  }

  private colour(value: string): void {
    if (this.fill !== value) this.c.fillStyle = this.fill = value;
  }

  private pattern(hex: string): CanvasPattern | string {
    let fill = this.fills.get(hex);
    if (fill === undefined) this.fills.set(hex, (fill = hatch(this.c, hex, this.s.ratio)));
    return fill;
  }

  private steps(): void {
    const { c, s } = this;
    const bottom = Math.max(s.layout.height, s.scroll + s.height);
    s.t.steps.forEach((step, i) => {
      const x0 = this.x(step.start);
      const x1 = this.x(step.end);
      if (x1 < 0 || x0 > s.width) return;
      if (i % 2 === 0) {
        c.fillStyle = s.theme.band;
        c.fillRect(x0, 0, x1 - x0, bottom);
      }
      c.fillStyle = s.theme.line;
      c.fillRect(Math.round(x0), 0, 1, bottom);
    });
    this.fill = "";
  }

  private boxes(row: Row): void {
    const { c, s } = this;
    const { start, dur, kind, name } = s.t.boxes;
    const { view, width, matches } = s;
    const k = width / (view.end - view.start);
    const y = row.y;
    let i = Math.max(row.from, lowerBound(start, view.start, row.from, row.to) - 1);
    this.fill = "";
    while (i < row.to && start[i] < view.end) {
      const x0 = (start[i] - view.start) * k;
      const w = dur[i] * k;
      if (w >= 1.6) {
        if (x0 + w > 0) this.box(i, x0, w, y, row.height, matches ? matches[name[i]] === 1 : true);
        i++;
        continue;
      }
      const pixel = Math.floor(x0);
      let next = lowerBound(start, view.start + (pixel + 1) / k, i + 1, row.to);
      // A wide box may begin inside this pixel; it is drawn for itself.
      if (next - 1 > i && dur[next - 1] * k >= 1.6) next--;
      let lit = i;
      if (matches) {
        lit = -1;
        for (let j = i; j < next && lit < 0; j++) if (matches[name[j]] === 1) lit = j;
      }
      if (pixel >= -1) {
        c.globalAlpha = lit < 0 ? DIM : next - i > 1 ? 1 : Math.max(0.45, Math.min(1, w));
        this.colour(this.kindColours[kind[lit < 0 ? i : lit]]);
        c.fillRect(pixel, y, 1, row.height);
      }
      i = next;
    }
    c.globalAlpha = 1;
  }

  /** A line above the work that only this timeline has. */
  private differences(row: Row, marks: Uint8Array): void {
    const { c, s } = this;
    const { start, dur, name } = s.t.boxes;
    const k = s.width / (s.view.end - s.view.start);
    c.fillStyle = s.gone ? s.theme.bad : s.theme.good;
    let reach = -1;
    for (let i = lowerBound(start, s.view.start, row.from, row.to); i < row.to && start[i] < s.view.end; i++) {
      const x = (start[i] - s.view.start) * k;
      if (marks[name[i]] === 0 || x + dur[i] * k < reach) continue;
      reach = Math.max(x + 2, x + dur[i] * k);
      c.fillRect(x, row.y - 4, reach - x, 3);
    }
    this.fill = "";
  }

  private box(i: number, x: number, w: number, y: number, h: number, lit: boolean): void {
    const { c, s } = this;
    const left = Math.max(x, -4);
    const right = Math.min(x + w, s.width + 4);
    const kind = s.t.boxes.kind[i];
    const hex = this.kindColours[kind];
    const gap = w > 4 ? 0.7 : 0;
    c.globalAlpha = lit ? 1 : DIM;
    if (this.kindHatched[kind] && w > 3) {
      c.fillStyle = this.pattern(hex);
      this.fill = "";
    } else {
      this.colour(hex);
    }
    c.fillRect(left, y, right - left - gap, h);
    const room = right - Math.max(left, 0) - 8;
    if (room > 3 * this.letter) {
      const label = this.fit(s.t.strings[s.t.boxes.name[i]], room);
      if (this.kindHatched[kind]) {
        this.colour(hex);
        c.fillRect(Math.max(left, 0) + 2, y + 2, Math.min(label.length * this.letter + 4, room + 4), h - 4);
      }
      this.colour(inkOn(hex));
      c.fillText(label, Math.max(left, 0) + 4, y + h / 2 + 0.5);
    }
  }

  private fit(text: string, room: number): string {
    const letters = Math.floor(room / this.letter);
    return text.length <= letters ? text : text.slice(0, Math.max(1, letters - 1)) + "…";
  }

  private strip(row: Row): void {
    const { c, s } = this;
    const { start, dur, state, cause } = s.t.strip;
    const { view, width, palette, t } = s;
    const k = width / (view.end - view.start);
    let i = Math.max(row.from, lowerBound(start, view.start, row.from, row.to) - 1);
    while (i < row.to && start[i] < view.end) {
      const x0 = (start[i] - view.start) * k;
      const w = dur[i] * k;
      let owner = i;
      let right = x0 + w;
      let next = i + 1;
      if (w < 1) {
        // Of the pieces inside one pixel the longest gives the colour.
        const pixel = Math.floor(x0) + 1;
        while (next < row.to && (start[next] - view.start) * k < pixel && dur[next] * k < 1) {
          if (dur[next] > dur[owner]) owner = next;
          next++;
        }
        right = pixel;
      }
      if (right >= 0) {
        const idle = t.strings[state[owner]] === "idle";
        const hex = palette.families[family(palette, t.strings[state[owner]], t.strings[cause[owner]])];
        const left = Math.max(x0, -4);
        c.fillStyle = idle && w > 3 ? this.pattern(hex) : hex;
        c.fillRect(left, row.y, Math.max(0.8, Math.min(right, width + 4) - left), row.height);
        const room = Math.min(right, width) - Math.max(left, 0) - 8;
        if (w >= 1 && room > 5 * this.letter) {
          const label = this.fit(idle ? "idle: " + t.strings[cause[i]] : t.strings[state[i]], room);
          c.fillStyle = hex;
          if (idle) c.fillRect(Math.max(left, 0) + 2, row.y + 4, label.length * this.letter + 6, row.height - 8);
          c.fillStyle = inkOn(hex);
          c.fillText(label, Math.max(left, 0) + 5, row.y + row.height / 2 + 0.5);
        }
      }
      i = next;
    }
    this.fill = "";
  }

  private queue(row: Row): void {
    const { c, s } = this;
    const { time, depth } = s.t.queue;
    let top = 1;
    for (let i = row.from; i < row.to; i++) if (depth[i] > top) top = depth[i];
    const base = row.y + row.height;
    const scale = (row.height - 9) / top;
    const from = Math.max(row.from, lowerBound(time, s.view.start, row.from, row.to) - 1);
    c.beginPath();
    c.moveTo(-2, base);
    let level = 0;
    let pixel = -2;
    let peak = 0;
    for (let i = from; i < row.to && time[i] <= s.view.end; i++) {
      const x = Math.max(-2, Math.round(this.x(time[i]) * 2) / 2);
      if (x > pixel) {
        // Changes within one pixel are drawn as their peak, then the level they end on.
        c.lineTo(pixel, base - peak * scale);
        c.lineTo(pixel, base - level * scale);
        c.lineTo(x, base - level * scale);
        pixel = x;
        peak = level;
      }
      level = depth[i];
      peak = Math.max(peak, level);
    }
    c.lineTo(pixel, base - peak * scale);
    c.lineTo(pixel, base - level * scale);
    c.lineTo(s.width + 2, base - level * scale);
    c.lineTo(s.width + 2, base);
    c.closePath();
    c.globalAlpha = 0.35;
    c.fillStyle = s.theme.soft;
    c.fill();
    c.globalAlpha = 1;
    c.strokeStyle = s.theme.soft;
    c.lineWidth = 1;
    c.stroke();
    this.plate(`launched, not begun: up to ${top}`, row.y + 9);
    this.fill = "";
  }

  private plate(text: string, y: number): void {
    const { c, s } = this;
    c.globalAlpha = 0.82;
    c.fillStyle = s.theme.paper;
    c.fillRect(4, y - 8, c.measureText(text).width + 8, 16);
    c.globalAlpha = 1;
    c.fillStyle = s.theme.soft;
    c.fillText(text, 8, y + 0.5);
  }

  private heads(): void {
    const { c, s } = this;
    for (const head of s.layout.heads) {
      const lane = s.t.lanes[head.lane];
      c.fillStyle = s.theme.line;
      c.fillRect(0, head.y + 1, s.width, 1);
      c.fillStyle = s.theme.ink;
      c.font = `600 ${s.theme.font}`;
      const mark = lane.rows > 1 ? (head.folded ? "▸ " : "▾ ") : "";
      const title = mark + lane.name;
      c.fillText(title, 8, head.y + HEAD / 2 + 1);
      const used = c.measureText(title).width;
      c.font = s.theme.font;
      c.fillStyle = s.theme.faint;
      const extra = [lane.role, head.hidden ? `${head.hidden} more rows` : ""].filter(Boolean).join(" · ");
      if (extra) c.fillText(extra, 16 + used, head.y + HEAD / 2 + 1);
    }
    this.fill = "";
  }

  /** Time that carries no boxes is shown as such, never as empty time. */
  private missing(): void {
    const { c, s } = this;
    let low = s.view.start;
    for (const range of [...s.t.shown, { start: s.view.end, end: s.view.end }]) {
      const x0 = Math.max(0, this.x(low));
      const x1 = Math.min(s.width, this.x(range.start));
      if (x1 - x0 > 1) {
        c.globalAlpha = 0.55;
        c.fillStyle = this.pattern(s.theme.band);
        c.fillRect(x0, AXIS, x1 - x0, s.layout.height);
        c.globalAlpha = 1;
        if (x1 - x0 > 150) {
          c.fillStyle = s.theme.faint;
          c.textAlign = "center";
          const beyond = s.t.overview && (low >= s.t.overview.end || range.start <= s.t.overview.start);
          c.fillText(beyond ? "nothing was recorded" : "not in this page", (x0 + x1) / 2, s.scroll + AXIS + 34);
          c.textAlign = "left";
        }
      }
      low = Math.max(low, range.end);
    }
    this.fill = "";
  }

  private axis(): void {
    const { c, s } = this;
    c.fillStyle = s.theme.paper;
    c.fillRect(0, 0, s.width, AXIS);
    c.fillStyle = s.theme.line;
    c.fillRect(0, AXIS - 1, s.width, 1);
    const step = tickStep(s.view, s.width);
    c.fillStyle = s.theme.faint;
    for (let tick = Math.ceil((s.view.start - s.zero) / step); ; tick++) {
      const x = this.x(s.zero + tick * step);
      if (x > s.width) break;
      c.fillRect(Math.round(x), AXIS - 6, 1, 5);
      c.fillText(instant(tick * step, step), x + 4, AXIS / 2 + 4);
    }
    c.textAlign = "left";
    for (const range of s.t.steps) {
      const x0 = Math.max(0, this.x(range.start));
      const x1 = Math.min(s.width, this.x(range.end));
      const label = `${range.name} · ${duration(range.end - range.start)}` + (range.used ? "" : " · not used");
      if (x1 - x0 < 60) continue;
      c.fillStyle = s.theme.ink;
      c.font = `600 ${s.theme.font}`;
      c.fillText(this.fit(label, x1 - x0 - 8), x0 + 4, 7);
      c.font = s.theme.font;
    }
    this.fill = "";
  }
}
