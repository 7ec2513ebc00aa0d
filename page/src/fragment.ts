/** The link to share: a play in the address's fragment, `#p=` with base64url of deflated JSON. */

import { isSituation, type Situation } from "./payload.ts";
import { add, MOVES_MAX, type Key, type Move } from "./moves.ts";
import { begin, type Play } from "./play.ts";

export interface Shared {
  play: Play;
  /** Time of the run in ms. */
  at: number;
  speed: number;
  /** A notice about the link, if there is one. */
  notice: string | null;
}

/** Largest size of an unpacked fragment in bytes: a link is no place for recordings. */
const UNPACKED_MAX = 4_000_000;

async function through(bytes: Uint8Array, stream: GenericTransformStream): Promise<Uint8Array> {
  const writer = (stream.writable as WritableStream<Uint8Array>).getWriter();
  // errors of the writer show at the reader, too
  writer.write(bytes).catch(() => undefined);
  writer.close().catch(() => undefined);
  const parts: Uint8Array[] = [];
  let size = 0;
  const reader = (stream.readable as ReadableStream<Uint8Array>).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > UNPACKED_MAX) throw new Error("too large");
    parts.push(value);
  }
  const all = new Uint8Array(size);
  let offset = 0;
  for (const part of parts) {
    all.set(part, offset);
    offset += part.length;
  }
  return all;
}

/** The fragment of a play, with `#`.
 *
 * @param withSituation Whether the situation itself goes into it, for pages that do not carry it.
 * @throws Error with a sentence when that is too large for a link.
 */
export async function encode(shared: Omit<Shared, "notice">, withSituation: boolean): Promise<string> {
  const { play } = shared;
  const { situation } = play;
  const content = {
    v: 1, id: situation.id, controllers: play.controllers, queue: play.queue, seed: play.seed, moves: play.moves,
    at: shared.at, speed: shared.speed, ...(withSituation ? { situation: slim(play) } : { of: mark(situation) }),
  };
  const bytes = new TextEncoder().encode(JSON.stringify(content));
  if (bytes.length > UNPACKED_MAX) {
    throw new Error(`This play is too large for a link: ${(bytes.length / 1e6).toFixed(1)} MB, and at most ${UNPACKED_MAX / 1e6} MB can be opened. ${withSituation ? "Make a link without the scenario, or pass on the page itself, as `tidegate play --out` writes it." : "It has too many changes."}`);
  }
  if (typeof CompressionStream !== "function") throw new Error(`This browser cannot pack a link: it has no CompressionStream. ${SINCE}`);
  const packed = await through(bytes, new CompressionStream("deflate-raw"));
  let text = "";
  for (const byte of packed) text += String.fromCharCode(byte);
  return `#p=${btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

const SINCE = "Use Chrome 80, Firefox 113, Safari 16.4 or later.";

/** A short hash of a situation (32-bit FNV-1a), by which a link recognises its scenario; without the seed, which a play sets. */
export function mark({ document, flow, link }: Situation): string {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(JSON.stringify([{ ...document, seed: 0 }, flow, link]))) hash = Math.imul(hash ^ byte, 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}

/** A situation with only the controllers and queues of its play. */
function slim(play: Play): Situation {
  const { situation } = play;
  const pick = <T>(all: Record<string, T>, words: readonly string[]): Record<string, T> =>
    Object.fromEntries(words.filter((word) => word in all).map((word) => [word, all[word] as T]));
  const firstQueue = Object.keys(situation.queues)[0] ?? "";
  return {
    ...situation,
    controllers: pick(situation.controllers, [...situation.contenders, ...play.controllers]),
    queues: pick(situation.queues, [firstQueue, play.queue]),
  };
}

/** The play in a fragment; null where there is none.
 *
 * @throws Error with a sentence when the fragment is broken or names something that this page does not have.
 */
export async function decode(fragment: string, situations: readonly Situation[]): Promise<Shared | null> {
  const name = fragment.replace(/^#/, "");
  const text = new URLSearchParams(name).get("p");
  if (text === null) return name === "" ? null : situationNamed(name, situations);
  if (typeof DecompressionStream !== "function") throw new Error(`This browser cannot unpack the link: it has no DecompressionStream. ${SINCE}`);
  let content: unknown;
  try {
    const packed = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (char) => char.charCodeAt(0));
    content = JSON.parse(new TextDecoder().decode(await through(packed, new DecompressionStream("deflate-raw"))));
  } catch {
    throw new Error("The link is damaged: what follows #p= cannot be unpacked. Perhaps its end is missing.");
  }
  return checked(content, situations);
}

/** The beginning of a situation that is given by its name: `#buffer-bloat`. */
function situationNamed(name: string, situations: readonly Situation[]): Shared {
  const situation = situations.find((situation) => situation.id === name);
  if (!situation) throw unknown(name, situations);
  return { play: begin(situation), at: 0, speed: 1, notice: null };
}

function unknown(name: unknown, situations: readonly Situation[]): Error {
  const names = situations.map((situation) => situation.id).join(", ");
  return new Error(`The link is to ${JSON.stringify(name) ?? "nothing"}, which this page does not have; available: ${names}. A link that includes the scenario opens in every page.`);
}

const broken = (name: string, value: unknown, right: string): Error =>
  new Error(`The link is broken: its ${name} is ${JSON.stringify(value) ?? "missing"}; expected ${right}.`);

function checked(content: unknown, situations: readonly Situation[]): Shared {
  if (typeof content !== "object" || content === null || !("v" in content)) throw broken("content", content, "a play");
  const fields = content as Record<string, unknown>;
  if (fields.v !== 1) throw new Error(`The link is of another version of this page (${JSON.stringify(fields.v)}; this one reads 1).`);
  const ofPage = situations.find((situation) => situation.id === fields.id);
  const carried = carries(fields);
  // the page's copy of the same situation is better: it has all controllers and queues
  const situation = carried && (!ofPage || mark(ofPage) !== mark(carried)) ? carried : ofPage;
  if (!situation) throw unknown(fields.id, situations);
  if (situation.refused !== null) return { play: begin(situation), at: 0, speed: 1, notice: null };
  const differs = !carried && fields.of !== undefined && fields.of !== mark(situation);
  const { controllers, queue, seed, at, speed } = fields;
  const words = Object.keys(situation.controllers);
  if (!Array.isArray(controllers) || controllers.length < 1 || controllers.length > 2 || !controllers.every((word) => words.includes(word))) {
    throw broken("list of controllers", controllers, `one or two of ${words.join(", ")}`);
  }
  if (typeof queue !== "string" || !Object.hasOwn(situation.queues, queue)) {
    throw broken("queue", queue, `one of ${Object.keys(situation.queues).join(", ")}`);
  }
  if (!isWhole(seed, Number.MAX_SAFE_INTEGER)) throw broken("seed", seed, "a whole number");
  const end = situation.lowered.duration / 1e6;
  if (!isWhole(at, end)) throw broken("time", at, `whole milliseconds up to ${end}`);
  if (typeof speed !== "number" || !(speed >= 0.5 && speed <= 50)) throw broken("speed", speed, "0.5 to 50");
  const notice = differs ? `The link was made with another version of the scenario ${situation.id}; this page opens it with its own version.` : null;
  return { play: { situation, controllers, queue, seed, moves: checkedMoves(fields.moves, situation, end) }, at, speed, notice };
}

/** The situation in the link itself. */
function carries({ id, situation }: Record<string, unknown>): Situation | null {
  if (situation === undefined) return null;
  // a situation that cannot be played is of no use in a link
  if (!isSituation(situation) || situation.refused !== null || situation.id !== id) {
    throw new Error("The link is broken: its scenario does not have the form that this page expects. Perhaps another version of tidegate made it.");
  }
  return situation;
}

const isWhole = (value: unknown, max: number): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= max;

/** Limits of the values of each key of a link. */
export const LIMITS: Record<Key, { max: number; integer: boolean; right: string }> = {
  capacity: { max: 1e12, integer: true, right: "whole bit/s" },
  delay: { max: 60e9, integer: true, right: "whole nanoseconds up to 60 s" },
  loss: { max: 1, integer: false, right: "a fraction from 0 to 1" },
};

function checkedMoves(list: unknown, situation: Situation, end: number): Move[] {
  if (!Array.isArray(list)) throw broken("list of changes", list, "a list");
  const limit = MOVES_MAX - (situation.lowered.moves?.length ?? 0);
  if (list.length > limit) throw new Error(`The link is broken: it has ${list.length} changes; expected at most ${limit}, as in a scenario.`);
  let moves: Move[] = [];
  const state = new Map<string, boolean>();
  for (const [index, entry] of list.entries()) {
    const entryName = `change ${index + 1}`;
    if (typeof entry !== "object" || entry === null || !isWhole(entry.at, end)) throw broken(entryName, entry, `a time in whole milliseconds up to ${end}`);
    if ("path" in entry) {
      const path = situation.paths.find((path) => JSON.stringify(path) === JSON.stringify(entry.path));
      if (!path || entry.flow !== situation.flow) throw broken(entryName, entry, "a path that the call can take");
      moves = add(moves, { at: entry.at, flow: situation.flow, path });
      continue;
    }
    if ("flow" in entry) {
      const fits = situation.download !== null && /^download-\d{1,6}$/.test(entry.flow) && typeof entry.running === "boolean" &&
        !situation.lowered.flows.some((flow) => flow.name === entry.flow) && state.get(entry.flow) === (entry.running ? undefined : true);
      if (!fits) throw broken(entryName, entry, "one start and at most one end of each download");
      state.set(entry.flow, entry.running);
      moves = add(moves, { at: entry.at, flow: entry.flow, running: entry.running });
      continue;
    }
    if (!situation.links.includes(entry.link)) throw broken(entryName, entry, `a link that can be changed: ${situation.links.join(", ")}`);
    const limit = Object.hasOwn(LIMITS, entry.key) ? LIMITS[entry.key as Key] : undefined;
    if (!limit) throw broken(entryName, entry, "capacity, delay or loss");
    const fits = typeof entry.value === "number" && entry.value >= 0 && entry.value <= limit.max && (!limit.integer || Number.isInteger(entry.value));
    if (!fits) throw broken(entryName, entry, limit.right);
    moves = add(moves, { at: entry.at, link: entry.link, key: entry.key, value: entry.value });
  }
  return moves;
}
