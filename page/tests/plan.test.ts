import assert from "node:assert/strict";
import { test } from "node:test";
import { isLinkMove, type LinkMove, type Move } from "../src/moves.ts";
import { capacityKind, ownValue, plannedCapacity, switched, valueAt, withGap } from "../src/plan.ts";
import { begin, type Play } from "../src/play.ts";
import { situation } from "./situation.ts";

const link = "line.back";
const cap = (at: number, value: number): LinkMove => ({ at, link, key: "capacity", value });
const play = (change: Partial<Play> = {}, capacity?: unknown): Play => {
  const own = situation();
  if (capacity !== undefined) own.queues.own!.lowered.capacity = capacity;
  return { ...begin(own), ...change };
};
const capacities = (moves: readonly Move[]): [number, number][] => moves.filter(isLinkMove).filter((one) => one.key === "capacity").map((one) => [one.at, one.value]);
const periodic = { schedule: { steps: [[0, 1e6], [1e9, 2e6]], period: 2e9 } };
const once = { schedule: { steps: [[0, 4e6], [20e9, 1e6], [35e9, 3e6]], period: null } };

test("a schedule holds until the first change, a recording is unknown until then", () => {
  assert.deepEqual([0, 1.5, 2, 2.5, 3.5].map((at) => plannedCapacity(play({}, periodic))?.at(at)), [1e6, 2e6, 1e6, 1e6, 2e6]);
  assert.deepEqual([1.5, 2.5, 3.5].map((at) => plannedCapacity(play({ moves: [cap(2000, 5)] }, periodic))?.at(at)), [2e6, 5, 5]);
  const recorded = { trace: { index: 0 } };
  assert.equal(plannedCapacity(play({}, recorded)), null);
  assert.deepEqual([1.5, 2.5].map((at) => plannedCapacity(play({ moves: [cap(2000, 5)] }, recorded))?.at(at)), [NaN, 5]);
  assert.deepEqual([undefined, once, recorded].map((one) => capacityKind(play({}, one))), ["constant", "schedule", "unknown"]);
});

test("a period of milliseconds repeats until the end of the longest run", () => {
  const plan = plannedCapacity(play({}, { schedule: { steps: [[0, 1e6], [5e6, 2e6]], period: 1e7 } }))!;
  assert.deepEqual([50, 59.994, 59.996, 3600.001].map((at) => plan.at(at)), [1e6, 1e6, 2e6, 1e6]);
  assert.deepEqual(plan.steps(3599.99, 3600), [[3599.995, 2e6], [3600, 1e6]]);
});

test("steps are those after a time, until another", () => {
  assert.deepEqual(plannedCapacity(play({}, periodic))!.steps(1, 4), [[2, 1e6], [3, 2e6], [4, 1e6]]);
  assert.deepEqual(plannedCapacity(play({ moves: [cap(2500, 5)] }, periodic))!.steps(1, 9), [[2, 1e6], [2.5, 5]]);
});

test("after an outage a schedule goes on", () => {
  assert.deepEqual(capacities(withGap(play({}, once), 5000, 7000, 9)), [[5000, 0], [7000, 4e6], [20_000, 1e6], [35_000, 3e6]]);
  assert.deepEqual(capacities(withGap(play({}, once), 19_000, 21_000, 9)), [[19_000, 0], [21_000, 1e6], [35_000, 3e6]]);
  const again = withGap(play({ moves: withGap(play({}, once), 5000, 7000, 9) }, once), 19_500, 20_500, 9);
  assert.deepEqual(capacities(again), [[5000, 0], [7000, 4e6], [19_500, 0], [20_500, 1e6], [35_000, 3e6]]);
  const rest = capacities(withGap(play({}, periodic), 55_200, 57_200, 9));
  assert.deepEqual(rest, [[55_200, 0], [57_200, 2e6], [58_000, 1e6], [59_000, 2e6], [60_000, 1e6]]);
});

test("nothing ends an outage early", () => {
  const own = situation();
  own.lowered.moves = [{ time: 6e9, link, change: { capacity: 1e6 } }, { time: 6.5e9, link: "line", change: { capacity: 2e6 } }, { time: 7.5e9, link, change: { capacity: 8e5 } }];
  const given = { ...begin(own), moves: [cap(6200, 3e5), cap(9000, 5e5)] };
  assert.deepEqual(capacities(withGap(given, 5000, 7000, 9)), [[5000, 0], [6000, 0], [7000, 3e5], [9000, 5e5]]);
  const after = plannedCapacity({ ...given, moves: withGap(given, 5000, 7000, 9) })!;
  assert.deepEqual([4.9, 5, 6, 6.9, 7, 7.5, 9].map((at) => after.at(at)), [2e6, 0, 0, 0, 3e5, 8e5, 5e5], "as it was planned");
});

test("afterwards it is as planned, or as it was last where nobody knows", () => {
  assert.deepEqual(capacities(withGap(play(), 5000, 7000, 9)), [[5000, 0], [7000, 2e6]]);
  assert.deepEqual(capacities(withGap(play({}, { brownian: {} }), 5000, 7000, 9)), [[5000, 0], [7000, 9]]);
  const twice = withGap(play({ moves: withGap(play(), 5000, 7000, 9) }), 6000, 8000, 9);
  assert.deepEqual(capacities(twice), [[5000, 0], [6000, 0], [8000, 2e6]]);
});

test("delay and loss at a time are those of the last change, whoever made it", () => {
  const own = situation();
  own.lowered.moves = [{ time: 5e9, link, change: { delay: 3e7 } }, { time: 9e9, link, change: { loss: { bernoulli: 0.02 } } }];
  const moves: Move[] = [{ at: 2000, link, key: "delay", value: 4e7 }, { at: 9500, link, key: "loss", value: 0.05 }];
  const given = { ...begin(own), moves };
  assert.deepEqual([0, 2000, 5000].map((at) => valueAt(given, "delay", at)), [2e7, 4e7, 3e7]);
  assert.deepEqual([0, 9000, 9500].map((at) => valueAt(given, "loss", at)), [0, 0.02, 0.05]);
  own.lowered.moves.push({ time: 9.6e9, link, change: { loss: { gilbert_elliott: {} } } });
  assert.equal(valueAt(given, "loss", 9600), null, "a process decides");
});

test("what is recorded, drawn or a process is no plain value", () => {
  const own = situation({ traces: [{ name: "x", delay: [[0, 1]] }] });
  const given = begin(own);
  const { lowered } = own.queues.own!;
  lowered.settings.loss = { bernoulli: 0.01 };
  assert.deepEqual([ownValue(given, "delay"), ownValue(given, "loss")], [2e7, 0.01]);
  lowered.capacity = { trace: { index: 0, capacity_only: false } };
  assert.deepEqual([ownValue(given, "delay"), ownValue(given, "loss")], [null, 0.01]);
  lowered.capacity = { trace: { index: 0, capacity_only: true } };
  assert.equal(ownValue(given, "delay"), 2e7);
  lowered.capacity = { leo: {} };
  assert.deepEqual([ownValue(given, "delay"), ownValue(given, "loss")], [null, null]);
  lowered.capacity = { constant: 1 };
  lowered.settings.loss = { gilbert_elliott: {} };
  assert.equal(ownValue(given, "loss"), null);
});

test("loss switched off is the link's own loss again", () => {
  const losses = (moves: readonly Move[]): unknown[] => moves.map((one) => [one.at, "value" in one && one.value]);
  const lossy = (loss: unknown): Play => {
    const given = play();
    given.situation.queues.own!.lowered.settings.loss = loss;
    return given;
  };
  for (const [loss, back] of [["none", 0], [{ bernoulli: 0.01 }, 0.01], [{ gilbert_elliott: {} }, 0]] as const) {
    const given = lossy(loss);
    const on = switched(given, 1000, 0.05);
    assert.deepEqual(losses(on), [[1000, 0.05]]);
    assert.deepEqual(losses(switched({ ...given, moves: on }, 3000, 0.05)), [[1000, 0.05], [3000, back]]);
    assert.deepEqual(switched({ ...given, moves: on }, 1000, 0.05), [], "what has not happened is taken back");
  }
});
