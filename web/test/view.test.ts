// Zoom, pan, axis ticks and the permalink: arithmetic that must hold whatever the trace.
import assert from "node:assert/strict";
import { test } from "node:test";
import { around, clamp, fromHash, pan, tickStep, toHash, toTime, toX, zoom } from "../src/view";

const view = { start: 1_000, end: 3_000 };

test("zooming keeps the instant under the pointer where it is", () => {
  const at = 1_500;
  const closer = zoom(view, at, 0.5);
  assert.equal(closer.end - closer.start, 1_000);
  assert.equal(toX(closer, 800, at), toX(view, 800, at));
});

test("pixels and times are inverse", () => {
  for (const x of [0, 1, 399.5, 800]) assert.ok(Math.abs(toX(view, 800, toTime(view, 800, x)) - x) < 1e-9);
});

test("panning moves by a share of the screen and back", () => {
  assert.deepEqual(pan(pan(view, 0.25), -0.25), view);
});

test("a clamped view lies inside the trace and has the asked span", () => {
  const kept = clamp({ start: 90_000, end: 95_000 }, 0, 100_000);
  assert.equal(kept.end - kept.start, 5_000);
  assert.ok(kept.end <= 102_000 && kept.start >= -2_000);
  assert.ok(clamp({ start: 5, end: 5 }, 0, 100_000).end > clamp({ start: 5, end: 5 }, 0, 100_000).start);
});

test("a found event is shown with room on both sides", () => {
  const seen = around(1_000, 2_000);
  assert.ok(seen.start < 1_000 && seen.end > 2_000);
});

test("ticks are 1, 2 or 5 times a power of ten and far enough apart", () => {
  for (const span of [50, 777, 12_345, 9_876_543]) {
    const step = tickStep({ start: 0, end: span }, 1_000);
    assert.ok((step / span) * 1_000 >= 90);
    assert.ok(["1", "2", "5"].includes(String(Number(step.toPrecision(3))).replace(/[0.]/g, "").slice(0, 1)));
  }
});

test("the permalink round-trips, and nonsense is refused", () => {
  assert.deepEqual(fromHash(toHash(view, 7))?.view, view);
  assert.equal(fromHash(toHash(view, 7))?.box, 7);
  for (const bad of ["", "#t=1", "#t=a..b", "#t=1..2&box=-3", "#<script>"]) assert.equal(fromHash(bad), null);
});
