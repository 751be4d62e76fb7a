// What lies under a point, what a search finds, and where arrow keys lead.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ArrowIndex, hitTest, neighbour, search } from "../src/find";
import { HEAD, layOut, rowOf, rowRanges } from "../src/layout";
import { lowerBound } from "../src/model";
import { example } from "./example";

const t = example();
const layout = layOut(t, rowRanges(t), new Map());
const view = { start: 0, end: 1_000 };
const at = (box: number) => rowOf(t, layout, box)!.y + 3;

test("a binary search finds the first value that is not below", () => {
  const values = [1, 3, 3, 8];
  assert.deepEqual([0, 1, 3, 4, 9].map((x) => lowerBound(values, x, 0, 4)), [0, 0, 1, 3, 4]);
});

test("a point inside a box hits it, a point between boxes hits none", () => {
  assert.deepEqual(hitTest(t, layout, view, 1_000, 150, at(1)), { kind: "box", index: 1 });
  assert.equal(hitTest(t, layout, view, 1_000, 350, at(1)), null);
});

test("a box thinner than a pixel can be hit from beside it", () => {
  assert.deepEqual(hitTest(t, layout, { start: 0, end: 100_000 }, 1_000, 6, at(2)), { kind: "box", index: 2 });
});

test("a lane's title and its strip are hit as such", () => {
  assert.deepEqual(hitTest(t, layout, view, 1_000, 5, layout.heads[1].y + HEAD / 2), { kind: "head", index: 1 });
  const strip = layout.rows.find((r) => r.kind === "strip")!;
  assert.deepEqual(hitTest(t, layout, view, 1_000, 450, strip.y + 2), { kind: "strip", index: 1 });
});

test("a search needs every word and returns boxes in time order", () => {
  assert.deepEqual([...search(t, "aten")!.boxes], [1, 2]);
  assert.deepEqual([...search(t, "MM aten")!.boxes], [1]);
  assert.equal(search(t, "   "), null);
  assert.equal(search(t, "nothing of that name")!.boxes.length, 0);
});

test("arrow keys go along a row, stop at its ends, and change rows at the same time", () => {
  assert.equal(neighbour(t, layout, 1, "ArrowRight"), 2);
  assert.equal(neighbour(t, layout, 2, "ArrowRight"), 2);
  assert.equal(neighbour(t, layout, 1, "ArrowLeft"), 1);
  assert.equal(neighbour(t, layout, 1, "ArrowUp"), 0);
  assert.equal(neighbour(t, layout, 0, "ArrowUp"), 0);
});

test("every arrow is known to both its ends", () => {
  const arrows = new ArrowIndex(t);
  assert.deepEqual([arrows.of(0), arrows.of(1), arrows.of(2)], [[0], [0, 1], [1]]);
});

test("a folded lane hides its deeper rows and gives back their height", () => {
  const folded = layOut(t, rowRanges(t), new Map([[2, 0]]));
  assert.equal(rowOf(t, folded, 1), null);
  assert.ok(folded.height < layout.height);
  assert.ok(folded.heads[2].folded);
});
