import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateRawSync } from "node:zlib";
import { decode, encode, mark, type Shared } from "../src/fragment.ts";
import { begin } from "../src/play.ts";
import { Runner } from "../src/runner.ts";
import { situation } from "./situation.ts";

const own = situation();
const moves = [
  { at: 1000, link: "line.back", key: "capacity" as const, value: 500_000 }, { at: 1500, flow: "download-1", running: true },
  { at: 2000, link: "line", key: "loss" as const, value: 0.05 }, { at: 3000, flow: "call", path: ["far.back", "near.back"] }, { at: 9000, flow: "download-1", running: false },
];
const shared: Shared = { play: { ...begin(own), controllers: ["nada"], queue: "codel", seed: 9, moves }, at: 1234, speed: 5, notice: null };
const pack = (value: unknown): string => `#p=${deflateRawSync(JSON.stringify(value)).toString("base64url")}`;
const good = { v: 1, id: "small", controllers: ["gcc"], queue: "own", seed: 1, moves: [], at: 0, speed: 1 };

test("a link opens the play that it was made of", async () => {
  const found = await decode(await encode(shared, false), [own]);
  assert.deepEqual(found, shared);
  assert.equal(found!.play.situation, own, "the page's own situation, not a copy");
  assert.equal(await decode("", [own]), null);
  assert.equal((await decode(`#${own.id}`, [own]))?.play.situation, own);
  await assert.rejects(decode("#section", [own]), /link is to "section", which this page does not have/);
});

test("a link that carries the scenario opens where that is not", async () => {
  const fragment = await encode(shared, true);
  const found = await decode(fragment, [situation({ id: "another" })]);
  assert.deepEqual(found!.play.moves, moves);
  assert.equal(found!.play.situation.id, "small");
  assert.deepEqual(Object.keys(found!.play.situation.queues), ["own", "codel"]);
  await assert.rejects(decode(await encode(shared, false), [situation({ id: "another" })]), /does not have; available: another/);
});

test("a link that carries another scenario of that name opens that one", async () => {
  const theirs = situation();
  (theirs.document.links as { capacity: string }[])[0]!.capacity = "1Mbps";
  assert.notEqual(mark(theirs), mark(own));
  const given = { ...shared, play: { ...shared.play, situation: theirs } };
  const found = await decode(await encode(given, true), [own]);
  assert.deepEqual(found!.play.situation.document, theirs.document);
  assert.equal(found!.notice, null);
  assert.equal((await decode(await encode(shared, true), [own]))!.play.situation, own, "the same is had from the page, with all its controllers");
  const without = await decode(await encode(given, false), [own]);
  assert.equal(without!.play.situation, own);
  assert.match(without!.notice!, /another version of the scenario small; this page opens it with its own version/);
  const seed = { ...own, document: { ...own.document, seed: 77 } };
  assert.equal((await decode(await encode({ ...shared, play: { ...shared.play, situation: seed } }, false), [own]))!.notice, null, "a play has its own seed");
});

test("what is carried must be a scenario that can be played", async () => {
  for (const change of [{ refused: "no" }, { refused: undefined }, { id: "else" }, { lowered: { ...own.lowered, moves: 5 } }, { contenders: [{}] }]) {
    await assert.rejects(decode(pack({ ...good, situation: { ...own, ...change } }), [own]), /its scenario does not have the form that this page expects/, JSON.stringify(change));
  }
});

test("what could not be opened is not made", async () => {
  const large = situation({ traces: ["x".repeat(4_000_000)] });
  const play = { ...shared.play, situation: large };
  await assert.rejects(encode({ ...shared, play }, true), /too large for a link: 4\.0 MB/);
  assert.ok((await encode({ ...shared, play }, false)).length < 1000);
});

test("there are no more changes than a scenario may have", async () => {
  const many = (count: number): unknown => ({ ...good, moves: Array.from({ length: count }, (_, at) => ({ at, link: "line", key: "loss", value: 0 })) });
  assert.equal((await decode(pack(many(10_000)), [own]))!.play.moves.length, 10_000);
  await assert.rejects(decode(pack(many(10_001)), [own]), /10001 changes; expected at most 10000/);
  const runner = new Runner({ ...begin(own), moves: Array.from({ length: 9999 }, (_, at) => ({ at, link: "line", key: "loss" as const, value: 0 })) });
  const counts: number[] = [];
  runner.full = (count) => counts.push(count);
  assert.equal(runner.add({ at: 20_000, link: "line", key: "loss", value: 0 }), true);
  assert.equal(runner.add({ at: 20_001, link: "line", key: "loss", value: 0 }), false);
  assert.deepEqual([runner.play.moves.length, counts], [10_000, [10_001]]);
});

test("without the means to unpack it says so", async () => {
  const fragment = await encode(shared, false);
  const { CompressionStream, DecompressionStream } = globalThis;
  try {
    Object.assign(globalThis, { CompressionStream: undefined, DecompressionStream: undefined });
    await assert.rejects(decode(fragment, [own]), /no DecompressionStream/);
    await assert.rejects(encode(shared, false), /no CompressionStream/);
  } finally {
    Object.assign(globalThis, { CompressionStream, DecompressionStream });
  }
});

test("a broken link is a sentence that says what is wrong", async () => {
  const whole = await encode(shared, false);
  for (const [fragment, sentence] of [
    ["#p=", /damaged/], ["#p=%%%", /damaged/], [whole.slice(0, -9), /damaged/], ["#p=AAAA", /damaged/], [pack(null), /broken/], [pack({ ...good, v: 2 }), /another version/],
    [pack({ ...good, controllers: [] }), /controllers is \[\]; expected one or two of gcc, nada/], [pack({ ...good, controllers: ["x"] }), /one or two/],
    [pack({ ...good, queue: "toString" }), /queue is "toString"/], [pack({ ...good, seed: -1 }), /seed is -1/], [pack({ ...good, seed: "1" }), /seed/],
    [pack({ ...good, at: 60_001 }), /time is 60001/], [pack({ ...good, speed: 99 }), /speed/], [pack({ ...good, moves: {} }), /list of changes/],
    [pack({ ...good, moves: [{ at: 0.5 }] }), /change 1/], [pack({ ...good, moves: [{ at: 1, link: "x", key: "loss", value: 0 }] }), /a link that can be changed: line, line.back/],
    [pack({ ...good, moves: [{ at: 1, link: "line", key: "loss", value: 2 }] }), /fraction from 0 to 1/],
    [pack({ ...good, moves: [{ at: 1, link: "line", key: "constructor", value: 2 }] }), /capacity, delay or loss/],
    [pack({ ...good, moves: [{ at: 1, link: "line", key: "capacity", value: 1.5 }] }), /whole bit/],
    [pack({ ...good, moves: [{ at: 1, flow: "call", running: true }] }), /one start and at most one end/],
    [pack({ ...good, moves: [{ at: 1, flow: "call", path: ["line"] }] }), /a path that the call can take/], [pack({ ...good, moves: [{ at: 1, flow: "other", path: ["line.back"] }] }), /a path that the call can take/], [pack({ ...good, moves: [{ at: 1, flow: "download-1", running: false }] }), /one start and at most one end/],
    [pack({ ...good, pad: "x".repeat(5_000_000) }), /damaged/],
  ] as const) {
    await assert.rejects(decode(fragment, [own]), sentence, fragment.slice(0, 60));
  }
});
