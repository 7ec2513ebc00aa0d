import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { roundTop } from "../src/chart.ts";
import { ofFlow, ROWS, cellText } from "../src/numbers.ts";

declare const ROOT: string;

test("the table has the engine's labels, units, factors and digits", () => {
  const rows = readFileSync(`${ROOT}/crates/sim/src/record/metrics.rs`, "utf8");
  for (const [key, label, unit, factor, digits] of ROWS) {
    const found = new RegExp(`^ +${key}: .* => "([^"]*)", "([^"]*)", \\w+, ([\\d.e-]+), (\\d)`, "m").exec(rows);
    assert.ok(found, key);
    const name = label === "frames shown" ? "frames rendered" : label;
    assert.deepEqual([found[1], found[2], Number(found[3]), key === "freezes" ? 0 : Number(found[4])], [name, unit, factor, digits], key);
  }
});

test("numbers that are not there are a dash", () => {
  assert.deepEqual([cellText(2_493_663, 1e-6, 2), cellText(null, 1, 1), cellText(NaN, 1, 1), cellText("x", 1, 1)], ["2.49", "–", "–", "–"]);
  assert.deepEqual(ofFlow({ flows: [{ flow: "a", x: 1 }, { flow: "b", x: 2 }] }, "b"), { flow: "b", x: 2 });
  assert.deepEqual(ofFlow({}, "b"), {});
});

test("scales end at round numbers not below what is shown", () => {
  assert.deepEqual([0, 1, 1.01, 2.2, 4.9e6, 8, 0.03].map(roundTop), [1, 1, 1.5, 3, 5e6, 10, 0.03]);
});
