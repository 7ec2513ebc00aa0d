/** Plays go on in time: contenders in step, changes and undo, back by running again from the seed. */

import { Contender } from "./contender.ts";
import { message } from "./engine.ts";
import { add, MOST_MOVES, remove, type Move } from "./moves.ts";
import { plannedCapacity, valueAt, type Plan } from "./plan.ts";
import { begin, type Play } from "./play.ts";

/** Milliseconds of a frame that the engine may take while playing, and while a run catches up with where it was. */
const BUDGET = 3.5;
const CATCHING_UP = 12;

/** After a pause of the page (another tab) time does not leap, in ms. */
const LONGEST_FRAME = 100;

export class Runner {
  contenders: Contender[] = [];
  playing = false;
  speed = 1;
  /** What went wrong in the engine; it stands until a play is begun or changed. */
  error: string | null = null;
  /** How often a world was made anew, so that who shows it knows. */
  generation = 0;
  private coming: Contender[] | null = null;
  private made: Play | null = null;
  private target = 0;
  private rest = 0;
  private past: Play[] = [];
  private gesture: Play | null = null;
  private plan: { play: Play; value: Plan | null } | null = null;

  /** Is told of a change that is not made, since the play would have so many. */
  full: (count: number) => void = () => undefined;

  constructor(public play: Play) {}

  /** The end of the run in ms. */
  get end(): number {
    return this.play.situation.lowered.duration / 1e6;
  }

  /** Where the run is that is shown, in ms. */
  get now(): number {
    return this.contenders.length > 0 ? Math.min(...this.contenders.map((one) => one.now)) : 0;
  }

  /** Where it is to be, in ms: from then on changes are live. */
  get present(): number {
    return this.target;
  }

  /** The part that is done of what a run has to catch up; 1 when it is there. */
  get caughtUp(): number {
    if (!this.coming || this.target === 0) return this.contenders.some((one) => one.now < this.target - 1000) ? this.now / this.target : 1;
    return Math.min(...this.coming.map((one) => one.now)) / this.target;
  }

  get canUndo(): boolean {
    return this.past.length > 0;
  }

  /** Whether all that was asked for is shown. */
  get idle(): boolean {
    return this.error !== null || (this.coming === null && this.made === this.play && this.now === this.target);
  }

  /** The capacity of the link in bit/s at a time in ms as it is planned; what it was where that is not known. */
  capacityAt(ms: number): number {
    const known = this.planned()?.at(ms / 1000) ?? NaN;
    if (!Number.isNaN(known)) return known;
    const truth = this.contenders[0]?.store.truth;
    return truth && truth.length > 0 ? truth.at(truth.length - 1, 1) : NaN;
  }

  /** The capacity over time, as far as it is known beforehand. */
  planned(): Plan | null {
    if (this.plan?.play !== this.play) this.plan = { play: this.play, value: plannedCapacity(this.play) };
    return this.plan.value;
  }

  /** The link's delay in ns or loss at a time in ms; null where that is no plain number. */
  valueAt(key: "delay" | "loss", ms: number): number | null {
    return valueAt(this.play, key, ms);
  }

  /** Another play, from its beginning or from where the last one is. */
  open(play: Play, at = 0): void {
    this.past = [];
    this.play = play;
    this.target = at;
    this.error = null;
    for (const one of [...this.contenders, ...(this.coming ?? [])]) one.free();
    this.contenders = [];
    this.coming = null;
    this.made = null;
  }

  /** Changes the play; one step of undo, or a part of the gesture that is under way. False where it is not made. */
  change(play: Play): boolean {
    if (play === this.play) return true;
    const count = play.moves.length + (play.situation.lowered.moves?.length ?? 0);
    if (count > MOST_MOVES && play.moves.length > this.play.moves.length) {
      this.full(count);
      return false;
    }
    if (!this.gesture) this.past.push(this.play);
    this.play = play;
    this.error = null;
    return true;
  }

  beginGesture(): void {
    this.endGesture();
    this.gesture = this.play;
  }

  endGesture(): void {
    if (this.gesture && this.gesture !== this.play) this.past.push(this.gesture);
    this.gesture = null;
  }

  add(move: Move): boolean {
    return this.change({ ...this.play, moves: add(this.play.moves, move) });
  }

  remove(move: Move): void {
    this.change({ ...this.play, moves: remove(this.play.moves, move) });
  }

  undo(): boolean {
    const before = this.past.pop();
    if (!before) return false;
    this.play = before;
    this.error = null;
    return true;
  }

  reset(): void {
    this.past.push(this.play);
    this.play = { ...begin(this.play.situation), controllers: this.play.controllers, queue: this.play.queue, seed: this.play.seed };
    this.seek(0);
    this.error = null;
  }

  /** Goes to a time in ms: on from here, or again from the seed. */
  seek(ms: number): void {
    const wanted = Math.max(0, Math.min(this.end, Math.round(ms)));
    // a world does not run backwards
    if (wanted < this.target) this.made = null;
    this.target = wanted;
    this.rest = 0;
  }

  /** What is to be done in one frame, `elapsed` ms after the last one. True when something that is shown is new. */
  frame(elapsed: number): boolean {
    if (this.error !== null) return false;
    try {
      return this.advance(elapsed);
    } catch (error) {
      this.error = message(error);
      this.playing = false;
      for (const one of this.coming ?? []) one.free();
      this.coming = null;
      // the world that failed is over: whatever comes next begins anew
      this.made = null;
      return true;
    }
  }

  private advance(elapsed: number): boolean {
    const began = performance.now();
    this.follow();
    if (this.coming) {
      if (!this.run(this.coming, began + CATCHING_UP)) return false;
      for (const one of this.coming) one.read();
      for (const one of this.contenders) one.free();
      this.contenders = this.coming;
      this.coming = null;
      this.generation += 1;
      return true;
    }
    if (this.playing && this.contenders.every((one) => one.now === this.target)) {
      const wanted = this.target + this.rest + Math.min(elapsed, LONGEST_FRAME) * this.speed;
      this.target = Math.min(this.end, Math.floor(wanted));
      this.rest = wanted - Math.floor(wanted);
      if (this.target === this.end) this.playing = false;
    }
    if (this.now === this.target) return false;
    const far = this.target - this.now > LONGEST_FRAME * 50;
    this.run(this.contenders, began + (far ? CATCHING_UP : BUDGET));
    for (const one of this.contenders) one.read();
    return true;
  }

  /** Runs each until it is there, in equal parts of the time that is left. */
  private run(contenders: Contender[], deadline: number): boolean {
    let there = true;
    for (const [place, one] of contenders.entries()) {
      const now = performance.now();
      there = one.run(this.target, now + (deadline - now) / (contenders.length - place)) && there;
    }
    return there;
  }

  /** Makes the worlds those of the play: by telling them of changes to come, or by making them anew. */
  private follow(): void {
    const { play } = this;
    if (this.made === play) return;
    const same = this.made !== null && !this.coming && this.contenders.length === play.controllers.length &&
      this.contenders.every((one, place) => one.controller === play.controllers[place]);
    // changes are told where all has happened that comes before them
    if (same && this.contenders.some((one) => one.now !== this.target)) {
      if (!this.run(this.contenders, performance.now() + BUDGET)) return;
    }
    if (!same || !this.contenders.every((one) => one.follow(play))) {
      for (const one of this.coming ?? []) one.free();
      this.coming = null;
      const fresh: Contender[] = [];
      try {
        for (const word of play.controllers) fresh.push(new Contender(play, word));
      } catch (error) {
        for (const one of fresh) one.free();
        throw error;
      }
      this.coming = fresh;
    }
    this.made = play;
  }
}
