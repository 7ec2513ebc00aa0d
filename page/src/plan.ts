/** The properties of a play's link over time, as far as they are known beforehand, and gaps in its capacity. */

import { add, isLinkMove, type LinkMove, type Move } from "./moves.ts";
import { changesFrom, chosenLink, type Play } from "./play.ts";

const MS = 1_000_000; // ns
const S = 1_000_000_000; // ns

/** Largest number of steps returned at once: more than any screen has columns, whatever the period of a schedule. */
const STEPS_MAX = 50_000;

/** Times in ns and rates in bit/s; a period in ns after which they begin again. */
interface Steps {
  steps: [number, number][];
  period: number | null;
}

/** The capacity of a link over time, in s and bit/s. */
export class Plan {
  /** @param original The link's own capacity; null if a recording or chance decides.
   *  @param moved Changes of it in order of time, in ns. The first one replaces the original capacity for good. */
  constructor(private readonly original: Steps | null, private readonly moved: [number, number][]) {}

  /** The first change, in ns. */
  get until(): number {
    return this.moved[0]?.[0] ?? Infinity;
  }

  /** The capacity at a time; NaN where it is unknown. */
  at(seconds: number): number {
    const time = Math.round(seconds * S);
    if (time >= this.until) return last(this.moved, time);
    if (!this.original) return NaN;
    return last(this.original.steps, this.original.period ? time % this.original.period : time);
  }

  /** Its steps after `from` and not after `to`. */
  steps(from: number, to: number): [number, number][] {
    const [after, end] = [Math.round(from * S), Math.round(to * S)];
    const all = [...this.scheduled(after, Math.min(end, this.until - 1)), ...this.moved.filter(([time]) => time > after && time <= end)];
    return all.map(([time, bps]) => [time / S, bps]);
  }

  /** All rates of its known steps. */
  rates(): number[] {
    return [...(this.original?.steps ?? []), ...this.moved].map(([, bps]) => bps);
  }

  /** Steps of a schedule after `after` and not after `end`, in ns; none where it has been replaced. */
  scheduled(after: number, end: number): [number, number][] {
    const occurrences: [number, number][] = [];
    const { steps, period } = this.original ?? { steps: [], period: null };
    const stop = Math.min(end, this.until - 1);
    for (let round = period ? Math.max(0, Math.floor(after / period)) : 0; round * (period ?? 0) <= stop; round += 1) {
      for (const [time, bps] of steps) {
        const at = time + round * (period ?? 0);
        if (at > after && at <= stop) occurrences.push([at, bps]);
      }
      if (!period || occurrences.length >= STEPS_MAX) break;
    }
    return occurrences;
  }
}

/** The value of the last step not after a time; NaN before the first. */
function last(steps: readonly [number, number][], time: number): number {
  let [low, high] = [0, steps.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle]![0] <= time) low = middle + 1;
    else high = middle;
  }
  return steps[low - 1]?.[1] ?? NaN;
}

/** The kind of the link's own capacity. */
export function capacityKind(play: Play): "constant" | "schedule" | "unknown" {
  const { capacity } = chosenLink(play);
  if (typeof capacity !== "object" || capacity === null) return "unknown";
  return "constant" in capacity ? "constant" : "schedule" in capacity ? "schedule" : "unknown";
}

/** The capacity of the play's link; null if nothing of it is known beforehand. */
export function plannedCapacity(play: Play): Plan | null {
  const { capacity } = chosenLink(play) as { capacity: { constant: number; schedule: { steps: [number, number][]; period?: number | null } } };
  const moved = changesFrom(play, play.situation.link, 0)
    .flatMap(({ time, change }): [number, number][] => change?.capacity === undefined ? [] : [[time, change.capacity]]);
  const kind = capacityKind(play);
  if (kind === "unknown") return moved.length > 0 ? new Plan(null, moved) : null;
  const original = kind === "constant" ? { steps: [[0, capacity.constant]] as [number, number][], period: null }
    : { steps: capacity.schedule.steps, period: capacity.schedule.period ?? null };
  return new Plan(original, moved);
}

/** The link's own delay in ns or its loss without any change; null where a recording, chance or a process decides. */
export function ownValue(play: Play, key: "delay" | "loss"): number | null {
  const { capacity, settings } = chosenLink(play);
  if (typeof capacity === "object" && capacity !== null) {
    const { trace, leo } = capacity as { trace?: { index: number; capacity_only?: boolean }; leo?: unknown };
    // a recording may contain delays and losses, too, and a satellite link draws both
    if (leo !== undefined) return null;
    const recorded = trace && !trace.capacity_only ? play.situation.traces[trace.index] : null;
    if (typeof recorded === "object" && recorded !== null && (recorded as Record<string, unknown>)[key] != null) return null;
  }
  if (key === "delay") return typeof settings.delay === "number" ? settings.delay : null;
  return fraction(settings.loss);
}

/** The loss of a link as a fraction; null where it is a process. */
function fraction(loss: unknown): number | null {
  if (loss === "none" || loss == null) return 0;
  const { bernoulli } = loss as { bernoulli?: unknown };
  return typeof bernoulli === "number" ? bernoulli : null;
}

/** The link's delay in ns or loss at a time, after all changes until then, those of the scenario and of the page in order of time. */
export function valueAt(play: Play, key: "delay" | "loss", atMs: number): number | null {
  let current = ownValue(play, key);
  for (const move of changesFrom(play, play.situation.link, 0)) {
    if (move.time > atMs * MS) break;
    const value = move.change?.[key];
    if (value !== undefined) current = key === "loss" ? fraction(value) : value as number;
  }
  return current;
}

/** The changes with a gap in the capacity from `at` to `back` (ms), and afterwards what was planned.
 *
 * @param unknown Capacity afterwards if the planned one is not known.
 */
export function withGap(play: Play, at: number, back: number, unknown: number): Move[] {
  const { link, lowered } = play.situation;
  const capacity = (time: number, value: number): LinkMove => ({ at: time, link, key: "capacity", value: Math.round(value) });
  const plan = plannedCapacity(play);
  const after = plan?.at(back / 1000) ?? NaN;
  // planned changes within the gap would end it
  let moves: Move[] = play.moves.filter((move) => !isLinkMove(move) || move.link !== link || move.key !== "capacity" || move.at < at || move.at > back);
  moves = add(moves, capacity(at, 0));
  // those of the scenario itself cannot be taken away, but a change of the page at their time comes behind them
  for (const move of lowered.moves ?? []) {
    const time = Math.ceil(move.time / MS);
    if (move.link === link && move.change?.capacity !== undefined && time > at && time < back) moves = add(moves, capacity(time, 0));
  }
  moves = add(moves, capacity(back, Number.isNaN(after) ? unknown : after));
  // the first change replaces a schedule for good: its remaining steps become changes
  const rest = new Map<number, LinkMove>();
  for (const [time, bps] of plan?.scheduled(back * MS, Math.floor(lowered.duration / MS) * MS) ?? []) rest.set(Math.ceil(time / MS), capacity(Math.ceil(time / MS), bps));
  return [...moves, ...rest.values()].sort((first, second) => first.at - second.at);
}

/** The changes with a loss switched on at a time, or off if it is on then: back to the link's own loss.
 *
 * Own losses that are not a fixed share cannot be restored once they were replaced; then the loss is zero.
 */
export function switched(play: Play, at: number, loss: number): Move[] {
  const { link } = play.situation;
  const set = (value: number): Move[] => add(play.moves, { at, link, key: "loss", value });
  if (valueAt(play, "loss", at) !== loss) return set(loss);
  // a loss that was switched on at this very moment has had no effect: the change is removed
  const before = play.moves.filter((one) => !isLinkMove(one) || one.at !== at || one.link !== link || one.key !== "loss");
  if (before.length < play.moves.length && valueAt({ ...play, moves: before }, "loss", at) !== loss) return before;
  const original = valueAt({ ...play, moves: [] }, "loss", at);
  return set(original === null || original === loss ? 0 : original);
}
