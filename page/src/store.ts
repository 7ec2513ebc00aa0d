/** The output of one contender's run so far, by flow, link and name, for the charts. */

import { Columns, split, type Rows, type Section } from "./read.ts";

/** The part of `World.names()` that the page uses. */
export interface Names {
  flows: { name: string }[];
  links: { name: string }[];
  internals: string[];
}

/** A packet that waits in the queue. */
export interface Waiting {
  flow: number;
  size: number;
}

/** Largest number of packets of a queue that the engine reports. */
const WAITING_MAX = 300;

/** Indices of columns, after the column of the flow or link is removed. */
export const SERIES = {
  t: 0, sending: 1, receive: 2, goodput: 3, delayMean: 4, delayMax: 5, queueing: 6, sent: 7, arrived: 8, lost: 9, marked: 10,
} as const;
export const DECISION = { t: 0, target: 1, pacing: 2, window: 3 } as const;
export const QUEUE = { t: 0, packets: 1, bytes: 2 } as const;
export const FRAME = { video: 0, frame: 1, size: 2, key: 3, captured: 4, complete: 5, rendered: 6 } as const;

export class Store {
  readonly series = new Columns(11);
  readonly decisions = new Columns(4);
  readonly internals = new Map<string, Columns>();
  readonly queue = new Columns(3);
  readonly truth = new Columns(2);
  readonly frames = new Columns(7);
  /** Ends, beginnings and lengths of stretches without a new picture. */
  readonly withoutPicture = new Columns(3);
  waiting: Waiting[] = [];

  constructor(readonly flow: number, readonly link: number) {}

  /** Adds the values of `World.read()`; calls `names` for a new name. */
  take(values: Float64Array, sections: readonly Section[], names: () => Names): void {
    const parts = split(values, sections);
    this.keep(parts.get("series"), this.series, 1, this.flow);
    this.keep(parts.get("decisions"), this.decisions, 1, this.flow);
    this.keep(parts.get("queues"), this.queue, 1, this.link);
    this.keep(parts.get("truth"), this.truth, 1, this.link);
    this.keepVideo(parts.get("frames"));
    this.keep(parts.get("without_picture"), this.withoutPicture, 1, this.flow);
    this.keepInternals(parts.get("internals"), names);
    this.keepWaiting(parts.get("waiting"));
  }

  private keep(rows: Rows | undefined, into: Columns, column: number, index: number): void {
    if (!rows) return;
    for (let row = 0; row < rows.rows; row += 1) {
      if (rows.values[row * rows.width + column] === index) into.push(rows, row, column);
    }
  }

  /** Keeps the frames of video: frames of audio are in the same section, between them. */
  private keepVideo(rows: Rows | undefined): void {
    for (let row = 0; row < (rows?.rows ?? 0); row += 1) {
      const offset = row * rows!.width;
      if (rows!.values[offset] === this.flow && rows!.values[offset + 1] !== 0) this.frames.push(rows!, row, 0);
    }
  }

  /** Numbers of waiting packets and bytes, and the number of packets that are known individually. */
  waits(): { packets: number; bytes: number; drawn: number } {
    const drawn = this.waiting.length;
    const bytes = this.waiting.reduce((sum, packet) => sum + packet.size, 0);
    const row = this.queue.length - 1;
    const packets = row >= 0 ? this.queue.at(row, QUEUE.packets) : 0;
    if (drawn < WAITING_MAX || !(packets > drawn)) return { packets: drawn, bytes, drawn };
    return { packets, bytes: this.queue.at(row, QUEUE.bytes), drawn };
  }

  private keepInternals(rows: Rows | undefined, names: () => Names): void {
    if (!rows?.rows) return;
    let knownNames: string[] | undefined;
    for (let row = 0; row < rows.rows; row += 1) {
      const offset = row * rows.width;
      if (rows.values[offset + 1] !== this.flow) continue;
      const index = rows.values[offset + 2]!;
      let name = this.knownNames[index];
      if (name === undefined) {
        knownNames ??= names().internals;
        this.knownNames = knownNames;
        name = knownNames[index] ?? `internal ${index}`;
      }
      let into = this.internals.get(name);
      if (!into) this.internals.set(name, (into = new Columns(2)));
      into.push({ rows: 1, width: 2, values: Float64Array.of(rows.values[offset]!, rows.values[offset + 3]!) }, 0);
    }
  }

  private knownNames: string[] = [];

  private keepWaiting(rows: Rows | undefined): void {
    this.waiting = [];
    for (let row = 0; row < (rows?.rows ?? 0); row += 1) {
      const [link, flow, , size] = rows!.values.subarray(row * rows!.width, row * rows!.width + 4);
      if (link === this.link) this.waiting.push({ flow: flow!, size: size! });
    }
  }
}

export const kB = (bytes: number): string => `${(bytes / 1000).toFixed(1)} kB`;

/** The waiting packets in words. `shares`: the share of each flow in the drawn packets; empty if all are the call's. */
export function waitingWords({ packets, bytes, drawn }: { packets: number; bytes: number; drawn: number }, shares: readonly string[], separateQueues: boolean): string {
  const words = [`${packets} packet${packets === 1 ? " waits" : "s wait"}, ${kB(bytes)}`];
  // the flows of packets that are not drawn are unknown
  if (drawn < packets) words.push(`${drawn} of ${packets} packets drawn`);
  else if (shares.length > 0) words[0] += `: ${shares.join(", ")}`;
  if (separateQueues && packets > 0) words.push("queues one after the other");
  return words.join("; ");
}

/** Values on a grid of times: for each cell the `how` of its rows, or null if it has none. */
export function gridded(columns: Columns, column: number, from: number, step: number, cells: number, how: "last" | "max" | "sum" | "mean"): (number | null)[] {
  const values: (number | null)[] = new Array(cells).fill(null);
  const counts = new Uint32Array(cells);
  for (let row = columns.from(from); row < columns.length; row += 1) {
    // a time at a cell's beginning may be slightly before it in binary
    const cell = Math.floor((columns.at(row, 0) - from) / step + 1e-6);
    if (cell >= cells) break;
    const value = columns.at(row, column);
    if (Number.isNaN(value)) continue;
    const old = values[cell];
    counts[cell] = (counts[cell] ?? 0) + 1;
    values[cell] = old == null || how === "last" ? value : how === "max" ? Math.max(old, value) : how === "sum" ? old + value : old + (value - old) / counts[cell]!;
  }
  return values;
}

/** The same for a quantity that holds until it changes: each cell has the last value by its end; null after `now`. */
export function held(columns: Columns, column: number, from: number, step: number, cells: number, now: number): (number | null)[] {
  const values: (number | null)[] = new Array(cells).fill(null);
  let row = columns.from(from);
  let value: number | null = row > 0 ? columns.at(row - 1, column) : null;
  for (let cell = 0; cell < cells; cell += 1) {
    const begins = from + cell * step;
    if (begins > now) break;
    while (row < columns.length && columns.at(row, 0) < begins + step * (1 - 1e-6)) {
      value = columns.at(row, column);
      row += 1;
    }
    values[cell] = value === null || Number.isNaN(value) ? null : value;
  }
  return values;
}
