// Unpacking: byte planes, differences and headers, against bytes laid out by hand.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBase64, parse } from "../src/wire";

type Entry = [string, string, number, number, number, number];

function pack(columns: Entry[], data: number[]): Uint8Array {
  const header = { strings: [""], lanes: [], steps: [["s", 0, 10, true]], shown: [], places: [[0, 5, 2, 1]], focus: 0, notes: [], columns };
  const text = new TextEncoder().encode(JSON.stringify(header));
  const bytes = new Uint8Array(8 + text.length + data.length);
  bytes.set([71, 80, 76, 49]);
  new DataView(bytes.buffer).setUint32(4, text.length, true);
  bytes.set(text, 8);
  bytes.set(data, 8 + text.length);
  return bytes;
}

const GROUPS: [string, string[]][] = [
  ["boxes", ["start_ns", "dur_ns", "lane", "depth", "kind", "name", "words", "facts"]],
  ["arrows", ["source", "target", "kind"]],
  ["strip", ["lane", "start_ns", "dur_ns", "state", "cause", "doing"]],
  ["queue", ["lane", "time_ns", "depth"]],
  ["chain", ["start_ns", "dur_ns", "box"]],
];

function empty(): Map<string, Entry> {
  const entries = new Map<string, Entry>();
  for (const [group, names] of GROUPS) for (const name of names) entries.set(`${group}.${name}`, [group, name, 0, 0, 0, 0]);
  return entries;
}

test("differences are summed from the base, with sign", () => {
  const entries = empty();
  entries.set("boxes.start_ns", ["boxes", "start_ns", 3, 2, 1_000, 1]);
  // zigzag of 0, +300, -2: two planes, low bytes first
  const t = parse(pack([...entries.values()], [0, 600 & 255, 3, 0, 600 >> 8, 0]));
  assert.deepEqual([...t.boxes.start], [1_000, 1_300, 1_298]);
});

test("plain columns are the base plus what is stored; no plane means all equal", () => {
  const entries = empty();
  entries.set("boxes.lane", ["boxes", "lane", 3, 1, 2, 0]);
  entries.set("boxes.depth", ["boxes", "depth", 3, 0, 7, 0]);
  const t = parse(pack([...entries.values()], [0, 1, 5]));
  assert.deepEqual([...t.boxes.lane], [2, 3, 7]);
  assert.deepEqual([...t.boxes.depth], [7, 7, 7]);
  assert.deepEqual(t.places, [{ finding: 0, start: 5, dur: 2, box: 1 }]);
});

test("what is no timeline is refused", () => {
  assert.throws(() => parse(new Uint8Array(16)), /not a gapless timeline/);
});

test("base64 gives the bytes back", () => {
  assert.deepEqual([...fromBase64(btoa("\x00\xff\x10"))], [0, 255, 16]);
});
