/** Changes during a run: of links, and of which downloads there are. A list of them is never changed, but replaced. */

import type { LoweredMove } from "./payload.ts";

export type Key = "capacity" | "delay" | "loss";

/** A change of a link. */
export interface LinkMove {
  /** Whole milliseconds. */
  readonly at: number;
  readonly link: string;
  readonly key: Key;
  /** Capacity in bit/s, delay in ns, loss a fraction. */
  readonly value: number;
}

/** A download that begins or ends. */
export interface FlowMove {
  readonly at: number;
  readonly flow: string;
  readonly running: boolean;
}

export type Move = LinkMove | FlowMove;

/** A scenario has no more of them (`moves` in its schema), those of the page and its own together. */
export const MOST_MOVES = 10_000;

export const isLinkMove = (move: Move): move is LinkMove => "link" in move;

const MS = 1_000_000; // ns

/** A rate as the page sets it: whole bit/s of three significant digits, so that what people read is what is run. */
export function roundRate(bps: number): number {
  if (!(bps > 0)) return 0;
  const step = 10 ** Math.max(0, Math.floor(Math.log10(bps)) - 2);
  return Math.round(bps / step) * step;
}

const same = (one: Move, other: Move): boolean =>
  isLinkMove(one) && isLinkMove(other) ? one.link === other.link && one.key === other.key
    : !isLinkMove(one) && !isLinkMove(other) && one.flow === other.flow;

/** With one more move, in order of time, behind those of its time; it replaces one of the same thing at that time. */
export function add(moves: readonly Move[], move: Move): Move[] {
  const kept = moves.filter((one) => one.at !== move.at || !same(one, move));
  const place = kept.findIndex((one) => one.at > move.at);
  kept.splice(place < 0 ? kept.length : place, 0, move);
  return kept;
}

/** Without one of them. A download goes whole, with its beginning and its end. */
export function remove(moves: readonly Move[], move: Move): Move[] {
  if (isLinkMove(move)) return moves.filter((one) => one !== move);
  return moves.filter((one) => (isLinkMove(one) || one.flow !== move.flow) || (!move.running && one.running));
}

/** Names of the downloads, in order of their beginning. */
export const downloads = (moves: readonly Move[]): string[] =>
  moves.filter((move): move is FlowMove => !isLinkMove(move) && move.running).map((move) => move.flow);

/** Downloads that go on at a time. */
export function running(moves: readonly Move[], at: number): string[] {
  const ended = new Set(moves.filter((one) => one.at <= at && !isLinkMove(one) && !one.running).map((one) => (one as FlowMove).flow));
  return moves.filter((one): one is FlowMove => !isLinkMove(one) && one.running && one.at <= at && !ended.has(one.flow)).map((one) => one.flow);
}

/** With the downloads ended at a time that go on then; one that would begin and end at once is none. */
export function ended(moves: readonly Move[], at: number): Move[] {
  const going = running(moves, at);
  const begun = (flow: string): boolean => moves.some((one) => !isLinkMove(one) && one.running && one.flow === flow && one.at < at);
  // an end that was planned for later comes now
  const kept = moves.filter((one) => isLinkMove(one) || !going.includes(one.flow) || (one.running && begun(one.flow)));
  return going.filter(begun).reduce((all, flow) => add(all, { at, flow, running: false }), kept);
}

/** A name for another download. */
export function nextDownload(moves: readonly Move[], taken: readonly string[]): string {
  const used = new Set([...downloads(moves), ...taken]);
  let number = 1;
  while (used.has(`download-${number}`)) number += 1;
  return `download-${number}`;
}

/** As the engine takes it. */
export const loweredMove = (move: Move): LoweredMove =>
  isLinkMove(move) ? { time: move.at * MS, link: move.link, [move.key]: move.value }
    : { time: move.at * MS, flow: move.flow, running: move.running };

/** As a scenario's table `[[moves]]` has it. */
export function documentMove(move: Move): Record<string, string | boolean> {
  const time = seconds(move.at);
  if (!isLinkMove(move)) return { time, flow: move.flow, key: "running", value: move.running };
  const value = move.key === "capacity" ? rate(move.value) : move.key === "delay" ? `${move.value}ns` : `${percent(move.value)}%`;
  return { time, link: move.link, key: move.key, value };
}

/** Milliseconds as TOML has them: 12350 is "12.35s". */
export const seconds = (ms: number): string => `${ms / 1000}s`;

/** Fractions of which the page offers whole tenths of a per cent are written without the noise of binary numbers. */
const percent = (fraction: number): number => Number((fraction * 100).toPrecision(12));

/** A rate with a unit in which it is short and exact. */
export function rate(bps: number): string {
  for (const [unit, size] of [["Gbps", 1e9], ["Mbps", 1e6], ["kbps", 1e3]] as const) {
    if (bps >= size && bps % (size / 1000) === 0) return `${bps / size}${unit}`;
  }
  return `${bps}bps`;
}

/** In words, for the list of changes; `link` is the one that need not be named. */
export function describe(move: Move, link: string): string {
  const at = `${(move.at / 1000).toFixed(2)} s`;
  if (!isLinkMove(move)) return `${at}: ${move.flow} ${move.running ? "begins" : "ends"}`;
  const what = move.key === "capacity" ? spoken(move.value)
    : move.key === "delay" ? `${Number((move.value / MS).toFixed(3))} ms` : `${percent(move.value)} %`;
  return `${at}: ${move.key}${move.link === link ? "" : ` of ${move.link}`} ${what}`;
}

/** A rate for people. */
export function spoken(bps: number): string {
  if (!Number.isFinite(bps)) return "none";
  if (bps >= 1e9) return `${Number((bps / 1e9).toPrecision(3))} Gbit/s`;
  return bps >= 999_500 ? `${Number((bps / 1e6).toPrecision(3))} Mbit/s` : bps >= 1000 ? `${Number((bps / 1e3).toPrecision(3))} kbit/s` : `${Math.round(bps)} bit/s`;
}
