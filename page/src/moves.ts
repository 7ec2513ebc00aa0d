/** Changes during a run: of links, beginnings and ends of downloads, and paths of the call. A list of them is never changed, but replaced. */

import type { LoweredMove, Situation } from "./payload.ts";

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

/** Another path of the call, of which its ends hear. */
export interface PathMove {
  readonly at: number;
  readonly flow: string;
  /** Links from the beginning of the flow to its end. */
  readonly path: readonly string[];
}

export type Move = LinkMove | FlowMove | PathMove;

/** Largest number of changes in a scenario (`moves` in its schema), those of the page and its own together. */
export const MOVES_MAX = 10_000;

export const isLinkMove = (move: Move): move is LinkMove => "link" in move;

const isFlowMove = (move: Move): move is FlowMove => "running" in move;

const isPathMove = (move: Move): move is PathMove => "path" in move;

const MS = 1_000_000; // ns

/** A rate as the page sets it: whole bit/s of three significant digits, so that the run has exactly the rate shown. */
export function roundRate(bps: number): number {
  if (!(bps > 0)) return 0;
  const step = 10 ** Math.max(0, Math.floor(Math.log10(bps)) - 2);
  return Math.round(bps / step) * step;
}

const same = (first: Move, second: Move): boolean => {
  if (isLinkMove(first)) return isLinkMove(second) && first.link === second.link && first.key === second.key;
  return !isLinkMove(second) && isPathMove(first) === isPathMove(second) && first.flow === second.flow;
};

/** The list with another move, in order of time, behind those of its time; it replaces one of the same key at that time. */
export function add(moves: readonly Move[], move: Move): Move[] {
  const remaining = moves.filter((existing) => existing.at !== move.at || !same(existing, move));
  const index = remaining.findIndex((existing) => existing.at > move.at);
  remaining.splice(index < 0 ? remaining.length : index, 0, move);
  return remaining;
}

/** The list without a move. A download is removed with its beginning and its end. */
export function remove(moves: readonly Move[], move: Move): Move[] {
  if (!isFlowMove(move)) return moves.filter((existing) => existing !== move);
  return moves.filter((existing) => (!isFlowMove(existing) || existing.flow !== move.flow) || (!move.running && existing.running));
}

/** Names of the downloads, in order of their beginning. */
export const downloads = (moves: readonly Move[]): string[] =>
  moves.filter((move): move is FlowMove => isFlowMove(move) && move.running).map((move) => move.flow);

/** Names of the downloads that run at a time. */
export function running(moves: readonly Move[], at: number): string[] {
  const ends = moves.filter((move): move is FlowMove => isFlowMove(move) && move.at <= at && !move.running);
  const ended = new Set(ends.map((move) => move.flow));
  return moves.filter((move): move is FlowMove => isFlowMove(move) && move.running && move.at <= at && !ended.has(move.flow)).map((move) => move.flow);
}

/** The list with the running downloads ended at a time; a download that would begin and end at once is removed. */
export function ended(moves: readonly Move[], at: number): Move[] {
  const going = running(moves, at);
  const begunBefore = (flow: string): boolean => moves.some((move) => isFlowMove(move) && move.running && move.flow === flow && move.at < at);
  // replaces ends that were planned for later
  const remaining = moves.filter((move) => !isFlowMove(move) || !going.includes(move.flow) || (move.running && begunBefore(move.flow)));
  return going.filter(begunBefore).reduce((all, flow) => add(all, { at, flow, running: false }), remaining);
}

/** A name for another download. */
export function nextDownload(moves: readonly Move[], reserved: readonly string[]): string {
  const names = new Set([...downloads(moves), ...reserved]);
  let number = 1;
  while (names.has(`download-${number}`)) number += 1;
  return `download-${number}`;
}

/** The changes of path that the scenario itself makes. */
export const ownPaths = ({ lowered, flow }: Situation): PathMove[] =>
  (lowered.moves ?? []).filter((move) => move.flow === flow && move.path !== undefined).map((move) => ({ at: move.time / MS, flow, path: move.path! }));

/** The path of the call at a time, of those that it can take; the first one is its own. */
export function pathAt(moves: readonly Move[], own: readonly string[], at: number): readonly string[] {
  const before = moves.filter((move): move is PathMove => isPathMove(move) && move.at <= at);
  return before.sort((first, second) => first.at - second.at).at(-1)?.path ?? own;
}

/** The links of a path in their other direction, from its end to its beginning. */
const wayBack = (path: readonly string[]): string[] =>
  [...path].reverse().map((link) => (link.endsWith(".back") ? link.slice(0, -".back".length) : `${link}.back`));

/** The move in the engine's form. */
export function loweredMove(move: Move): LoweredMove {
  const time = move.at * MS;
  if (isLinkMove(move)) return { time, link: move.link, change: { [move.key]: move.key === "loss" ? { bernoulli: move.value } : move.value } };
  if (isPathMove(move)) return { time, flow: move.flow, path: move.path, back: wayBack(move.path), signalled: true };
  return { time, flow: move.flow, running: move.running };
}

/** The move in the form of a scenario's table `[[moves]]`. */
export function documentMove(move: Move): Record<string, string | boolean | readonly string[]> {
  const time = seconds(move.at);
  if (isPathMove(move)) return { time, flow: move.flow, key: "path", value: move.path };
  if (!isLinkMove(move)) return { time, flow: move.flow, key: "running", value: move.running };
  const value = move.key === "capacity" ? rate(move.value) : move.key === "delay" ? `${move.value}ns` : `${percent(move.value)}%`;
  return { time, link: move.link, key: move.key, value };
}

/** Milliseconds as TOML has them: 12350 is "12.35s". */
export const seconds = (ms: number): string => `${ms / 1000}s`;

/** A fraction in per cent, without the rounding noise of binary numbers: the page offers whole tenths of a per cent. */
const percent = (fraction: number): number => Number((fraction * 100).toPrecision(12));

/** A rate with a unit in which it is short and exact. */
export function rate(bps: number): string {
  for (const [unit, size] of [["Gbps", 1e9], ["Mbps", 1e6], ["kbps", 1e3]] as const) {
    if (bps >= size && bps % (size / 1000) === 0) return `${bps / size}${unit}`;
  }
  return `${bps}bps`;
}

/** The move in words, for the list of changes. `link`: the link that need not be named. */
export function describe(move: Move, link: string): string {
  const at = `${(move.at / 1000).toFixed(2)} s`;
  if (isPathMove(move)) return `${at}: ${move.flow} goes over ${move.path.join(", ")}`;
  if (!isLinkMove(move)) return `${at}: ${move.flow} ${move.running ? "begins" : "ends"}`;
  const valueText = move.key === "capacity" ? spoken(move.value)
    : move.key === "delay" ? `${Number((move.value / MS).toFixed(3))} ms` : `${percent(move.value)} %`;
  return `${at}: ${move.key}${move.link === link ? "" : ` of ${move.link}`} ${valueText}`;
}

/** A rate for people. */
export function spoken(bps: number): string {
  if (!Number.isFinite(bps)) return "none";
  if (bps >= 1e9) return `${Number((bps / 1e9).toPrecision(3))} Gbit/s`;
  return bps >= 999_500 ? `${Number((bps / 1e6).toPrecision(3))} Mbit/s` : bps >= 1000 ? `${Number((bps / 1e3).toPrecision(3))} kbit/s` : `${Math.round(bps)} bit/s`;
}
