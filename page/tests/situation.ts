/** A small situation for tests: a link that is a way back, two controllers, two queues. */

import type { LoweredLink, Situation } from "../src/payload.ts";

const link = (name: string, extra: object = {}): LoweredLink => ({
  name, capacity: { constant: 2_000_000 }, settings: { delay: 20_000_000, loss: "none", discipline: "drop_tail" }, ...extra,
});

export function situation(change: Partial<Situation> = {}): Situation {
  return {
    id: "small", title: "Small", about: "", lesson: null,
    document: {
      name: "small", duration: "60s", seed: 1,
      links: [{ name: "line", from: "a", to: "b", capacity: "9Mbps", back: { capacity: "2Mbps" } }],
      flows: [{ name: "call", from: "b", to: "a", media: { max: "2Mbps" } }, { name: "other", from: "a", to: "b", media: {} }],
    },
    lowered: { duration: 60_000_000_000, seed: 1, links: [link("line"), link("line.back")], flows: [{ name: "call", is: "own" }, { name: "other" }] },
    traces: [], flow: "call", link: "line.back", links: ["line", "line.back"], paths: [["line.back"], ["far.back", "near.back"]], contenders: ["gcc", "nada"],
    controllers: { gcc: { name: "call", is: "gcc" }, nada: { name: "call", is: "nada" } },
    queues: {
      own: { title: "own", document: {}, lowered: link("line.back") },
      codel: { title: "CoDel", document: { back: { capacity: "2Mbps", discipline: "codel" } }, lowered: link("line.back", { codel: true }) },
    },
    download: { document: { from: "b", to: "a", tcp: {} }, lowered: { name: "x", tcp: true } },
    refused: null,
    ...change,
  };
}
