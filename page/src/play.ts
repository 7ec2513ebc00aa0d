/** A play: all that determines a run on the page. Two contenders differ only in the controller. */

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

/** The play with which a situation begins. */
export function begin(situation: Situation): Play {
  const usable = situation.contenders.filter((word) => word in situation.controllers).slice(0, 2);
  return {
    situation,
    controllers: usable.length > 0 ? usable : Object.keys(situation.controllers).slice(0, 1),
    queue: Object.keys(situation.queues)[0] ?? "",
    seed: situation.lowered.seed,
    moves: [],
  };
}

/** The scenario under one controller, in the engine's form. */
export function lowered(play: Play, controller: string): Lowered {
  const { situation } = play;
  const flow = situation.controllers[controller];
  if (!flow) throw new Error(`There is no controller ${controller} in this situation.`);
  const flows = situation.lowered.flows.map((entry) => (entry.name === situation.flow ? flow : entry));
  for (const name of downloads(play.moves)) {
    if (!situation.download) throw new Error("A download is not possible in this situation.");
    flows.push({ ...situation.download.lowered, name });
  }
  return {
    ...situation.lowered,
    seed: play.seed,
    links: situation.lowered.links.map((link) => (link.name === situation.link ? chosenLink(play) : link)),
    flows,
    moves: [...(situation.lowered.moves ?? []), ...play.moves.map(loweredMove)],
  };
}

/** The link that is dragged, with the queue that is chosen. */
export function chosenLink(play: Play): LoweredLink {
  const { situation } = play;
  const chosen = situation.queues[play.queue]?.lowered ?? situation.lowered.links.find((link) => link.name === situation.link);
  if (!chosen) throw new Error(`There is no link ${situation.link} in this situation.`);
  return chosen;
}

/** Whether the link has several queues, which are served in turns. */
export function severalQueues(play: Play): boolean {
  const { discipline } = chosenLink(play).settings;
  return typeof discipline === "object" && discipline !== null && ("fq_codel" in discipline || "dualpi2" in discipline);
}

/** The scenario under one controller as a TOML document. */
export function document(play: Play, controller: string): Table {
  const { situation } = play;
  const table = structuredClone(situation.document) as { flows: Table[]; links: Table[]; moves?: Table[] } & Table;
  table.seed = play.seed;
  for (const flow of table.flows) {
    if (flow.name === situation.flow) flow.media = { ...(flow.media as Table), controller };
  }
  const changed = situation.queues[play.queue]?.document;
  if (changed) {
    // a return path is in the table of its cable
    const names = new Set(table.links.map((link) => link.name));
    const cable = names.has(situation.link) ? situation.link : situation.link.replace(/\.back$/, "");
    for (const link of table.links) if (link.name === cable) Object.assign(link, structuredClone(changed));
  }
  for (const name of downloads(play.moves)) table.flows.push({ name, ...structuredClone(situation.download?.document ?? {}) });
  const moves = [...(table.moves ?? []), ...play.moves.map(documentMove)];
  if (moves.length > 0) table.moves = moves;
  return table;
}

/** The links whose changes from now on have to be passed anew to a running world, so that it goes on as one of another play.
 *
 * None, if it goes on as it is; null, if the world has to be made anew.
 */
export function difference(before: Play, after: Play, nowMs: number): string[] | null {
  if (before.situation !== after.situation || before.queue !== after.queue || before.seed !== after.seed) return null;
  const links = new Set<string>();
  for (const [list, otherList] of [[before.moves, after.moves], [after.moves, before.moves]] as const) {
    for (const move of list) {
      if (otherList.includes(move)) continue;
      if (!isLinkMove(move) || move.at < nowMs) return null;
      links.add(move.link);
    }
  }
  return [...links];
}

/** All changes of a link from a time on, those of the scenario itself among them, in the engine's form. */
export function changesFrom(play: Play, link: string, fromMs: number): LoweredMove[] {
  const all = [...(play.situation.lowered.moves ?? []), ...play.moves.map(loweredMove)];
  // changes at the same time keep their order, because sort is stable
  return all.filter((move) => move.link === link && move.time >= fromMs * MS).sort((first, second) => first.time - second.time);
}
