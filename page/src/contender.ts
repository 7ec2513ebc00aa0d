/** One contender: a world under one controller, and its output so far. */

import { sections, World } from "./engine.ts";
import { Store, type Names } from "./store.ts";
import { changesFrom, difference, lowered, type Play } from "./play.ts";

/** Events between two looks at the clock: about half a millisecond. */
const EVENTS = 500;

const MS = 1000; // in a second

/** Interval at which news are read while a world catches up, in s of its time: it bounds the amount handed over at once. */
const STRETCH = 20;

export class Contender {
  readonly store: Store;
  readonly names: Names;
  /** The time before which all events have been done, in ms. */
  now = 0;
  private readonly world: World;

  /** @throws Error with the engine's sentence */
  constructor(private play: Play, readonly controller: string) {
    this.world = new World(JSON.stringify(lowered(play, controller)), JSON.stringify(play.situation.traces));
    this.names = JSON.parse(this.world.names()) as Names;
    const flow = this.names.flows.findIndex((flow) => flow.name === play.situation.flow);
    const link = this.names.links.findIndex((link) => link.name === play.situation.link);
    this.store = new Store(flow, link);
  }

  /** Does all events before `ms`, but gives up at `deadline` (of performance.now()); returns whether it has reached `ms`.
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

  /** Reads the news into the store. */
  read(): void {
    this.store.take(this.world.read(), sections, () => JSON.parse(this.world.names()) as Names);
  }

  /** Goes on as a run of another play; returns false if that has another past, so that the world must be made anew.
   *
   * @throws Error with the engine's sentence when it refuses a change
   */
  follow(play: Play): boolean {
    const links = difference(this.play, play, this.now);
    if (links === null) return false;
    for (const link of links) {
      this.world.forget(link, this.now / MS);
      for (const move of changesFrom(play, link, this.now)) {
        this.world.change(link, move.time / 1e9, JSON.stringify(move.change));
      }
    }
    this.play = play;
    return true;
  }

  /** The metrics as if the run ended now; after a failure, the last ones. */
  metrics(): Record<string, unknown> {
    try {
      this.numbers = JSON.parse(this.world.metrics()) as Record<string, unknown>;
    } catch {
      // its failure was reported when it happened
    }
    return this.numbers;
  }

  private numbers: Record<string, unknown> = {};

  /** Frees its memory; it must not be used any more. */
  free(): void {
    released(this.world);
  }
}

/** Frees a world. A world that has panicked cannot be freed: its memory is lost, and nothing else. */
function released(world: Pick<World, "free">): void {
  try {
    world.free();
  } catch {
    // the panic was reported when it happened
  }
}

/** The digest of a play's complete run, in slices between which the page stays responsive.
 *
 * @param progress Gets the part that is done, 0 to 1; returns false to give up.
 * @throws Error with the reason when the run fails; null when given up
 */
export async function digest(play: Play, controller: string, progress: (part: number) => boolean): Promise<string | null> {
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
      // the news are not needed: unread, they would fill the memory
      world.read();
      if (performance.now() >= deadline || until >= duration) {
        if (!progress(until / duration)) return null;
        await pause();
      }
    }
    return (JSON.parse(world.finish()) as { digest: string }).digest;
  } finally {
    released(world);
  }
}

const pause = (): Promise<void> => new Promise((done) => setTimeout(done, 0));
