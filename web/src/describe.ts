// What do hover and click say about a box or an instant? In words first, then the facts.
import type { Hit } from "./find.ts";
import type { Palette, Timeline } from "./model.ts";
import { duration, explainState } from "./words.ts";

export interface Description {
  title: string;
  kind: string;
  time: string;
  words: string;
  facts: [string, string][];
}

const KINDS: Record<string, string> = {
  op: "operator (host)",
  annotation: "annotation (host)",
  module: "module (host)",
  frame: "Python frame (host)",
  call: "GPU API call (host)",
  launch: "launch call (host): hands work to the GPU and goes on",
  wait: "wait (host): blocked until the GPU is done",
  alloc: "memory call (host)",
  compile: "compiler (host)",
  overhead: "recorder's overhead",
  memcpy: "copy (GPU)",
  memset: "memset (GPU)",
  folded: "many short events drawn as one",
};

/** The kind of a box in words. */
export function kindWords(kind: string): string {
  if (kind.startsWith("kernel:")) return `kernel (GPU), ${kind.slice(7)}`;
  return KINDS[kind] ?? kind;
}

export function describe(t: Timeline, palette: Palette, hit: Hit, zero: number): Description | null {
  if (!hit || hit.kind === "head") return null;
  const text = t.strings;
  if (hit.kind === "queue") {
    const depth = t.queue.depth[hit.index];
    const words =
      depth === 0
        ? "Nothing is queued: whatever the host launches next begins at once, and until then the GPU has nothing to do."
        : `The host is ${depth} ${depth === 1 ? "launch" : "launches"} ahead of the GPU.`;
    return { title: `${depth} launched, not begun`, kind: "queue depth", time: at(t.queue.time[hit.index] - zero), words, facts: [] };
  }
  const i = hit.index;
  if (hit.kind === "strip") {
    const { state, cause, doing, start, dur } = t.strip;
    const idle = text[state[i]] === "idle";
    return {
      title: idle ? `GPU idle: ${text[cause[i]]}` : `GPU: ${text[state[i]]}`,
      kind: "where the device's time goes",
      time: `${duration(dur[i])}, ${at(start[i] - zero)}`,
      words: explainState(palette.words, text[state[i]], text[cause[i]], text[doing[i]], dur[i]),
      facts: [],
    };
  }
  const b = t.boxes;
  const facts: [string, string][] = [["lane", t.lanes[b.lane[i]].name]];
  for (const line of text[b.facts[i]].split("\n")) {
    const cut = line.indexOf(": ");
    if (cut > 0) facts.push([line.slice(0, cut), line.slice(cut + 2)]);
  }
  return {
    title: text[b.name[i]],
    kind: kindWords(text[b.kind[i]]),
    time: `${duration(b.dur[i])}, ${at(b.start[i] - zero)}`,
    words: text[b.words[i]],
    facts,
  };
}

function at(ns: number): string {
  return ns >= 0 ? `begins ${duration(ns)} into the step` : `begins ${duration(-ns)} before the step`;
}
