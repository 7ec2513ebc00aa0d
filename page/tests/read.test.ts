import assert from "node:assert/strict";
import { test } from "node:test";
import { Columns, split } from "../src/read.ts";
import { FRAME, gridded, held, Store, waitingWords, type Names } from "../src/store.ts";

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
  assert.throws(() => split(Float64Array.of(0, 0, 0, 7), sections), /1 values beyond/);
  assert.throws(() => split(Float64Array.of(-1, 0, 0), sections), /cut off/);
});

test("the store keeps what is of its flow and link, and the present queue alone", () => {
  const store = new Store(1, 0);
  store.take(Float64Array.of(2, 0.1, 0, 5, 6, 7, 0.2, 1, 8, 9, 10, 2, 0.1, 1, 1, 3, 0.1, 0, 0, 4, 2, 0, 1, 0, 100, NaN, 1, 1, 0, 50, 0), sections, () => names);
  assert.equal(store.decisions.length, 1);
  assert.deepEqual([0, 1, 2, 3].map((column) => store.decisions.at(0, column)), [0.2, 8, 9, 10]);
  assert.deepEqual([...store.internals.keys()], ["b"]);
  assert.deepEqual(store.waiting, [{ flow: 1, size: 100 }]);
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
  assert.deepEqual(gridded(columns, 1, 0, 0.1, 5, "mean"), [null, 1, null, 3, null]);
  assert.deepEqual(gridded(columns, 1, 0, 0.5, 2, "mean").map((value) => value?.toFixed(4)), ["2.3333", undefined]);
  assert.deepEqual(held(columns, 1, 0.2, 0.1, 5, 0.5), [1, 2, 2, 2, null], "nothing after the present, and nothing where there is no value");
});

const more = [
  { name: "queues", columns: ["t_s", "link", "packets", "bytes"] },
  { name: "frames", columns: ["flow", "video", "frame", "size", "key", "captured_s", "complete_s", "rendered_s"] },
  { name: "waiting", columns: ["link", "flow", "kind", "size", "since_s"] },
];

test("frames of sound are no pictures", () => {
  const store = new Store(1, 0);
  const frame = (video: number, captured: number): number[] => [1, video, 0, 500, 0, captured, NaN, NaN];
  store.take(Float64Array.of(0, 3, ...frame(1, 0.1), ...frame(0, 0.3), ...frame(1, 0.2), 0), more, () => names);
  assert.deepEqual(Array.from({ length: store.frames.length }, (_, row) => [FRAME.video, FRAME.captured].map((column) => store.frames.at(row, column))), [[1, 0.1], [1, 0.2]]);
});

test("of a long queue the numbers are true, though not all of it is drawn", () => {
  const store = new Store(1, 0);
  const waiting = (count: number): number[] => [count, ...Array.from({ length: count }, () => [0, 1, 0, 100, 0]).flat()];
  store.take(Float64Array.of(2, 0.1, 0, 400, 40_000, 0.2, 0, 700, 70_000, 0, ...waiting(300)), more, () => names);
  assert.deepEqual(store.waits(), { packets: 700, bytes: 70_000, drawn: 300 });
  assert.equal(waitingWords(store.waits(), ["a 1 kB", "b 2 kB"], false), "700 packets wait, 70.0 kB; 300 of 700 packets drawn");
  store.take(Float64Array.of(0, 0, ...waiting(3)), more, () => names);
  assert.deepEqual(store.waits(), { packets: 3, bytes: 300, drawn: 3 });
  assert.equal(waitingWords(store.waits(), ["a 0.1 kB", "b 0.2 kB"], true), "3 packets wait, 0.3 kB: a 0.1 kB, b 0.2 kB; queues one after the other");
});
