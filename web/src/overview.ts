// Where in the whole run is the view? A thin strip of the device's states with a window to drag.
import type { Palette, Timeline } from "./model.ts";
import { readTheme } from "./theme.ts";
import type { View } from "./view.ts";

export class OverviewMap {
  private readonly c: CanvasRenderingContext2D;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly t: Timeline,
    private readonly palette: Palette,
    go: (middle: number) => void,
  ) {
    this.c = canvas.getContext("2d")!;
    const jump = (event: PointerEvent) => {
      const over = t.overview!;
      const box = canvas.getBoundingClientRect();
      go(over.start + ((event.clientX - box.left) / box.width) * (over.end - over.start));
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      jump(event);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (event.buttons) jump(event);
    });
  }

  paint(view: View, ratio: number): void {
    const over = this.t.overview;
    const { c, canvas } = this;
    if (!over) return;
    const theme = readTheme(canvas);
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
    if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = theme.band;
    c.fillRect(0, 0, width, height);
    const buckets = over.shares[0]?.length ?? 0;
    for (let b = 0; b < buckets; b++) {
      const x0 = Math.floor((b / buckets) * width);
      const x1 = Math.floor(((b + 1) / buckets) * width);
      if (x1 <= x0) continue;
      let y = height;
      over.families.forEach((family, f) => {
        const h = (over.shares[f][b] / 1000) * height;
        c.fillStyle = this.palette.families[family];
        c.fillRect(x0, y - h, x1 - x0, h);
        y -= h;
      });
    }
    const at = (time: number) => ((time - over.start) / (over.end - over.start)) * width;
    c.fillStyle = theme.ink;
    for (const range of this.t.shown) c.fillRect(at(range.start), height - 2, Math.max(1, at(range.end) - at(range.start)), 2);
    c.globalAlpha = 0.5;
    c.fillStyle = theme.paper;
    c.fillRect(0, 0, Math.max(0, at(view.start)), height - 2);
    c.fillRect(at(view.end), 0, width, height - 2);
    c.globalAlpha = 1;
    c.strokeStyle = theme.ink;
    c.lineWidth = 1.5;
    c.strokeRect(at(view.start) + 0.5, 1, Math.max(3, at(view.end) - at(view.start)), height - 2);
  }
}
