/** The link to share: a play in the address's fragment, `#p=` with base64url of deflated JSON. */

import { isSituation, type Situation } from "./payload.ts";
import { add, MOST_MOVES, type Key, type Move } from "./moves.ts";
import { begin, type Play } from "./play.ts";

export interface Shared {
  play: Play;
  /** Where it stood, in ms. */
  at: number;
  speed: number;
  /** What is to be said about it. */
  said: string | null;
}

/** How much a fragment may unpack to: a link is no place for recordings. */
const LARGEST = 4_000_000;

async function through(bytes: Uint8Array, stream: GenericTransformStream): Promise<Uint8Array> {
  const writer = (stream.writable as WritableStream<Uint8Array>).getWriter();
  // what goes wrong shows at the reader, too
  writer.write(bytes).catch(() => undefined);
  writer.close().catch(() => undefined);
  const parts: Uint8Array[] = [];
  let size = 0;
  const reader = (stream.readable as ReadableStream<Uint8Array>).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > LARGEST) throw new Error("too large");
    parts.push(value);
  }
  const all = new Uint8Array(size);
  let place = 0;
  for (const part of parts) {
    all.set(part, place);
    place += part.length;
  }
  return all;
}

/** The fragment of a play, with `#`.
 *
 * @param whole Whether the situation itself goes into it, for pages that do not carry it.
 * @throws Error with a sentence when that is too large for a link.
 */
export async function encode(shared: Omit<Shared, "said">, whole: boolean): Promise<string> {
  const { play } = shared;
  const { situation } = play;
  const made = {
    v: 1, id: situation.id, controllers: play.controllers, queue: play.queue, seed: play.seed, moves: play.moves,
    at: shared.at, speed: shared.speed, ...(whole ? { situation: slim(play) } : { of: mark(situation) }),
  };
  const bytes = new TextEncoder().encode(JSON.stringify(made));
  if (bytes.length > LARGEST) {
    throw new Error(`This play is too large for a link: ${(bytes.length / 1e6).toFixed(1)} MB, of which ${LARGEST / 1e6} MB can be opened. ${whole ? "A link without the scenario is shorter; the page itself can be given away, as `tidegate play --out` writes it." : "It has too many changes."}`);
  }
  if (typeof CompressionStream !== "function") throw new Error(`This browser cannot pack a link: it has no CompressionStream. ${SINCE}`);
  const packed = await through(bytes, new CompressionStream("deflate-raw"));
  let text = "";
  for (const byte of packed) text += String.fromCharCode(byte);
  return `#p=${btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

const SINCE = "Chrome 80, Firefox 113, Safari 16.4 and later have it.";

/** A short mark of what a situation is (32-bit FNV-1a), by which a link knows its scenario again. A play has its own seed. */
export function mark({ document, flow, link }: Situation): string {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(JSON.stringify([{ ...document, seed: 0 }, flow, link]))) hash = Math.imul(hash ^ byte, 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}

/** A situation with no more controllers and queues than its play has. */
function slim(play: Play): Situation {
  const { situation } = play;
  const pick = <T>(all: Record<string, T>, words: readonly string[]): Record<string, T> =>
    Object.fromEntries(words.filter((word) => word in all).map((word) => [word, all[word] as T]));
  const own = Object.keys(situation.queues)[0] ?? "";
  return {
    ...situation,
    controllers: pick(situation.controllers, [...situation.contenders, ...play.controllers]),
    queues: pick(situation.queues, [own, play.queue]),
  };
}

/** The play in a fragment; null where there is none.
 *
 * @throws Error with a sentence when the fragment is broken or names what this page does not have.
 */
export async function decode(fragment: string, situations: readonly Situation[]): Promise<Shared | null> {
  const name = fragment.replace(/^#/, "");
  const text = new URLSearchParams(name).get("p");
  if (text === null) return name === "" ? null : named(name, situations);
  if (typeof DecompressionStream !== "function") throw new Error(`This browser cannot unpack the link: it has no DecompressionStream. ${SINCE}`);
  let found: unknown;
  try {
    const packed = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (char) => char.charCodeAt(0));
    found = JSON.parse(new TextDecoder().decode(await through(packed, new DecompressionStream("deflate-raw"))));
  } catch {
    throw new Error("The link is damaged: what follows #p= cannot be unpacked. Perhaps its end is missing.");
  }
  return checked(found, situations);
}

/** The beginning of a situation that is named plainly: `#buffer-bloat`. */
function named(name: string, situations: readonly Situation[]): Shared {
  const situation = situations.find((one) => one.id === name);
  if (!situation) throw unknown(name, situations);
  return { play: begin(situation), at: 0, speed: 1, said: null };
}

function unknown(name: unknown, situations: readonly Situation[]): Error {
  const names = situations.map((one) => one.id).join(", ");
  return new Error(`The link is to ${JSON.stringify(name) ?? "nothing"}, which this page does not carry; it has ${names}. A link with the scenario in it opens in every page.`);
}

const broken = (what: string, found: unknown, right: string): Error =>
  new Error(`The link is broken: its ${what} is ${JSON.stringify(found) ?? "missing"}; expected ${right}.`);

function checked(found: unknown, situations: readonly Situation[]): Shared {
  if (typeof found !== "object" || found === null || !("v" in found)) throw broken("content", found, "a play");
  const given = found as Record<string, unknown>;
  if (given.v !== 1) throw new Error(`The link is of another version of this page (${JSON.stringify(given.v)}; this one reads 1).`);
  const own = situations.find((one) => one.id === given.id);
  const carried = carries(given);
  // the same is better had from the page, which has all controllers and queues of it
  const situation = carried && (!own || mark(own) !== mark(carried)) ? carried : own;
  if (!situation) throw unknown(given.id, situations);
  if (situation.refused !== null) return { play: begin(situation), at: 0, speed: 1, said: null };
  const other = !carried && given.of !== undefined && given.of !== mark(situation);
  const { controllers, queue, seed, at, speed } = given;
  const words = Object.keys(situation.controllers);
  if (!Array.isArray(controllers) || controllers.length < 1 || controllers.length > 2 || !controllers.every((one) => words.includes(one))) {
    throw broken("list of controllers", controllers, `one or two of ${words.join(", ")}`);
  }
  if (typeof queue !== "string" || !Object.hasOwn(situation.queues, queue)) {
    throw broken("queue", queue, `one of ${Object.keys(situation.queues).join(", ")}`);
  }
  if (!isWhole(seed, Number.MAX_SAFE_INTEGER)) throw broken("seed", seed, "a whole number");
  const end = situation.lowered.duration / 1e6;
  if (!isWhole(at, end)) throw broken("time", at, `whole milliseconds up to ${end}`);
  if (typeof speed !== "number" || !(speed >= 0.5 && speed <= 50)) throw broken("speed", speed, "0.5 to 50");
  const said = other ? `The link was made with another version of the scenario ${situation.id}; the play is opened with this page's.` : null;
  return { play: { situation, controllers, queue, seed, moves: checkedMoves(given.moves, situation, end) }, at, speed, said };
}

/** The situation that a link carries itself. */
function carries({ id, situation }: Record<string, unknown>): Situation | null {
  if (situation === undefined) return null;
  // one that cannot be played has nothing to play
  if (!isSituation(situation) || situation.refused !== null || situation.id !== id) {
    throw new Error("The link is broken: the scenario in it is not what this page expects. Perhaps it was made by another version of tidegate.");
  }
  return situation;
}

const isWhole = (value: unknown, most: number): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= most;

/** What each key of a link may be. */
export const LIMITS: Record<Key, { most: number; whole: boolean; right: string }> = {
  capacity: { most: 1e12, whole: true, right: "whole bit/s" },
  delay: { most: 60e9, whole: true, right: "whole nanoseconds up to 60 s" },
  loss: { most: 1, whole: false, right: "a fraction from 0 to 1" },
};

function checkedMoves(found: unknown, situation: Situation, end: number): Move[] {
  if (!Array.isArray(found)) throw broken("list of changes", found, "a list");
  const most = MOST_MOVES - (situation.lowered.moves?.length ?? 0);
  if (found.length > most) throw new Error(`The link is broken: it has ${found.length} changes; expected at most ${most}, as in a scenario.`);
  let moves: Move[] = [];
  const state = new Map<string, boolean>();
  for (const [place, one] of found.entries()) {
    const what = `change ${place + 1}`;
    if (typeof one !== "object" || one === null || !isWhole(one.at, end)) throw broken(what, one, `a time in whole milliseconds up to ${end}`);
    if ("flow" in one) {
      const fits = situation.download !== null && /^download-\d{1,6}$/.test(one.flow) && typeof one.running === "boolean" &&
        !situation.lowered.flows.some((flow) => flow.name === one.flow) && state.get(one.flow) === (one.running ? undefined : true);
      if (!fits) throw broken(what, one, "a download that begins once and ends once");
      state.set(one.flow, one.running);
      moves = add(moves, { at: one.at, flow: one.flow, running: one.running });
      continue;
    }
    if (!situation.links.includes(one.link)) throw broken(what, one, `a link that can be changed: ${situation.links.join(", ")}`);
    const limit = Object.hasOwn(LIMITS, one.key) ? LIMITS[one.key as Key] : undefined;
    if (!limit) throw broken(what, one, "capacity, delay or loss");
    const fits = typeof one.value === "number" && one.value >= 0 && one.value <= limit.most && (!limit.whole || Number.isInteger(one.value));
    if (!fits) throw broken(what, one, limit.right);
    moves = add(moves, { at: one.at, link: one.link, key: one.key, value: one.value });
  }
  return moves;
}
