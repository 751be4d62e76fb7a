// Which stretch of time is on screen? Pure arithmetic of zoom and pan; times are ns, x is in CSS pixels.

export interface View {
  start: number;
  end: number;
}

const MIN_SPAN = 40;

/** The view kept inside `[low, high]`, no narrower than a few nanoseconds. */
export function clamp(view: View, low: number, high: number): View {
  const margin = (high - low) * 0.02;
  const span = Math.min(Math.max(view.end - view.start, MIN_SPAN), high - low + 2 * margin);
  const middle = (view.start + view.end) / 2;
  const start = Math.min(Math.max(middle - span / 2, low - margin), high + margin - span);
  return { start, end: start + span };
}

/** Zoom by `factor` (below 1 is closer) about the instant `at`. */
export function zoom(view: View, at: number, factor: number): View {
  return { start: at - (at - view.start) * factor, end: at + (view.end - at) * factor };
}

/** Move by a share of what is on screen. */
export function pan(view: View, share: number): View {
  const by = (view.end - view.start) * share;
  return { start: view.start + by, end: view.end + by };
}

/** A view that shows `[start, end]` with room on both sides. */
export function around(start: number, end: number, room = 0.15): View {
  const span = Math.max(end - start, MIN_SPAN);
  return { start: start - span * room, end: end + span * room };
}

export function toX(view: View, width: number, time: number): number {
  return ((time - view.start) / (view.end - view.start)) * width;
}

export function toTime(view: View, width: number, x: number): number {
  return view.start + (x / width) * (view.end - view.start);
}

/** Distance between axis ticks: 1, 2 or 5 times a power of ten, at least `minPixels` apart. */
export function tickStep(view: View, width: number, minPixels = 90): number {
  const raw = ((view.end - view.start) / width) * minPixels;
  const power = 10 ** Math.floor(Math.log10(raw));
  for (const m of [1, 2, 5]) if (m * power >= raw) return m * power;
  return 10 * power;
}

/** The view as text for the address bar, and back; ns as whole numbers. */
export function toHash(view: View, box: number): string {
  return `#t=${Math.round(view.start)}..${Math.round(view.end)}` + (box >= 0 ? `&box=${box}` : "");
}

export function fromHash(hash: string): { view: View; box: number } | null {
  const match = /^#t=(-?\d+)\.\.(-?\d+)(?:&box=(\d+))?$/.exec(hash);
  if (!match) return null;
  const start = Number(match[1]);
  const end = Number(match[2]);
  return end > start ? { view: { start, end }, box: match[3] === undefined ? -1 : Number(match[3]) } : null;
}
