import assert from "node:assert/strict";
import { test } from "node:test";
import { Columns, split } from "../src/read.ts";
import { gridded, held, Store, type Names } from "../src/store.ts";

const sections = [
  { name: "decisions", columns: ["t_s", "flow", "target_bps", "pacing_bps", "window_bytes"] },
  { name: "internals", columns: ["t_s", "flow", "name", "value"] },
  { name: "waiting", columns: ["link", "flow", "kind", "size", "since_s"] },
];
const names = { internals: ["a", "b"] } as Names;

test("a read is split into its sections, and a wrong length is found", () => {
  const found = split(Float64Array.of(1, 0.1, 0, 5, 6, NaN, 0, 2, 1, 0, 0, 100, NaN, 1, 0, 0, 50, 0), sections);
  assert.deepEqual([...found].map(([name, one]) => [name, one.rows]), [["decisions", 1], ["internals", 0], ["waiting", 2]]);
  assert.throws(() => split(Float64Array.of(1, 0.1), sections), /decisions are cut off/);
  assert.throws(() => split(Float64Array.of(0, 0, 0, 7), sections), /1 values more/);
  assert.throws(() => split(Float64Array.of(-1, 0, 0), sections), /cut off/);
});

test("the store keeps what is of its flow and link, and the present queue alone", () => {
  const store = new Store(1, 0);
  store.take(Float64Array.of(2, 0.1, 0, 5, 6, 7, 0.2, 1, 8, 9, 10, 2, 0.1, 1, 1, 3, 0.1, 0, 0, 4, 2, 0, 1, 0, 100, NaN, 1, 1, 0, 50, 0), sections, () => names);
  assert.equal(store.decisions.length, 1);
  assert.deepEqual([0, 1, 2, 3].map((column) => store.decisions.at(0, column)), [0.2, 8, 9, 10]);
  assert.deepEqual([...store.internals.keys()], ["b"]);
  assert.deepEqual(store.waiting, [{ flow: 1, kind: 0, size: 100 }]);
  store.take(Float64Array.of(0, 0, 0), sections, () => names);
  assert.deepEqual(store.waiting, []);
});

test("columns grow and find times; grids take the last, the largest, the sum, or hold", () => {
  const columns = new Columns(2, 1);
  for (const [time, value] of [[0.1, 1], [0.3, 4], [0.30001, 2], [0.6, NaN]] as const) columns.push({ rows: 1, width: 2, values: Float64Array.of(time, value) }, 0);
  assert.deepEqual([0, 0.1, 0.2, 0.3, 0.7].map((time) => columns.from(time)), [0, 0, 1, 1, 4]);
  assert.deepEqual(gridded(columns, 1, 0, 0.1, 5, "last"), [null, 1, null, 2, null]);
  assert.deepEqual(gridded(columns, 1, 0, 0.1, 5, "max"), [null, 1, null, 4, null]);
  assert.deepEqual(gridded(columns, 1, 0, 0.1, 5, "sum"), [null, 1, null, 6, null]);
  assert.deepEqual(held(columns, 1, 0.2, 0.1, 5, 0.5), [1, 2, 2, 2, null], "nothing after the present, and nothing where there is no value");
});
