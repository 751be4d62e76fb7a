// What hover and click say, and how durations are written.
import assert from "node:assert/strict";
import { test } from "node:test";
import { describe, kindWords } from "../src/describe";
import { duration, explainState, instant } from "../src/words";
import { example } from "./example";

const palette = { families: {}, titles: {}, states: {}, causes: {}, boxes: {}, words: { dispatch: "the host was preparing operators" } };

test("durations keep three digits and a readable unit", () => {
  assert.deepEqual([7, 1_234, 38_000, 1_100_000, 250e6, 2.5e9].map(duration), ["7 ns", "1.23 µs", "38.0 µs", "1.10 ms", "250 ms", "2.50 s"]);
});

test("axis labels tell neighbouring ticks apart", () => {
  assert.notEqual(instant(1_000_200, 200), instant(1_000_400, 200));
  assert.equal(instant(2_500_000, 500_000), "2.5 ms");
});

test("idle time is explained by what the host was doing", () => {
  assert.equal(
    explainState(palette.words, "idle", "dispatch", "aten::layer_norm", 38_000),
    "The GPU idles 38.0 µs because the host was preparing operators: aten::layer_norm.",
  );
  assert.match(explainState({}, "idle", "new-cause", "", 1_000), /because new-cause\.$/);
  assert.match(explainState({}, "unrecorded", "", "", 1_000), /was not recorded/);
});

test("a box is described with its lane, its words and its facts", () => {
  const said = describe(example(), palette, { kind: "box", index: 2 }, 100)!;
  assert.equal(said.title, "aten::add");
  assert.equal(said.words, "It waits for 2 ms.");
  assert.equal(said.time, "300 ns, begins 400 ns into the step");
  assert.deepEqual(said.facts, [["lane", "main"], ["bytes", "4"], ["values", "a: b"]]);
});

test("a piece of the strip and the queue are described in sentences", () => {
  const t = example();
  assert.match(describe(t, palette, { kind: "strip", index: 1 }, 0)!.words, /^The GPU idles 600 ns because the host was preparing operators: aten::mm/);
  assert.match(describe(t, palette, { kind: "queue", index: 0 }, 0)!.words, /^Nothing is queued/);
  assert.match(describe(t, palette, { kind: "queue", index: 1 }, 0)!.words, /2 launches ahead/);
  assert.equal(describe(t, palette, { kind: "head", index: 0 }, 0), null);
});

test("kinds that the page has no words for are shown as they are", () => {
  assert.equal(kindWords("kernel:gemm"), "kernel (GPU), gemm");
  assert.equal(kindWords("strange"), "strange");
});
