/** A play: all that a run on the page is determined by. Two contenders differ in nothing but the controller. */

import type { Lowered, LoweredLink, LoweredMove, Situation, Table } from "./payload.ts";
import { documentMove, downloads, isLinkMove, loweredMove, type Move } from "./moves.ts";

export interface Play {
  readonly situation: Situation;
  /** One or two words of `situation.controllers`. */
  readonly controllers: readonly string[];
  /** A word of `situation.queues`. */
  readonly queue: string;
  readonly seed: number;
  /** Changes made or planned on the page, in order of time. */
  readonly moves: readonly Move[];
}

const MS = 1_000_000; // ns

/** How a situation begins. */
export function begin(situation: Situation): Play {
  const known = situation.contenders.filter((word) => word in situation.controllers).slice(0, 2);
  return {
    situation,
    controllers: known.length > 0 ? known : Object.keys(situation.controllers).slice(0, 1),
    queue: Object.keys(situation.queues)[0] ?? "",
    seed: situation.lowered.seed,
    moves: [],
  };
}

/** The scenario under one controller as the engine takes it. */
export function lowered(play: Play, controller: string): Lowered {
  const { situation } = play;
  const flow = situation.controllers[controller];
  if (!flow) throw new Error(`There is no controller ${controller} in this situation.`);
  const flows = situation.lowered.flows.map((one) => (one.name === situation.flow ? flow : one));
  for (const name of downloads(play.moves)) {
    if (!situation.download) throw new Error("This situation cannot have a download.");
    flows.push({ ...situation.download.lowered, name });
  }
  return {
    ...situation.lowered,
    seed: play.seed,
    links: situation.lowered.links.map((one) => (one.name === situation.link ? chosenLink(play) : one)),
    flows,
    moves: [...(situation.lowered.moves ?? []), ...play.moves.map(loweredMove)],
  };
}

/** The link that is dragged, with the queue that is chosen. */
export function chosenLink(play: Play): LoweredLink {
  const { situation } = play;
  const found = situation.queues[play.queue]?.lowered ?? situation.lowered.links.find((one) => one.name === situation.link);
  if (!found) throw new Error(`There is no link ${situation.link} in this situation.`);
  return found;
}

/** Whether the link has several queues, of which one is served after another. */
export function severalQueues(play: Play): boolean {
  const { discipline } = chosenLink(play).settings;
  return typeof discipline === "object" && discipline !== null && ("fq_codel" in discipline || "dualpi2" in discipline);
}

/** The scenario under one controller as a TOML document. */
export function document(play: Play, controller: string): Table {
  const { situation } = play;
  const made = structuredClone(situation.document) as { flows: Table[]; links: Table[]; moves?: Table[] } & Table;
  made.seed = play.seed;
  for (const flow of made.flows) {
    if (flow.name === situation.flow) flow.media = { ...(flow.media as Table), controller };
  }
  const changed = situation.queues[play.queue]?.document;
  if (changed) {
    // a way back stands in the table of its cable
    const names = new Set(made.links.map((one) => one.name));
    const cable = names.has(situation.link) ? situation.link : situation.link.replace(/\.back$/, "");
    for (const link of made.links) if (link.name === cable) Object.assign(link, structuredClone(changed));
  }
  for (const name of downloads(play.moves)) made.flows.push({ name, ...structuredClone(situation.download?.document ?? {}) });
  const moves = [...(made.moves ?? []), ...play.moves.map(documentMove)];
  if (moves.length > 0) made.moves = moves;
  return made;
}

/** What has to be done so that a running world of one play goes on as one of another.
 *
 * Nothing; or the changes of these links from now on are to be told anew; or, with null, the world has to be made anew.
 */
export function difference(before: Play, after: Play, nowMs: number): string[] | null {
  if (before.situation !== after.situation || before.queue !== after.queue || before.seed !== after.seed) return null;
  const links = new Set<string>();
  for (const [some, others] of [[before.moves, after.moves], [after.moves, before.moves]] as const) {
    for (const move of some) {
      if (others.includes(move)) continue;
      if (!isLinkMove(move) || move.at < nowMs) return null;
      links.add(move.link);
    }
  }
  return [...links];
}

/** All changes of a link from a time on, those of the scenario itself among them, as the engine takes them. */
export function changesFrom(play: Play, link: string, fromMs: number): LoweredMove[] {
  const all = [...(play.situation.lowered.moves ?? []), ...play.moves.map(loweredMove)];
  // those of one time stay as they are written: sort is stable
  return all.filter((one) => one.link === link && one.time >= fromMs * MS).sort((one, other) => one.time - other.time);
}
