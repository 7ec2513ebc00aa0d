import assert from "node:assert/strict";
import { test } from "node:test";
import { begin } from "../src/play.ts";
import { Runner } from "../src/runner.ts";
import { situation } from "./situation.ts";

test("a world that breaks off is said, and the page goes on", () => {
  const runner = new Runner(begin(situation()));
  runner.seek(1000);
  assert.equal(runner.frame(16), true);
  assert.match(runner.error!, /unreachable/);
  runner.add({ at: 500, link: "line", key: "loss", value: 0.1 });
  assert.equal(runner.error, null);
  runner.frame(16);
  assert.match(runner.error!, /unreachable/, "tried again from the seed");
  assert.equal(runner.undo(), true);
  runner.open(begin(situation()));
  assert.equal(runner.error, null);
});

test("reset keeps what was chosen, and takes changes back", () => {
  const runner = new Runner({ ...begin(situation()), controllers: ["nada"], queue: "codel", seed: 5, moves: [{ at: 1, link: "line", key: "loss", value: 0.1 }] });
  runner.reset();
  const { controllers, queue, seed, moves } = runner.play;
  assert.deepEqual({ controllers, queue, seed, moves }, { controllers: ["nada"], queue: "codel", seed: 5, moves: [] });
});
