import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateRawSync } from "node:zlib";
import { decode, encode, type Shared } from "../src/fragment.ts";
import { begin } from "../src/play.ts";
import { situation } from "./situation.ts";

const own = situation();
const moves = [
  { at: 1000, link: "line.back", key: "capacity" as const, value: 500_000 }, { at: 1500, flow: "download-1", running: true },
  { at: 2000, link: "line", key: "loss" as const, value: 0.05 }, { at: 9000, flow: "download-1", running: false },
];
const shared: Shared = { play: { ...begin(own), controllers: ["nada"], queue: "codel", seed: 9, moves }, at: 1234, speed: 5 };
const pack = (value: unknown): string => `#p=${deflateRawSync(JSON.stringify(value)).toString("base64url")}`;
const good = { v: 1, id: "small", controllers: ["gcc"], queue: "own", seed: 1, moves: [], at: 0, speed: 1 };

test("a link opens the play that it was made of", async () => {
  const found = await decode(await encode(shared, false), [own]);
  assert.deepEqual(found, shared);
  assert.equal(found!.play.situation, own, "the page's own situation, not a copy");
  assert.equal(await decode("", [own]), null);
  assert.equal((await decode(`#${own.id}`, [own]))?.play.situation, own);
  await assert.rejects(decode("#section", [own]), /link is to "section", which this page does not carry/);
});

test("a link that carries the scenario opens where that is not", async () => {
  const fragment = await encode(shared, true);
  const found = await decode(fragment, [situation({ id: "another" })]);
  assert.deepEqual(found!.play.moves, moves);
  assert.equal(found!.play.situation.id, "small");
  assert.deepEqual(Object.keys(found!.play.situation.queues), ["own", "codel"]);
  await assert.rejects(decode(await encode(shared, false), [situation({ id: "another" })]), /does not carry; it has another/);
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
    [pack({ ...good, moves: [{ at: 1, flow: "call", running: true }] }), /begins once/], [pack({ ...good, moves: [{ at: 1, flow: "download-1", running: false }] }), /begins once/],
    [pack({ ...good, pad: "x".repeat(5_000_000) }), /damaged/],
  ] as const) {
    await assert.rejects(decode(fragment, [own]), sentence, fragment.slice(0, 60));
  }
});
