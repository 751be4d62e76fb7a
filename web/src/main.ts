// What happens when the page opens? Tables come to life, the timeline is unpacked and drawn, the hash is obeyed.
import { copyText, flash } from "./dom.ts";
import type { Palette } from "./model.ts";
import { pair } from "./pair.ts";
import { enliven } from "./tables.ts";
import { TimelinePanel } from "./timeline.ts";
import { fromHash } from "./view.ts";
import { decode } from "./wire.ts";

declare global {
  interface Window {
    /** For tests and benchmarks: the panels, once drawn. */
    gapless?: { panels: TimelinePanel[]; readyMs: number };
  }
}

async function openTimelines(): Promise<TimelinePanel[]> {
  const palette = JSON.parse(document.getElementById("gapless-palette")?.textContent ?? "{}") as Palette;
  const panels: TimelinePanel[] = [];
  for (const root of document.querySelectorAll<HTMLElement>("[data-timeline]")) {
    const data = document.getElementById(root.dataset.timeline!);
    if (!data) continue;
    const t = await decode(data.textContent ?? "");
    data.remove();
    panels.push(new TimelinePanel(root, t, palette));
    root.dataset.ready = "yes";
  }
  if (panels.length === 2) pair(panels[0], panels[1]);
  return panels;
}

function obeyHash(panels: TimelinePanel[]): void {
  const place = fromHash(location.hash);
  if (!place || panels.length !== 1) return;
  panels[0].goTo(place.view, place.box);
  toTimeline();
}

function toTimeline(): void {
  document.getElementById("timeline")?.scrollIntoView({ block: "start", behavior: "instant" });
}

function help(open: boolean): void {
  const dialog = document.querySelector<HTMLDialogElement>("dialog#help");
  if (!dialog) return;
  if (open && !dialog.open) dialog.showModal();
  else dialog.close();
}

function listen(panels: TimelinePanel[]): void {
  for (const node of document.querySelectorAll<HTMLElement>("[data-goto-finding]")) {
    node.addEventListener("click", () => {
      const shown = panels.some((p) => p.goToFinding(Number(node.dataset.gotoFinding)));
      if (shown) toTimeline();
      else flash(node, "not in the part of the trace that this page carries");
    });
  }
  for (const node of document.querySelectorAll<HTMLElement>("[data-copy]")) {
    node.addEventListener("click", () => {
      const text = document.getElementById(node.dataset.copy!)?.textContent ?? "";
      void copyText(text).then(() => flash(node, "copied"));
    });
  }
  for (const node of document.querySelectorAll<HTMLElement>("[data-help]")) node.addEventListener("click", () => help(true));
  document.querySelector("dialog#help")?.addEventListener("click", (event) => {
    if (event.target === event.currentTarget || (event.target as HTMLElement).dataset.close !== undefined) help(false);
  });
  document.addEventListener("keydown", (event) => {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return;
    const idle = target === document.body && panels.length > 0 && panels[0].isVisible();
    if (event.key === "?") help(true);
    else if (idle && panels[0].press(event.key)) event.preventDefault();
    else if (event.key === "/" && panels.length) {
      event.preventDefault();
      document.querySelector<HTMLInputElement>("[data-tl=search]")?.focus({ preventScroll: true });
      toTimeline();
    }
  });
  addEventListener("hashchange", () => obeyHash(panels));
}

async function main(): Promise<void> {
  const before = performance.now();
  enliven(document);
  let panels: TimelinePanel[] = [];
  try {
    panels = await openTimelines();
  } catch (error) {
    for (const root of document.querySelectorAll<HTMLElement>("[data-timeline]")) {
      root.textContent = `The timeline could not be unpacked in this browser (${String(error)}). Everything else on this page is complete.`;
    }
  }
  listen(panels);
  obeyHash(panels);
  window.gapless = { panels, readyMs: performance.now() - before };
}

void main();
