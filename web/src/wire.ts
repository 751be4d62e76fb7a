// How is a timeline unpacked from the text in the page? The Python side (`render/wire.py`) says what the bytes mean.
import type { Lane, Range, Timeline } from "./model.ts";

type ColumnEntry = [group: string, name: string, rows: number, planes: number, base: number, delta: number];

interface Header {
  strings: string[];
  lanes: Lane[];
  steps: [string, number, number, boolean][];
  shown: [string, number, number, boolean][];
  places: [number, number, number, number][];
  focus: number;
  notes: string[];
  columns: ColumnEntry[];
  overview?: { start: number; end: number; families: string[] };
}

/** Base64 text to bytes, with the fast built-in where the browser has it. */
export function fromBase64(text: string): Uint8Array {
  const fast = (Uint8Array as unknown as { fromBase64?: (s: string) => Uint8Array }).fromBase64;
  if (fast) return fast(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function gunzip(bytes: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([bytes as BlobPart]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The timeline that the text holds. */
export async function decode(text: string): Promise<Timeline> {
  return parse(await gunzip(fromBase64(text.trim())));
}

/** The timeline that unpacked bytes hold. */
export function parse(bytes: Uint8Array): Timeline {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (String.fromCharCode(...bytes.subarray(0, 4)) !== "GPL1") throw new Error("not a gapless timeline");
  const length = view.getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length))) as Header;
  const groups: Record<string, Record<string, Float64Array | Int32Array>> = {};
  let offset = 8 + length;
  for (const [group, name, rows, planes, base, delta] of header.columns) {
    const values = readColumn(bytes, offset, rows, planes, base, delta === 1);
    offset += rows * planes;
    (groups[group] ??= {})[name] = isTime(name) ? values : Int32Array.from(values);
  }
  const { boxes, arrows, strip, queue, chain, overview } = groups;
  const float = (c: Float64Array | Int32Array) => c as Float64Array;
  const int = (c: Float64Array | Int32Array) => c as Int32Array;
  const over = header.overview;
  return {
    strings: header.strings,
    lanes: header.lanes,
    steps: header.steps.map(range),
    shown: header.shown.map(range),
    places: header.places.map(([finding, start, dur, box]) => ({ finding, start, dur, box })),
    focus: header.focus,
    notes: header.notes,
    boxes: {
      start: float(boxes.start_ns), dur: float(boxes.dur_ns), lane: int(boxes.lane), depth: int(boxes.depth),
      kind: int(boxes.kind), name: int(boxes.name), words: int(boxes.words), facts: int(boxes.facts),
    },
    arrows: { source: int(arrows.source), target: int(arrows.target), kind: int(arrows.kind) },
    strip: {
      lane: int(strip.lane), start: float(strip.start_ns), dur: float(strip.dur_ns),
      state: int(strip.state), cause: int(strip.cause), doing: int(strip.doing),
    },
    queue: { lane: int(queue.lane), time: float(queue.time_ns), depth: int(queue.depth) },
    chain: { start: float(chain.start_ns), dur: float(chain.dur_ns), box: int(chain.box) },
    overview: over
      ? { start: over.start, end: over.end, families: over.families, shares: over.families.map((f) => int(overview[f])) }
      : null,
  };
}

function isTime(name: string): boolean {
  return name.endsWith("_ns");
}

function range([name, start, end, used]: [string, number, number, boolean]): Range {
  return { name, start, end, used };
}

function readColumn(bytes: Uint8Array, offset: number, rows: number, planes: number, base: number, delta: boolean): Float64Array {
  const out = new Float64Array(rows);
  let scale = 1;
  for (let p = 0; p < planes; p++) {
    const at = offset + p * rows;
    for (let i = 0; i < rows; i++) out[i] += bytes[at + i] * scale;
    scale *= 256;
  }
  if (!delta) {
    if (base !== 0) for (let i = 0; i < rows; i++) out[i] += base;
    return out;
  }
  let sum = base;
  for (let i = 0; i < rows; i++) {
    const z = out[i];
    sum += z % 2 === 0 ? z / 2 : -(z + 1) / 2;
    out[i] = sum;
  }
  return out;
}
