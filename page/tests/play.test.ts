import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parse } from "smol-toml";
import { HUES, HUES_ON_DARK, hues } from "../src/look.ts";
import type { Move } from "../src/moves.ts";
import { readPayload } from "../src/payload.ts";
import { plannedCapacity, valueAt } from "../src/plan.ts";
import { begin, changesFrom, difference, document, lowered, severalQueues, type Play } from "../src/play.ts";
import { fileName, toml } from "../src/toml.ts";
import { topics } from "../src/topics.ts";
import { situation } from "./situation.ts";

declare const ROOT: string;

const cap = (at: number, value: number): Move => ({ at, link: "line.back", key: "capacity", value });
const play = (change: Partial<Play> = {}): Play => ({ ...begin(situation()), ...change });

test("what the engine gets has controller, queue, seed, moves and downloads of the play", () => {
  const made = lowered(play({ queue: "codel", seed: 7, moves: [cap(1000, 5e5), { at: 2000, flow: "download-1", running: true }] }), "nada");
  assert.equal(made.seed, 7);
  assert.deepEqual(made.flows.map((one) => one.is ?? one.tcp ?? one.name), ["nada", "other", true]);
  assert.equal(made.flows[2]!.name, "download-1");
  assert.deepEqual(made.links.map((one) => one.codel), [undefined, true]);
  assert.deepEqual(made.moves, [{ time: 1e9, link: "line.back", change: { capacity: 5e5 } }, { time: 2e9, flow: "download-1", running: true }]);
  assert.throws(() => lowered(play(), "tfrc"), /no controller tfrc/);
});

test("the file says the same, and reads back", () => {
  const given = play({ queue: "codel", seed: 7, moves: [cap(1000, 5e5), { at: 2000, flow: "download-1", running: true }] });
  const found = JSON.parse(JSON.stringify(parse(toml(given, "nada"))));
  assert.equal(found.seed, 7);
  assert.deepEqual(found.flows.map((one: { media?: unknown }) => one.media), [{ max: "2Mbps", controller: "nada" }, {}, undefined]);
  assert.deepEqual(found.flows[2], { name: "download-1", from: "b", to: "a", tcp: {} });
  assert.equal(found.links[0].back.discipline, "codel", "the way back stands in its cable's table");
  assert.deepEqual(found.moves[0], { time: "1s", link: "line.back", key: "capacity", value: "500kbps" });
  assert.equal(given.situation.document.seed, 1, "the page's own document stays");
  assert.equal(fileName(given, "gcc:draft-02,a=1"), "small-gcc-draft-02-a-1.toml");
  assert.equal((document(given, "gcc").flows as unknown[]).length, 3);
});

test("moves of the scenario itself stay before those of the page", () => {
  const own = situation();
  own.lowered.moves = [{ time: 5e9, link: "line.back", change: { capacity: 1e6 } }, { time: 5e9, link: "line.back", change: { delay: 3e7 } }];
  own.document.moves = [{ time: "5s", link: "line.back", key: "capacity", value: "1Mbps" }];
  const given = play({ situation: own, moves: [cap(5000, 4e5), cap(2000, 3e5)] });
  assert.deepEqual(changesFrom(given, "line.back", 5000).map((one) => one.change!.capacity ?? one.change!.delay), [1e6, 3e7, 4e5]);
  assert.equal((document(given, "gcc").moves as unknown[]).length, 3);
  assert.equal(valueAt(given, "delay", 4999), 2e7);
  assert.equal(valueAt(given, "delay", 5000), 3e7);
  const plan = plannedCapacity(given);
  assert.deepEqual([0, 1.9, 2, 4.9, 5].map((at) => plan?.at(at)), [2e6, 2e6, 3e5, 3e5, 4e5]);
});

test("changes to come are told to a running world, all else makes it anew", () => {
  const before = play({ moves: [cap(1000, 1)] });
  const past = before.moves[0]!;
  assert.deepEqual(difference(before, before, 5000), []);
  assert.deepEqual(difference(before, { ...before, moves: [past, cap(5000, 2)] }, 5000), ["line.back"]);
  assert.equal(difference(before, { ...before, moves: [past, cap(4999, 2)] }, 5000), null);
  assert.equal(difference(before, { ...before, moves: [] }, 5000), null, "undo of what has happened");
  assert.deepEqual(difference({ ...before, moves: [past, cap(6000, 2)] }, before, 5000), ["line.back"], "undo of what is planned");
  assert.equal(difference(before, { ...before, moves: [past, { at: 9000, flow: "download-1", running: true }] }, 5000), null);
  for (const change of [{ queue: "codel" }, { seed: 2 }, { situation: situation() }]) assert.equal(difference(before, { ...before, ...change }, 0), null);
});

test("a payload is read, or a sentence says why not", () => {
  const text = JSON.stringify({ version: "1", situations: [situation()] });
  assert.equal(readPayload(text).situations[0]!.id, "small");
  assert.throws(() => readPayload("/*PAYLOAD*/null"), /has no scenario/);
  assert.throws(() => readPayload("{"), /damaged/);
  assert.throws(() => readPayload(JSON.stringify({ situations: [{ ...situation(), link: "none" }] })), /different versions/);
  const refused = readPayload(JSON.stringify({ situations: [{ id: "a", title: "a", refused: "too large", lowered: {} }] })).situations[0]!;
  assert.equal(refused.refused, "too large");
  assert.deepEqual(begin(refused).controllers, [], "nothing to run, and nothing that fails");
});

test("a payload that only looks like one is refused", () => {
  const good = situation();
  for (const change of [
    { refused: undefined }, { lowered: { ...good.lowered, moves: {} } }, { lowered: { ...good.lowered, moves: [{ time: "1s" }] } }, { contenders: [1] },
    { links: [{}] }, { lesson: {} }, { download: { document: {} } }, { document: { ...good.document, flows: [null] } }, { controllers: { gcc: { name: "x" } } },
  ]) {
    assert.throws(() => readPayload(JSON.stringify({ situations: [{ ...good, ...change }] })), /different versions/, JSON.stringify(change));
  }
});

test("queues of FQ-CoDel and DualPI2 are several", () => {
  const own = situation();
  const found = ["drop_tail", { codel: {} }, { fq_codel: {} }, { dualpi2: {} }].map((discipline) => {
    own.queues.own!.lowered.settings.discipline = discipline;
    return severalQueues(play({ situation: own }));
  });
  assert.deepEqual(found, [false, false, true, true]);
});

test("controllers have the colours of reports", () => {
  const palette = readFileSync(`${ROOT}/python/tidegate/output/palette.py`, "utf8");
  const colours = [...palette.split("DASHES:")[0]!.matchAll(/"(#[0-9a-f]{6})"/g)].map((found) => found[1]);
  assert.deepEqual(colours, [...HUES, ...HUES_ON_DARK]);
  const known = palette.split("KNOWN:")[1]!.split("}")[0]!;
  const pairs = [...known.matchAll(/"([\w-]+)": \((\d), \d\)/g)];
  assert.ok(pairs.length >= 10);
  for (const [, name, hue] of pairs) assert.equal(hues([name!])[0], Number(hue), name);
  assert.deepEqual(hues(["gcc", "gcc:draft-02"]), [0, 1], "two of one algorithm are told apart");
});

test("what a controller notes has a topic, known or by its own name", () => {
  const found = topics(["zeta_ms", "threshold", "compared", "state", "trend"]);
  assert.deepEqual(found.map((one) => one.id), ["trend-over-threshold", "state", "trend", "zeta_ms"]);
  assert.deepEqual(found[0]!.names, ["compared", "threshold"]);
  assert.equal(found[3]!.unit, "ms");
});
