// Copying as CSV and sorting: what a spreadsheet gets must be the table, and never a formula.
import assert from "node:assert/strict";
import { test } from "node:test";
import { compareCells, csvCell, toCsv } from "../src/tables";

test("cells with commas, quotes and line ends are quoted", () => {
  assert.equal(toCsv([["a", 'b"c', "d,e"], ["1", "2\n3", ""]]), 'a,"b""c","d,e"\r\n1,"2\n3",\r\n');
});

test("what a spreadsheet would run is disarmed, negative numbers are not", () => {
  assert.equal(csvCell("=1+1"), "'=1+1");
  assert.equal(csvCell("@x"), "'@x");
  assert.equal(csvCell("-1.5"), "-1.5");
  assert.equal(csvCell("-cmd"), "'-cmd");
});

test("numbers sort by size, text by letter, empty cells last", () => {
  assert.deepEqual(["10", "9", "", "100"].sort(compareCells), ["9", "10", "100", ""]);
  assert.deepEqual(["b", "", "a"].sort(compareCells), ["a", "b", ""]);
});
