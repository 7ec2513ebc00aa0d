/** One contender: a world under one controller, and what it has shown. */

import { sections, World } from "./engine.ts";
import { Store, type Names } from "./store.ts";
import { changesFrom, difference, lowered, type Play } from "./play.ts";

/** Events between two looks at the clock: about half a millisecond. */
const EVENTS = 500;

const MS = 1000; // in a second

/** How often news are read while a world catches up, in s of its time: it bounds what is handed over at once. */
const STRETCH = 20;

export class Contender {
  readonly store: Store;
  readonly names: Names;
  /** Up to when all has been done, in ms. */
  now = 0;
  private readonly world: World;

  /** @throws Error with the engine's sentence */
  constructor(private play: Play, readonly controller: string) {
    this.world = new World(JSON.stringify(lowered(play, controller)), JSON.stringify(play.situation.traces));
    this.names = JSON.parse(this.world.names()) as Names;
    const flow = this.names.flows.findIndex((one) => one.name === play.situation.flow);
    const link = this.names.links.findIndex((one) => one.name === play.situation.link);
    this.store = new Store(flow, link);
  }

  /** Does what happens before `ms`, but gives up at `deadline` (of performance.now()). True when it is there.
   *
   * @throws Error with the reason when a component of the run fails
   */
  run(ms: number, deadline: number): boolean {
    while (this.now < ms) {
      const until = Math.min(ms, this.now + STRETCH * MS);
      while (!this.world.step(until / MS, EVENTS)) {
        if (performance.now() >= deadline) return false;
      }
      this.now = until;
      if (until < ms) {
        this.read();
        if (performance.now() >= deadline) return false;
      }
    }
    return true;
  }

  /** Takes in what is new. */
  read(): void {
    this.store.take(this.world.read(), sections, () => JSON.parse(this.world.names()) as Names);
  }

  /** Goes on as a run of another play; false if that has had another past, and the world must be made anew.
   *
   * @throws Error with the engine's sentence when it refuses a change
   */
  follow(play: Play): boolean {
    const links = difference(this.play, play, this.now);
    if (links === null) return false;
    for (const link of links) {
      this.world.forget(link, this.now / MS);
      for (const one of changesFrom(play, link, this.now)) {
        this.world.change(link, one.time / 1e9, one.capacity ?? undefined, one.delay == null ? undefined : one.delay / 1e9, one.loss ?? undefined);
      }
    }
    this.play = play;
    return true;
  }

  /** The numbers as if the run ended now; of a run that has failed the last ones. */
  metrics(): Record<string, unknown> {
    try {
      this.numbers = JSON.parse(this.world.metrics()) as Record<string, unknown>;
    } catch {
      // why it failed has been said when it did
    }
    return this.numbers;
  }

  private numbers: Record<string, unknown> = {};

  /** Gives its memory back; it is not to be used any more. */
  free(): void {
    released(this.world);
  }
}

/** Gives a world back. One that has broken off in the middle of something cannot be: its memory is lost, and nothing else. */
function released(world: Pick<World, "free">): void {
  try {
    world.free();
  } catch {
    // why it broke off has been said when it did
  }
}

/** The digest of a play's whole run, in slices between which the page lives.
 *
 * @param told Is told the part that is done, 0 to 1; returns false to give up.
 * @throws Error with the reason when the run fails; null when given up
 */
export async function digest(play: Play, controller: string, told: (part: number) => boolean): Promise<string | null> {
  const world = new World(JSON.stringify(lowered(play, controller)), JSON.stringify(play.situation.traces));
  try {
    const { duration } = world;
    for (let until = 0; until < duration; ) {
      const deadline = performance.now() + 12;
      until = Math.min(duration, until + 1);
      while (!world.step(until, EVENTS)) {
        if (performance.now() < deadline) continue;
        await pause();
      }
      // what is not read is not needed: it would only fill the memory
      world.read();
      if (performance.now() >= deadline || until >= duration) {
        if (!told(until / duration)) return null;
        await pause();
      }
    }
    return (JSON.parse(world.finish()) as { digest: string }).digest;
  } finally {
    released(world);
  }
}

const pause = (): Promise<void> => new Promise((done) => setTimeout(done, 0));
