import assert from "node:assert/strict";
import { test } from "node:test";
import { add, describe, documentMove, ended, loweredMove, nextDownload, ownPaths, pathAt, rate, remove, roundRate, running, type Move } from "../src/moves.ts";
import { situation } from "./situation.ts";

const capacity = (at: number, value: number): Move => ({ at, link: "line", key: "capacity", value });

test("changes stand in order of time, and one of the same thing at the same time replaces the other", () => {
  let moves: Move[] = [];
  for (const move of [capacity(500, 1), capacity(100, 2), capacity(500, 3), { at: 500, link: "line", key: "loss", value: 0.05 } as const]) moves = add(moves, move);
  assert.deepEqual(moves.map((one) => [one.at, "value" in one && one.value]), [[100, 2], [500, 3], [500, 0.05]]);
});

test("a list that was shown stays as it was", () => {
  const before = Object.freeze([capacity(1, 1)]) as Move[];
  assert.equal(add(before, capacity(2, 2)).length, 2);
  assert.equal(remove(before, before[0]!).length, 0);
  assert.equal(before.length, 1);
});

test("a download begins once and ends once, and its beginning takes its end along", () => {
  const begins: Move = { at: 5, flow: "download-1", running: true };
  const ends: Move = { at: 9, flow: "download-1", running: false };
  const moves = add(add([], ends), begins);
  assert.deepEqual([4, 5, 8, 9].map((at) => running(moves, at).length), [0, 1, 1, 0]);
  assert.deepEqual(remove(moves, begins), []);
  assert.deepEqual(remove(moves, ends), [begins]);
  assert.equal(nextDownload(moves, ["download-2"]), "download-3");
});

test("a download ends at the present, earlier than planned, and one that has just begun is gone", () => {
  const begins: Move = { at: 5, flow: "download-1", running: true };
  const ends: Move = { at: 9, flow: "download-1", running: false };
  assert.deepEqual(ended([begins, ends], 7), [begins, { ...ends, at: 7 }]);
  assert.deepEqual(ended([begins], 5), []);
  assert.deepEqual(ended([begins, ends], 9), [begins, ends], "it has ended");
  assert.deepEqual(ended([begins], 4), [begins], "it has not begun");
});

test("a call goes over to another path and back, and both are told in all forms", () => {
  const there: Move = { at: 500, flow: "call", path: ["far.back", "near.back"] };
  const home: Move = { at: 900, flow: "call", path: ["line.back"] };
  const moves = add(add([{ at: 500, flow: "call", running: true }, capacity(500, 1)], home), there);
  assert.equal(moves.length, 4, "a path is no beginning of a download");
  assert.deepEqual(add(moves, { ...there, path: ["line.back"] }).length, 4, "it replaces the other one of its time");
  assert.deepEqual([0, 500, 899, 900].map((at) => pathAt(moves, ["line.back"], at).length), [1, 2, 2, 1]);
  assert.deepEqual(loweredMove(there), { time: 500_000_000, flow: "call", path: ["far.back", "near.back"], back: ["near", "far"], signalled: true });
  assert.deepEqual(documentMove(there), { time: "0.5s", flow: "call", key: "path", value: ["far.back", "near.back"] });
  assert.equal(describe(there, "line"), "0.50 s: call goes over far.back, near.back");
  assert.deepEqual(remove(moves, there).filter((move) => "path" in move), [home]);
  const own = situation();
  own.lowered.moves = [{ time: 700_000_000, flow: "call", path: ["line.back"], back: ["line"] }, { time: 1, flow: "other", path: ["x"] }];
  assert.deepEqual(ownPaths(own), [{ at: 700, flow: "call", path: ["line.back"] }]);
  assert.deepEqual(pathAt([...ownPaths(own), there], ["line.back"], 800), ["line.back"], "the later one holds");
});

test("rates have three significant digits", () => {
  assert.deepEqual([1_234_567, 999_999, 12_345, 7, 0, -3, NaN].map(roundRate), [1_230_000, 1_000_000, 12_300, 7, 0, 0, 0]);
});

test("the engine and the document are told the same", () => {
  assert.deepEqual(loweredMove(capacity(12_350, 500_000)), { time: 12_350_000_000, link: "line", change: { capacity: 500_000 } });
  assert.deepEqual(loweredMove({ at: 1, link: "line", key: "loss", value: 0.07 }).change, { loss: { bernoulli: 0.07 } });
  assert.deepEqual(documentMove(capacity(12_350, 500_000)), { time: "12.35s", link: "line", key: "capacity", value: "500kbps" });
  assert.deepEqual(documentMove({ at: 1, link: "line", key: "delay", value: 35_000_001 }), { time: "0.001s", link: "line", key: "delay", value: "35000001ns" });
  assert.equal(documentMove({ at: 1, link: "line", key: "loss", value: 0.07 }).value, "7%");
  assert.deepEqual(documentMove({ at: 0, flow: "d", running: true }), { time: "0s", flow: "d", key: "running", value: true });
  assert.deepEqual([0, 999, 1230, 1_230_000, 1_234_567, 5e9].map(rate), ["0bps", "999bps", "1.23kbps", "1.23Mbps", "1234.567kbps", "5Gbps"]);
  assert.equal(describe(capacity(12_350, 500_000), "other"), "12.35 s: capacity of line 500 kbit/s");
  assert.equal(describe(capacity(12_350, 500_000), "line"), "12.35 s: capacity 500 kbit/s");
});
